"""How a ray reaches the middle of a network that knows nothing of rays.

A `Listener` takes a layer's place. For the time of a call the conditioning sets on it what the ray
amounts to there; `_during.py` says how and when.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Literal

from torch import Tensor, nn

from paretocosmos.conditioning._base import Conditioning
from paretocosmos.conditioning._during import Held
from paretocosmos.errors import ConfigurationError
from paretocosmos.layers.wrapper import StandIn
from paretocosmos.types import Inputs, Outputs

__all__ = [
    "How",
    "Listener",
    "ListeningConditioning",
    "check_groups",
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

    def __init__(self, backbone: nn.Module, objectives: int) -> None:
        super().__init__(backbone, objectives)
        self._held = Held()

    @property
    @abstractmethod
    def places(self) -> tuple[str, ...]:
        """The backbone's modules that listeners took the place of, by dotted names."""

    @property
    def ray_parameters(self) -> frozenset[str]:
        heard = {
            parameter
            for listener in self.backbone.modules()
            if isinstance(listener, Listener)
            for parameter in set(listener.parameters()) - set(listener.layer.parameters())
        }
        inner = (name for name, one in self.named_parameters() if one in heard)
        return super().ray_parameters.union(inner)

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
        listeners = [self.backbone.get_submodule(name) for name in self.places]

        def compute() -> Outputs:
            undo = _put(listeners, told, how)
            try:
                return self.call(inputs)
            finally:
                undo()

        return self._held.call(compute, told, lambda again: _put(listeners, again, how))


def check_groups(samples: int, groups: int) -> None:
    """Refuse a batch that cannot be shared among that many rays."""
    if samples % groups:
        raise ConfigurationError(
            f"a batch of {samples} samples cannot be split among {groups} rays: use one ray, one "
            "per sample, or a number that divides the batch"
        )


def _put(listeners: Sequence[Any], told: Sequence[Tensor], how: How) -> Callable[[], None]:
    """Set on each listener what it is told; the result takes it back."""
    before = [(listener.rays, listener.how) for listener in listeners]
    for listener, rays in zip(listeners, told, strict=True):
        listener.rays, listener.how = rays, how

    def undo() -> None:
        for listener, (rays, how) in zip(listeners, before, strict=True):
            listener.rays, listener.how = rays, how

    return undo
