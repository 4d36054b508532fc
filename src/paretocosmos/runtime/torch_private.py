"""Every name of torch's that the package uses and torch does not promise to keep.

A private name may change with any release, so all of them are here and nowhere else: names with a
leading underscore, and those that torch calls experimental. `NAMES` says what happens once a name
is gone. Either something slower or plainer takes over, or the call that needs it raises a
`RunError` that says which torch to install. No name is looked up before it is used.
"""

import pkgutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from paretocosmos.errors import RunError

# Torch's own layers, for releases where their common base class is gone.
_BATCH_NORMS: Any = nn.BatchNorm1d | nn.BatchNorm2d | nn.BatchNorm3d | nn.SyncBatchNorm
_INSTANCE_NORMS: Any = nn.InstanceNorm1d | nn.InstanceNorm2d | nn.InstanceNorm3d
_CONVOLUTIONS: Any = nn.Conv1d | nn.Conv2d | nn.Conv3d
_TRANSPOSED: Any = nn.ConvTranspose1d | nn.ConvTranspose2d | nn.ConvTranspose3d
_DROPOUTS: Any = nn.Dropout | nn.Dropout1d | nn.Dropout2d | nn.Dropout3d
_ALPHA_DROPOUTS: Any = nn.AlphaDropout | nn.FeatureAlphaDropout

try:
    from torch.nn.modules.batchnorm import _BatchNorm as BatchNorm
    from torch.nn.modules.batchnorm import _NormBase as BatchOrInstanceNorm
except ImportError:
    BatchNorm, BatchOrInstanceNorm = _BATCH_NORMS, _BATCH_NORMS | _INSTANCE_NORMS  # type: ignore
try:
    from torch.nn.modules.conv import _ConvNd as Convolution
except ImportError:
    Convolution = _CONVOLUTIONS | _TRANSPOSED  # type: ignore
try:
    from torch.nn.modules.dropout import _DropoutNd as Dropout
except ImportError:
    Dropout = _DROPOUTS | _ALPHA_DROPOUTS  # type: ignore

__all__ = [
    "NAMES",
    "BatchNorm",
    "BatchOrInstanceNorm",
    "Convolution",
    "Dropout",
    "after_backward",
    "fused_adam_",
    "has_hooks",
    "in_backward_pass",
    "is_dispatch_watched",
    "is_functorch_wrapped",
    "lerp_all_",
    "make_fx",
    "may_return_view",
    "release_workspaces",
    "reparametrize",
    "scale_all_",
    "standard_gamma",
    "unwrap_operation",
]

NAMES: Mapping[str, str] = {
    "torch._standard_gamma": "No rays can be drawn: an error.",
    "torch._fused_adam_": "Nothing can be trained with `fit`: an error.",
    "torch._foreach_mul_": "Weight decay shrinks one parameter after the other.",
    "torch._foreach_lerp_": "Weights are averaged one parameter after the other.",
    "torch.fx.experimental.proxy_tensor.make_fx": (
        "Steps are neither traced nor compiled; the eager step goes on, and the run says why."
    ),
    "torch._ops.OpOverload": "A trace is replayed as it is, without operations in place.",
    "torch._ops.OpOverload._op": "A trace calls its operations through a Python frame each.",
    "torch._ops.OpOverload._schema": "A trace has no operations in place.",
    "torch.ops.aten._unsafe_view": "Its schema alone says whether its results are views.",
    "torch.nn.utils.stateless._reparametrize_module": (
        "A hypernetwork cannot be trained: an error in the backward pass."
    ),
    "torch.autograd.Variable._execution_engine": (
        "A conditioned network cannot be trained: an error in the backward pass."
    ),
    "torch._C._functorch.is_functorch_wrapped_tensor": (
        "A conditioned network cannot be trained: an error in the call."
    ),
    "torch._C._current_graph_task_id": (
        "A backward pass that raised leaves what it set on a conditioned network until the next."
    ),
    "torch.utils._python_dispatch._get_current_dispatch_mode": (
        "Nothing is taken to be recorded: a step that is recorded may fail, and runs eagerly then."
    ),
    "torch.utils.data.dataloader._MultiProcessingDataLoaderIter._shutdown_workers": (
        "The death of a data worker may be raised once more, after it was told."
    ),
    "torch._C._cuda_clearCublasWorkspaces": "A captured training keeps some megabytes more.",
    "torch.nn.modules.batchnorm._BatchNorm": "Only torch's own batch normalisation is known.",
    "torch.nn.modules.batchnorm._NormBase": "Only torch's own normalisation layers are known.",
    "torch.nn.modules.conv._ConvNd": "Only torch's own convolutions are known.",
    "torch.nn.modules.dropout._DropoutNd": "Only torch's own dropout is known.",
    "torch.nn.Module._forward_hooks": "Every module is taken to have hooks: nothing is traced.",
    "torch.nn.Module._forward_pre_hooks": "The same.",
    "torch.nn.Module._backward_hooks": "The same.",
}
"""Each private name, and what happens when torch no longer has it."""


class RequiredFunction:
    """A function of torch's without a substitute here."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._function: Any = None

    def __call__(self, *args: Any, **named: Any) -> Any:
        # at the first call, so that a missing name hurts only those who need it; then kept, since a
        # look-up in every step would be felt
        if self._function is None:
            self._function = _resolve(self._name)
        if self._function is None:
            raise RunError(
                f"torch {torch.__version__} has no `{self._name}` any more, which paretocosmos "
                "needs: install the torch that this release of paretocosmos was tested with, "
                'pip install "torch>=2.11,<=2.13"'
            )
        return self._function(*args, **named)


@cache
def _resolve(name: str) -> Any:
    try:
        return pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        return None


standard_gamma = RequiredFunction("torch._standard_gamma")
"""Gamma draws of scale 1 from a generator: ``(concentration, generator)``."""

fused_adam_ = RequiredFunction("torch._fused_adam_")
"""One update of Adam in place, all parameters in one kernel."""

make_fx = RequiredFunction("torch.fx.experimental.proxy_tensor.make_fx")
"""A function to one that records its tensor operations, those of autograd included."""

reparametrize = RequiredFunction("torch.nn.utils.stateless._reparametrize_module")
"""A context in which a module has other weights: ``(module, weights by name)``."""

is_functorch_wrapped = RequiredFunction("torch._C._functorch.is_functorch_wrapped_tensor")
"""True for a tensor inside `torch.func`, where it has no hooks."""

after_backward = RequiredFunction("torch.autograd.Variable._execution_engine.queue_callback")
"""During a backward pass: call a function without arguments at its end."""


def scale_all_(tensors: Sequence[Tensor], factor: Tensor | float) -> None:
    """Multiply many tensors in place, in few kernels."""
    multiply_all = _resolve("torch._foreach_mul_")
    if multiply_all is not None:
        multiply_all(tensors, factor)
        return
    for tensor in tensors:
        tensor.mul_(factor)


def lerp_all_(tensors: Sequence[Tensor], ends: Sequence[Tensor], share: float) -> None:
    """Move many tensors in place, by a share of the way to others, in few kernels."""
    lerp_all = _resolve("torch._foreach_lerp_")
    if lerp_all is not None:
        lerp_all(tensors, ends, share)
        return
    for tensor, end in zip(tensors, ends, strict=True):
        tensor.lerp_(end, share)


def in_backward_pass() -> bool:
    """Return True during a backward pass, and always if torch does not tell."""
    task = _resolve("torch._C._current_graph_task_id")
    return task is None or task() != -1  # -1: no graph is being walked


def is_dispatch_watched() -> bool:
    """Return True if a dispatch mode watches operations, as a recording does."""
    mode = _resolve("torch.utils._python_dispatch._get_current_dispatch_mode")
    return mode is not None and mode() is not None


def release_workspaces() -> None:
    """Give back the memory that cuBLAS keeps for products."""
    release = _resolve("torch._C._cuda_clearCublasWorkspaces")
    if release is not None:
        release()


def has_hooks(module: nn.Module, *, backward: bool = False) -> bool:
    """Return True if calling a module calls forward hooks; with `backward`, those too."""
    names = ("_forward_hooks", "_forward_pre_hooks") + ("_backward_hooks",) * backward
    # a name that is gone counts as a hook: such a module is not traced, which is always right
    return any(bool(getattr(module, name, True)) for name in names)


def unwrap_operation(operation: Any) -> Any:
    """Return an operation without the Python frame that torch wraps around it, if any."""
    overload = _resolve("torch._ops.OpOverload")
    wrapped = overload is not None and isinstance(operation, overload)
    return getattr(operation, "_op", operation) if wrapped else operation


def may_return_view(operation: Any) -> bool:
    """Return True unless an operation is known to return fresh memory, not a view of its input."""
    overload = _resolve("torch._ops.OpOverload")
    schema = getattr(operation, "_schema", None)
    if overload is None or not isinstance(operation, overload) or schema is None:
        return True
    # its schema says fresh memory, but its result shares that of the input
    view = getattr(torch.ops.aten, "_unsafe_view", None)
    if view is not None and operation is view.default:
        return True
    return any(result.alias_info is not None for result in schema.returns)


def end_workers(iterator: Iterator[Any]) -> None:
    """End the workers that an iterator reads with, if it has any.

    A broken pipe may tell of a death before its signal comes, and in the handler of that signal
    torch raises the death again, whatever is being done; it does not once the workers have ended.
    """
    shut_down = getattr(iterator, "_shutdown_workers", None)
    if shut_down is not None:
        with suppress(RuntimeError):  # the death of a worker, which is known already
            shut_down()
