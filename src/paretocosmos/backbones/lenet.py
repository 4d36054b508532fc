"""LeNet, the paper's network for small images."""

from collections.abc import Mapping, Sequence

import torch.nn.functional as F
from torch import Tensor, nn

from paretocosmos.backbones._base import Backbone
from paretocosmos.backbones._conv_pool import ConvPool
from paretocosmos.backbones._heads import Cut
from paretocosmos.errors import ConfigurationError
from paretocosmos.types import Inputs, Outputs

__all__ = ["LeNet"]

FILTERS, KERNEL, HIDDEN = (10, 20), 5, 50  # the published code's, as in Sener and Koltun 2018
LEFT = 6  # of a side after the first block: (6 - 4) / 2 = 1 pixel is left after the second


class LeNet(Backbone):
    """Two convolutions, pooled, and two linear layers, as in the paper (section 5.3).

    Args:
        input_shape: ``(C, H, W)`` with H and W at least `kernel` + 11.
        outputs: numbers per sample, or numbers per head.
        kernel: side of the first filters; 9 in the network of the paper's PHN.
        rectified: a ReLU between the two linear layers; none in that of PHN.

    >>> network = LeNet((1, 36, 36), {"top_left": 10, "bottom_right": 10})
    >>> sum(p.numel() for p in network.parameters())
    42350
    """

    def __init__(
        self,
        input_shape: Sequence[int],
        outputs: int | Mapping[str, int],
        *,
        kernel: int = KERNEL,
        rectified: bool = True,
    ) -> None:
        super().__init__()
        if kernel < 1:
            raise ConfigurationError(f"`kernel` must be at least 1, found {kernel}")
        shape, smallest = tuple(input_shape), 2 * LEFT + kernel - 1
        if len(shape) != 3 or shape[0] < 1 or min(shape[1:]) < smallest:
            raise ConfigurationError(
                f"`lenet` takes images (C, H, W) with H and W at least {smallest}, found {shape}: "
                "enlarge them, or use another backbone, such as `mlp`"
            )
        self.cut = Cut.of(outputs)
        self.rectified = rectified
        self.first = ConvPool(shape[0], FILTERS[0], kernel)
        self.second = ConvPool(*FILTERS, KERNEL)
        height, width = (_after(_after(side, kernel), KERNEL) for side in shape[1:])
        self.hidden = nn.Linear(FILTERS[1] * height * width, HIDDEN)
        self.head = nn.Linear(HIDDEN, self.cut.total)
        self.first_layer = "first.conv"
        self.heads = self.cut.heads("head")

    def forward(self, inputs: Inputs) -> Outputs:
        assert isinstance(inputs, Tensor)
        features = self.second(self.first(inputs)).flatten(1)
        hidden = self.hidden(features)
        return self.cut(self.head(F.relu(hidden) if self.rectified else hidden))


def _after(side: int, kernel: int) -> int:
    """What a block leaves of an image's side."""
    return (side - kernel + 1) // 2
