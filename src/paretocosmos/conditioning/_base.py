"""The contract of a conditioning."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping

from torch import Tensor, nn

from paretocosmos.errors import ConfigurationError
from paretocosmos.types import Inputs, Outputs

__all__ = ["Conditioning", "heads_of"]


def heads_of(network: nn.Module) -> tuple[str, ...]:
    """The modules that serve single objectives, by dotted name, where a network says so.

    It says so in its attribute `heads`: names, or the module itself. Another thing of that name,
    such as a number of attention heads, says nothing.
    """
    heads = getattr(network, "heads", ())
    if isinstance(heads, nn.Module):
        return ("heads",)
    names = (heads,) if isinstance(heads, str) else heads
    known = isinstance(names, tuple | list) and all(isinstance(name, str) for name in names)
    return tuple(names) if known else ()


class Conditioning(nn.Module, ABC):
    """A network that takes a ray beside its inputs: ``forward(inputs, ray) -> outputs``.

    Args:
        backbone: the network; a copy is conditioned, the one handed over is left alone.
        objectives: entries in a ray, J.
    """

    def __init__(self, backbone: nn.Module, objectives: int) -> None:
        super().__init__()
        if type(objectives) is not int:  # True is an int too
            raise ConfigurationError(f"`objectives` must be a whole number, found {objectives!r}")
        if objectives < 1:
            raise ConfigurationError(f"`objectives` must be at least 1, found {objectives}")
        self.backbone = copy.deepcopy(backbone)
        self.objectives = objectives

    @property
    def heads(self) -> tuple[str, ...]:
        """The modules that serve single objectives, by dotted name, where the backbone says so."""
        return tuple(f"backbone.{name}" for name in heads_of(self.backbone))

    @abstractmethod
    def forward(self, inputs: Inputs, ray: Tensor) -> Outputs:
        """Inputs ``[B, ...]`` and rays ``[J]``, ``[G, J]`` or ``[B, J]`` to outputs ``[B, ...]``.

        With G rays the batch is G groups of B/G neighbouring samples, one ray each.
        """

    @abstractmethod
    def each_ray(self, inputs: Inputs, rays: Tensor) -> Outputs:
        """Inputs ``[B, ...]`` under every one of N rays ``[N, J]``: outputs ``[N, B, ...]``.

        What does not depend on the ray is computed once.
        """

    def call(self, inputs: Inputs) -> Outputs:
        """The backbone on its inputs; a mapping is passed on as keywords."""
        given = inputs if isinstance(inputs, Mapping) else None
        outputs: Outputs = self.backbone(inputs) if given is None else self.backbone(**given)
        return outputs

    def rays_for(self, ray: Tensor) -> Tensor:
        """Check a ray's last axis and bring it to ``[G, J]``."""
        if ray.ndim not in (1, 2) or ray.shape[-1] != self.objectives:
            raise ConfigurationError(
                f"a ray here has shape [{self.objectives}], or [G, {self.objectives}] with one ray "
                f"per group of samples; found {tuple(ray.shape)}"
            )
        return ray.unsqueeze(0) if ray.ndim == 1 else ray
