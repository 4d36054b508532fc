"""The block small image networks are made of: a convolution, pooled and rectified."""

from functools import partial
from typing import Protocol, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from paretocosmos.layers.kernels import conv_pool, taken
from paretocosmos.runtime.torch_private import hooked


class _Split(Protocol):
    """What a conditioning may put in the place of the convolution: ``layer(x) + term``."""

    layer: nn.Conv2d
    how: str

    def term(self, inputs: Tensor) -> Tensor:
        """What to add to the layer's output: ``[G, O, H', W']``, one per group of samples."""
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
        parts = _parts(self.conv) if taken(inputs) else None
        if parts is None:
            return F.relu(F.max_pool2d(self.conv(inputs), 2))
        layer, split = parts
        assert layer.bias is not None
        fused = partial(
            conv_pool,
            inputs,
            layer.weight,
            layer.bias,
            precision="tf32" if torch.backends.cudnn.allow_tf32 else "ieee",
        )
        if split is None:
            return fused()
        term = split.term(inputs)
        if split.how == "groups":
            return fused(term)
        # a sweep: every sample once per ray. Convolving again costs less than moving what a shared
        # convolution would leave in memory, four times the size of what the pool leaves of it
        swept: Tensor = torch.vmap(fused)(term.unsqueeze(1))
        return swept.flatten(0, 1)


def _parts(conv: nn.Module) -> tuple[nn.Conv2d, _Split | None] | None:
    """The convolution itself and what adds to it; `None` where it is something else.

    Hooks are called by modules, not by kernels.
    """
    if any(hooked(part) for part in conv.modules()):
        return None
    if type(conv) is nn.Conv2d:
        return conv, None
    # a look at its parts, since backbones do not know conditionings
    split = cast(_Split, conv)
    if hasattr(conv, "term") and type(split.layer) is nn.Conv2d:
        return split.layer, split
    return None
