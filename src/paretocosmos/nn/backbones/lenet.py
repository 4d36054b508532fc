"""LeNet, the paper's network for small images."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from paretocosmos.errors import ConfigurationError
from paretocosmos.nn.backbones.base import Backbone, Cut
from paretocosmos.nn.kernels import conv_pool, supports_tensors
from paretocosmos.runtime.torch_private import has_hooks
from paretocosmos.types import Inputs, Outputs

FILTERS, KERNEL, HIDDEN = (10, 20), 5, 50  # the published code's, as in Sener and Koltun 2018
# Smallest side after the first block: (6 - 4) / 2 = 1 pixel remains after the second.
SMALLEST_SIDE = 6


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
        shape, smallest = tuple(input_shape), 2 * SMALLEST_SIDE + kernel - 1
        if len(shape) != 3 or shape[0] < 1 or min(shape[1:]) < smallest:
            raise ConfigurationError(
                f"`lenet` takes images (C, H, W) with H and W at least {smallest}, found {shape}: "
                "enlarge them, or use another backbone, such as `mlp`"
            )
        self.cut = Cut.of(outputs)
        self.rectified = rectified
        self.first = ConvPool(shape[0], FILTERS[0], kernel)
        self.second = ConvPool(*FILTERS, KERNEL)
        sides: Sequence[int] = shape[1:]
        for side_of_filter in (kernel, KERNEL):  # a convolution without padding, then the pool
            sides = [(side - side_of_filter + 1) // 2 for side in sides]
        self.hidden = nn.Linear(FILTERS[1] * sides[0] * sides[1], HIDDEN)
        self.head = nn.Linear(HIDDEN, self.cut.total)
        self.first_layer = "first.conv"
        self.heads = self.cut.heads("head")

    def forward(self, inputs: Inputs) -> Outputs:
        assert isinstance(inputs, Tensor)
        features = self.second(self.first(inputs)).flatten(1)
        hidden = self.hidden(features)
        return self.cut(self.head(F.relu(hidden) if self.rectified else hidden))


class ConvPool(nn.Module):
    """``relu(max_pool(conv(x), 2))``: the same as pooling after the ReLU, with less work.

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
        fused = self._call_fused(inputs) if supports_tensors(inputs) else None
        return F.relu(F.max_pool2d(self.conv(inputs), 2)) if fused is None else fused

    def _call_fused(self, inputs: Tensor) -> Tensor | None:
        """Compute the block by one kernel; return `None` if it does not fit this convolution.

        A conditioned convolution knows itself how to use the kernel (`fuse_conv_pool`).
        """
        conv: Any = self.conv  # which a conditioned one may have replaced
        if any(has_hooks(module) for module in conv.modules()):  # a kernel would not call the hooks
            return None
        # the precision that torch's own convolution would have
        kernel = partial(conv_pool, precision="tf32" if torch.backends.cudnn.allow_tf32 else "ieee")
        if type(conv) is nn.Conv2d:
            bias: Any = conv.bias
            return kernel(inputs, conv.weight, bias)
        if type(getattr(conv, "layer", None)) is nn.Conv2d and hasattr(conv, "fuse_conv_pool"):
            outputs: Tensor | None = conv.fuse_conv_pool(inputs, kernel)
            return outputs
        return None
