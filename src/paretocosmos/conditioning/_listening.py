"""How a ray reaches the middle of a network that knows nothing of rays.

A `Listener` takes a layer's place. For the time of a call the conditioning sets on it what the ray
amounts to there. Gradient checkpointing runs parts of the call once more, during the backward pass:
the outputs' gradient hooks then set it again, each call's own.
"""

import dataclasses
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from paretocosmos.conditioning._base import Conditioning
from paretocosmos.errors import ConfigurationError
from paretocosmos.stand_in import StandIn
from paretocosmos.torch_private import after_backward, is_functorch_wrapped
from paretocosmos.types import Inputs, Outputs

__all__ = [
    "How",
    "Listener",
    "ListeningConditioning",
    "apart",
    "check_groups",
    "in_backward",
]

How = Literal["groups", "sweep"]


class Listener(StandIn):
    """A layer's place, and what the ray amounts to there: `rays`, one row per group of samples."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__(layer)
        self.rays: Tensor | None = None
        self.how: How = "groups"

    def heard(self) -> Tensor:
        """What is set on it at the moment."""
        if self.rays is None:
            raise ConfigurationError(
                f"{type(self.layer).__name__} is conditioned on a ray and found none: call the "
                "whole model, `model(inputs, ray)`, not a part of it"
            )
        return self.rays


class ListeningConditioning(Conditioning):
    """A conditioning whose ray enters where listeners have been put."""

    @property
    @abstractmethod
    def places(self) -> tuple[str, ...]:
        """The backbone's modules that listeners took the place of, by dotted names."""

    def _put(self, listener: Listener) -> None:
        """Put a listener in its layer's place, and in every other place the layer is used in."""
        every = self.backbone.named_modules(remove_duplicate=False)
        for place in [place for place, module in every if module is listener.layer]:
            if place == "":  # the network is that one layer
                self.backbone = listener
            else:
                self.backbone.set_submodule(place, listener)

    def _tell(self, inputs: Inputs, told: Sequence[Tensor], how: How = "groups") -> Outputs:
        """The backbone on its inputs, while its listeners hear what they are told, one each."""
        listeners: list[Any] = [self.backbone.get_submodule(name) for name in self.places]
        # none, unless this whole call is being computed again in a backward pass
        before = [listener.rays for listener in listeners]
        _say(listeners, told, how)
        try:
            outputs = self.call(inputs)
        finally:
            for listener, rays in zip(listeners, before, strict=True):
                listener.rays = rays
        in_backward(
            outputs,
            lambda: _say(listeners, [apart(rays) for rays in told], how),
            lambda: _hush(listeners),
        )
        return outputs


def check_groups(samples: int, groups: int) -> None:
    """Refuse a batch that cannot be shared among that many rays."""
    if samples % groups:
        raise ConfigurationError(
            f"a batch of {samples} samples cannot be split among {groups} rays: use one ray, one "
            "per sample, or a number that divides the batch"
        )


def _say(listeners: Sequence[Any], told: Sequence[Tensor], how: How) -> None:
    for listener, rays in zip(listeners, told, strict=True):
        listener.rays, listener.how = rays, how


def _hush(listeners: Sequence[Any]) -> None:
    for listener in listeners:
        listener.rays = None


def in_backward(outputs: object, say: Callable[[], None], hush: Callable[[], None]) -> None:
    """Whenever the backward pass comes by a call's outputs, let what they depend on be said again.

    Later calls' nodes run before earlier ones', so until it comes by another call's outputs, what
    is computed again is this call's.
    """
    if not torch.is_grad_enabled() or torch.compiler.is_compiling():
        return

    def hook(_: Tensor) -> None:
        say()
        after_backward(hush)

    for tensor in _tensors(outputs):
        # not on a parameter, where it would stay; nor inside torch.func, which has no such hooks
        if tensor.grad_fn is not None and not is_functorch_wrapped(tensor):
            tensor.register_hook(hook)


def apart(rays: Tensor) -> Tensor:
    """The same numbers for a part of the graph that is built during the backward pass.

    `use_reentrant=True` goes back through what it computed again at once, part by part: each time
    on into what gave the numbers, which must not be used up by the first.
    """
    if not rays.requires_grad:
        return rays
    leaf = rays.detach().requires_grad_()
    leaf.register_hook(lambda grad: torch.autograd.backward(rays, grad, retain_graph=True))
    return leaf


def _tensors(outputs: object) -> Iterator[Tensor]:
    """Every tensor of what a network gives, however it is packed."""
    if isinstance(outputs, Tensor):
        yield outputs
    elif isinstance(outputs, Mapping):
        yield from (tensor for part in outputs.values() for tensor in _tensors(part))
    elif isinstance(outputs, list | tuple):
        yield from (tensor for part in outputs for tensor in _tensors(part))
    elif dataclasses.is_dataclass(outputs):
        yield from _tensors(vars(outputs))
