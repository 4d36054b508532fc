"""A module that takes the place of a layer in any network."""

from typing import Any

from torch import nn

__all__ = ["StandIn"]


class StandIn(nn.Module):
    """In a layer's place, with the layer's attributes: `conv.weight` is still there."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer: Any = layer

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name.startswith("__"):  # a copy is not to be made as the layer's would be
                raise
            return getattr(super().__getattr__("layer"), name)
