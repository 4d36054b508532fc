"""Whether a ray can matter where it enters, tried out at the first call that is to be trained.

A bias on the keys of an attention cancels in the softmax, a layer may never be called, and nobody
may read what a block gives. What reads a ray there has gradients of zero, and learns nothing.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from paretocosmos.conditioning._batch import every_float, quiet
from paretocosmos.conditioning._kinds import base_of
from paretocosmos.conditioning._layers import matrices_of
from paretocosmos.runtime.torch_private import reparametrised
from paretocosmos.types import Inputs, Outputs

__all__ = ["heeded_layers", "unheeded"]

# Of the largest gradient: what is left of those that cancel is rounding, 1e-8 or less.
ROUNDING = 1e-6
NOISE = 0.1

Run = Callable[[Sequence[Tensor]], Outputs]
"""The network on the inputs of a call, while its listeners hear these terms."""


def unheeded(
    network: nn.Module, listeners: Sequence[Any], run: Run, told: Sequence[Tensor], inputs: Inputs
) -> list[int]:
    """Which listeners change nothing, whatever they are told, by their places in the list.

    Gradients with the weights as they are show most of those that matter. Zeros in a network, such
    as those of a last layer that starts there, may hide some: the rest is tried with other weights.

    Args:
        network: what is called.
        listeners: where a ray enters.
        run: a call under one ray.
        told: what listeners are told, ``[1, ...]`` each; other numbers take its place.
        inputs: of the call.
    """
    if dist.is_available() and dist.is_initialized():
        return []  # gradients are shared by processes, at times that torch decides
    left = list(range(len(listeners)))
    weights = {name: one for name, one in network.named_parameters() if one.is_floating_point()}
    for perturbed in (False, True):
        try:
            with quiet(network, inputs), torch.enable_grad(), _other(network, weights, perturbed):
                large = _gradients(network, listeners, run, told)
        except RuntimeError:  # a network whose gradients torch does not give in evaluation mode
            return []
        bound = ROUNDING * max(large, default=0.0)
        if bound == 0 and not perturbed:
            continue
        if bound == 0:
            return []  # outputs without gradients say nothing
        left = [at for at in left if large[at] <= bound]
        if not left:
            break
    return left


def heeded_layers(network: nn.Module, run: Callable[[], Outputs], inputs: Inputs) -> list[str]:
    """Linear layers and convolutions where something added would matter, but for the last one."""
    names = matrices_of(network)[:-1]
    shifts: dict[str, Tensor] = {}
    handles = []
    for name in names:

        def shift(part: Any, _: Any, given: Tensor, name: str = name) -> Tensor:
            axis = -1 if isinstance(base_of(part), nn.Linear) else 1
            zeros = given.new_zeros(given.shape[axis]).requires_grad_()
            shape = [1] * given.ndim
            shape[axis] = -1
            return given + shifts.setdefault(name, zeros).reshape(shape)

        handles.append(network.get_submodule(name).register_forward_hook(shift))
    try:
        with quiet(network, inputs), torch.enable_grad():
            found = _sizes(run(), list(shifts.values()))
    except RuntimeError:
        return []
    finally:
        for handle in handles:
            handle.remove()
    bound = ROUNDING * max(found, default=0.0)
    return [name for name, size in zip(shifts, found, strict=True) if size > bound]


def _gradients(
    network: nn.Module, listeners: Sequence[Any], run: Run, told: Sequence[Tensor]
) -> list[float]:
    """The largest gradient of what reads the ray at each listener; then that of all others."""
    terms = [torch.randn_like(one[:1].detach()).requires_grad_() for one in told]
    outputs = run(terms)
    own: list[list[Tensor]] = []
    for listener, term in zip(listeners, terms, strict=True):
        layers = set(listener.layer.parameters())
        mine = [one for one in listener.parameters() if one not in layers and one.requires_grad]
        own.append([*mine, term])
    rest = [one for one in network.parameters() if one.requires_grad]
    flat = [one for several in own for one in several]
    sizes = iter(_sizes(outputs, [*flat, *rest]))
    found = [max(next(sizes) for _ in several) for several in own]
    return [*found, max(sizes, default=0.0)]


def _sizes(outputs: Outputs, tensors: Sequence[Tensor]) -> list[float]:
    """The largest entry of the gradient of a random sum of all outputs, by each tensor."""
    ends = [one for one in every_float(outputs) if one.requires_grad]
    if not ends or not tensors:
        return [0.0] * len(tensors)
    total = torch.stack([(one * torch.randn_like(one)).sum() for one in ends]).sum()
    grads = torch.autograd.grad(total, list(tensors), allow_unused=True)
    return [0.0 if one is None else float(one.abs().max()) for one in grads]


@contextmanager
def _other(network: nn.Module, weights: dict[str, Tensor], perturbed: bool) -> Iterator[None]:
    """The network as it is, or with some noise in every weight."""
    if not perturbed:
        yield
        return
    noisy = {
        name: (one + NOISE * torch.randn_like(one)).detach().requires_grad_()
        for name, one in weights.items()
    }
    with reparametrised(network, noisy):
        yield
