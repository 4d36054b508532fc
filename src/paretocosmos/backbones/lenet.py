"""LeNet, the paper's network for small images."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from paretocosmos.backbones.base import Backbone, Cut
from paretocosmos.errors import ConfigurationError
from paretocosmos.layers.kernels import conv_pool, taken
from paretocosmos.runtime.torch_private import hooked
from paretocosmos.types import Inputs, Outputs

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


# Samples per ray from which on a ray's own weights are worth writing out.
FEWEST = 8


class _Split(Protocol):
    """What a conditioning may put in the place of the convolution: ``layer(x) + term``."""

    layer: nn.Conv2d
    how: str

    def term(self, inputs: Tensor) -> Tensor:
        """What to add to the layer's output: ``[G, O, H', W']``, one per group of samples."""
        ...


class _Moving(Protocol):
    """What another may put there: a convolution whose weights move with the ray."""

    layer: nn.Conv2d

    def heard(self) -> Tensor:
        """One row per group of samples, ``[G, J]``."""
        ...

    def moved(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """The weights and the biases of every group, ``[G, O, C, K, K]`` and ``[G, O]``."""
        ...


class ConvPool(nn.Module):
    """``relu(max_pool(conv(x), 2))``: the same as pooling after the ReLU, on a quarter of it.

    Args:
        channels_in: channels of the input.
        channels_out: filters.
        kernel: side of a filter; no padding, stride 1.

    >>> import torch
    >>> ConvPool(1, 10, 5)(torch.zeros(2, 1, 36, 36)).shape
    torch.Size([2, 10, 16, 16])
    """

    def __init__(self, channels_in: int, channels_out: int, kernel: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels_in, channels_out, kernel)

    def forward(self, inputs: Tensor) -> Tensor:
        fused = _fused(self.conv, inputs) if taken(inputs) else None
        return F.relu(F.max_pool2d(self.conv(inputs), 2)) if fused is None else fused()


def _fused(conv: nn.Module, inputs: Tensor) -> Callable[[], Tensor] | None:
    """The block by one kernel, whatever a conditioning made of its convolution; `None` if not.

    Hooks are called by modules, not by kernels.
    """
    if any(hooked(part) for part in conv.modules()):
        return None
    by_kernel = partial(conv_pool, precision="tf32" if torch.backends.cudnn.allow_tf32 else "ieee")
    # a look at its parts, since backbones do not know conditionings
    found: Any = conv
    if type(conv) is nn.Conv2d:
        return partial(by_kernel, inputs, conv.weight, found.bias)
    if type(getattr(conv, "layer", None)) is not nn.Conv2d:
        return None
    if hasattr(conv, "term"):
        return partial(_split, by_kernel, found, inputs)
    if hasattr(conv, "moved") and inputs.shape[0] >= FEWEST * found.heard().shape[0]:
        return partial(_moving, by_kernel, found, inputs)
    return None


def _split(by_kernel: Callable[..., Tensor], conv: _Split, inputs: Tensor) -> Tensor:
    assert conv.layer.bias is not None
    fused = partial(by_kernel, inputs, conv.layer.weight, conv.layer.bias)
    term = conv.term(inputs)
    if conv.how == "groups":
        return fused(term)
    # a sweep: every sample once per ray. Convolving again costs less than moving what a shared
    # convolution would leave in memory, four times the size of what the pool leaves of it
    swept: Tensor = torch.vmap(fused)(term.unsqueeze(1))
    return swept.flatten(0, 1)


def _moving(by_kernel: Callable[..., Tensor], conv: _Moving, inputs: Tensor) -> Tensor:
    """Every ray's samples by its own weights, all in the same launches."""
    weights, biases = conv.moved(inputs)
    grouped = inputs.unflatten(0, (weights.shape[0], -1))
    moved: Tensor = torch.vmap(by_kernel)(grouped, weights, biases)
    return moved.flatten(0, 1)
