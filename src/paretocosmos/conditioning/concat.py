"""The paper's conditioning for tables: the ray is concatenated to the input."""

from torch import nn

from paretocosmos.conditioning._first_layer import FirstLayerConditioning
from paretocosmos.conditioning._split import SplitLinear

__all__ = ["Concat"]


class Concat(FirstLayerConditioning[nn.Linear]):
    """The ray concatenated to the features, as in the paper (section 4): W_x x + W_r r.

    Args:
        backbone: any network whose input enters a linear layer; it is copied.
        objectives: entries in a ray, J.
        layer: the dotted name of that linear layer; found by itself if `None`.
        zero: start with zeros where the layer reads the ray: with the network as it was.
        joined: scale a freshly drawn layer as if it had been drawn with the ray among its inputs.

    >>> import torch
    >>> model = Concat(nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1)), 2)
    >>> model(torch.zeros(4, 3), torch.tensor([0.5, 0.5])).shape
    torch.Size([4, 1])
    """

    _name = "concat"
    _kind = nn.Linear
    _kind_name = "linear layer"

    def _split(self, layer: nn.Linear, *, zero: bool, joined: bool) -> SplitLinear:
        return SplitLinear(layer, self.objectives, zero=zero, joined=joined)
