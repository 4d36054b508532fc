"""LeNet, the paper's network for small images."""

from collections.abc import Mapping, Sequence

import torch.nn.functional as F
from torch import Tensor, nn

from paretocosmos.backbones._base import Backbone
from paretocosmos.backbones._conv_pool import ConvPool
from paretocosmos.errors import ConfigurationError
from paretocosmos.types import Inputs, Outputs

__all__ = ["LeNet"]

FILTERS, KERNEL, HIDDEN = (10, 20), 5, 50  # the published code's, as in Sener and Koltun 2018
SMALLEST = 16  # (16 - 4) / 2 = 6 and (6 - 4) / 2 = 1: one pixel is left after both blocks


class LeNet(Backbone):
    """Two convolutions, pooled, and two linear layers, as in the paper (section 5.2).

    All heads are one linear layer whose output is cut by name: their number costs nothing.

    Args:
        input_shape: ``(C, H, W)`` with H and W at least 16.
        outputs: numbers per sample, or numbers per head.

    >>> network = LeNet((1, 36, 36), {"top_left": 10, "bottom_right": 10})
    >>> sum(p.numel() for p in network.parameters())
    42350
    """

    def __init__(self, input_shape: Sequence[int], outputs: int | Mapping[str, int]) -> None:
        super().__init__()
        shape = tuple(input_shape)
        if len(shape) != 3 or shape[0] < 1 or min(shape[1:]) < SMALLEST:
            raise ConfigurationError(
                f"`lenet` takes images (C, H, W) with H and W at least {SMALLEST}, found {shape}: "
                "enlarge them, or use another backbone, such as `mlp`"
            )
        widths = outputs if isinstance(outputs, Mapping) else {"outputs": outputs}
        if not widths or min(widths.values()) < 1:
            raise ConfigurationError(f"`outputs` takes widths >= 1, found {outputs}")
        self.names = tuple(outputs) if isinstance(outputs, Mapping) else None
        self.widths = tuple(widths.values())
        self.first = ConvPool(shape[0], FILTERS[0], KERNEL)
        self.second = ConvPool(*FILTERS, KERNEL)
        height, width = (_after(_after(side)) for side in shape[1:])
        self.hidden = nn.Linear(FILTERS[1] * height * width, HIDDEN)
        self.head = nn.Linear(HIDDEN, sum(self.widths))
        self.first_layer = "first.conv"
        self.heads = ("head",)

    def forward(self, inputs: Inputs) -> Outputs:
        assert isinstance(inputs, Tensor)
        features = self.second(self.first(inputs)).flatten(1)
        out: Tensor = self.head(F.relu(self.hidden(features)))
        if self.names is None:
            return out
        return dict(zip(self.names, out.split(self.widths, dim=1), strict=True))


def _after(side: int) -> int:
    """What a block leaves of an image's side."""
    return (side - KERNEL + 1) // 2
