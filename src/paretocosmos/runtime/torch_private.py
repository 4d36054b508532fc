"""Every name of torch's that the package uses and torch does not promise to keep.

A private name may change with any release, so all of them are here and nowhere else: names with a
leading underscore, and those that torch calls experimental. Where a later torch lacks one, a
sentence says which torch to install.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import torch
from torch import nn

from paretocosmos.errors import RunError

__all__ = [
    "BatchNorm",
    "BatchOrInstanceNorm",
    "Convolution",
    "Dropout",
    "after_backward",
    "end_workers",
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

try:
    from torch._C import _current_graph_task_id
    from torch._C._functorch import is_functorch_wrapped_tensor as is_functorch_wrapped
    from torch._ops import OpOverload
    from torch.nn.modules.batchnorm import _BatchNorm as BatchNorm
    from torch.nn.modules.batchnorm import _NormBase as BatchOrInstanceNorm
    from torch.nn.modules.conv import _ConvNd as Convolution
    from torch.nn.modules.dropout import _DropoutNd as Dropout
    from torch.nn.utils.stateless import _reparametrize_module as reparametrize
    from torch.utils._python_dispatch import _get_current_dispatch_mode

    standard_gamma: Callable[..., Any] = torch._standard_gamma
    fused_adam_: Callable[..., Any] = torch._fused_adam_
    scale_all_: Callable[..., Any] = torch._foreach_mul_
    lerp_all_: Callable[..., Any] = torch._foreach_lerp_
    after_backward: Callable[..., Any] = torch.autograd.Variable._execution_engine.queue_callback
except (ImportError, AttributeError) as error:
    raise RunError(
        f"torch {torch.__version__} lacks a name that paretocosmos needs ({error}): install a "
        'torch that this release was tested with, pip install "torch>=2.6,<=2.15"'
    ) from error


def make_fx(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Turn a function into one that records its tensor operations, those of autograd included."""
    # here, since its import takes a second
    from torch.fx.experimental import proxy_tensor

    recording: Callable[..., Any] = proxy_tensor.make_fx(function, **options)
    return recording


def in_backward_pass() -> bool:
    """Return True during a backward pass."""
    return bool(_current_graph_task_id() != -1)  # -1: no graph is being walked


def is_dispatch_watched() -> bool:
    """Return True if a dispatch mode watches operations, as a recording does."""
    return _get_current_dispatch_mode() is not None


def release_workspaces() -> None:
    """Give back the memory that cuBLAS keeps for products."""
    if torch.backends.cuda.is_built():  # builds for a CPU lack the name
        torch._C._cuda_clearCublasWorkspaces()


def has_hooks(module: nn.Module, *, backward: bool = False) -> bool:
    """Return True if calling a module calls forward hooks; with `backward`, those too."""
    hooks = bool(module._forward_hooks or module._forward_pre_hooks)
    return hooks or (backward and bool(module._backward_hooks))


def unwrap_operation(operation: Any) -> Any:
    """Return an operation without the Python frame that torch wraps around it, if any."""
    return operation._op if isinstance(operation, OpOverload) else operation


def may_return_view(operation: Any) -> bool:
    """Return True unless an operation is known to return fresh memory, not a view of its input."""
    # the schema of `_unsafe_view` says fresh memory, but its result shares that of the input
    if not isinstance(operation, OpOverload) or operation is torch.ops.aten._unsafe_view.default:
        return True
    return any(result.alias_info is not None for result in operation._schema.returns)


def end_workers(iterator: Iterator[Any]) -> None:
    """End the workers that an iterator reads with, if it has any.

    A broken pipe may tell of a death before its signal comes, and in the handler of that signal
    torch raises the death again, whatever is being done; it does not once the workers have ended.
    """
    shut_down = getattr(iterator, "_shutdown_workers", None)
    if shut_down is not None:
        with suppress(RuntimeError):  # the death of a worker, which is known already
            shut_down()
