"""The contract of a backbone."""

from abc import ABC, abstractmethod

from torch import nn

from paretocosmos.types import Inputs, Outputs

__all__ = ["Backbone"]


class Backbone(nn.Module, ABC):
    """A plain network, ``forward(inputs) -> outputs``, that names two of its parts."""

    first_layer: str
    """The module the input enters, by its dotted name."""

    heads: tuple[str, ...]
    """The modules that serve single objectives, by their dotted names; none if all share them.

    A layer that gives several named outputs is one: each objective reads rows of its own. The layer
    of a single output is not, since every objective reads it.
    """

    @abstractmethod
    def forward(self, inputs: Inputs) -> Outputs:
        """Inputs ``[B, ...]`` to outputs ``[B, ...]``."""
