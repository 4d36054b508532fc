"""A multi-layer perceptron."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

from torch import Tensor, nn

from paretocosmos.errors import ConfigurationError
from paretocosmos.nn.backbones.base import Backbone, Cut, check_widths
from paretocosmos.types import Inputs, Outputs

DEEPEST = 100  # layers


class Mlp(Backbone):
    """Linear layers with ReLU between them; 60 and 25 wide in the paper (section 5.3).

    Args:
        input_shape: the shape of one sample.
        outputs: numbers per sample, or numbers per head.
        hidden: widths of the hidden layers.

    >>> sum(p.numel() for p in Mlp((88,), 1).parameters())
    6891
    """

    def __init__(
        self,
        input_shape: Sequence[int],
        outputs: int | Mapping[str, int],
        *,
        hidden: tuple[int, ...] = (60, 25),
    ) -> None:
        super().__init__()
        check_widths("hidden", hidden)
        if len(hidden) > DEEPEST:
            raise ConfigurationError(
                f"`hidden` must have at most {DEEPEST} layers, found {len(hidden)}: deeper "
                "networks do not learn without skip connections"
            )
        self.cut = Cut.of(outputs)
        widths = [math.prod(input_shape), *hidden, self.cut.total]
        layers: list[nn.Module] = []
        for index, (before, after) in enumerate(pairwise(widths)):
            layers += [nn.ReLU()] * (index > 0) + [nn.Linear(before, after)]
        self.layers = nn.Sequential(*layers)
        self.first_layer = "layers.0"
        self.heads = self.cut.heads(f"layers.{len(layers) - 1}")

    def forward(self, inputs: Inputs) -> Outputs:
        assert isinstance(inputs, Tensor)
        return self.cut(self.layers(inputs.flatten(1)))
