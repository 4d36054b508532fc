"""A convolution with a ray's term, pooled and rectified: by the kernels, or by the library."""

from typing import Literal, get_args

import torch.nn.functional as F
from torch import Tensor

from paretocosmos.errors import ConfigurationError
from paretocosmos.layers.kernels._where import taken

__all__ = ["Precision", "conv_pool", "usable"]

Precision = Literal["tf32", "tf32x3", "ieee"]
"""How products are taken: tf32 inputs, three tf32 products (close to float32), or plain float32."""

MOST_CHANNELS = 64  # output channels of one tile
MOST_WEIGHTS = 512  # per output channel
MOST_ELEMENTS = 2**31 - 1  # offsets within a seed are 32-bit


def conv_pool(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    term: Tensor | None = None,
    *,
    precision: Precision = "ieee",
) -> Tensor:
    """relu(max_pool2d(conv2d(x, weight, bias) + term, 2)), fused where that is `usable`.

    Differentiable in every argument; the gradient of `x` is computed only where asked for. Under
    `torch.vmap` the mapped axis (several seeds) becomes part of the same launches. Elsewhere the
    same function by torch's own operators, and `precision` is then torch's setting.

    Args:
        x: [B, C, H, W].
        weight: [O, C, K, K]; stride 1, no padding.
        bias: [O].
        term: [G, O, H - K + 1, W - K + 1], added before the pool: one map per ray group, where the
            samples of a group lie together and G divides B.
        precision: of the products; sums are always float32.

    Returns:
        [B, O, (H - K + 1) // 2, (W - K + 1) // 2].

    Example:
        >>> import torch
        >>> conv_pool(torch.ones(4, 1, 8, 8), torch.ones(2, 1, 5, 5), torch.zeros(2)).shape
        torch.Size([4, 2, 2, 2])
    """
    if precision not in get_args(Precision):
        choices = ", ".join(get_args(Precision))
        raise ConfigurationError(f"`precision` must be one of {choices}; found {precision!r}")
    if term is not None and x.shape[0] % term.shape[0]:
        raise ConfigurationError(
            "`term` has one map per group, so their number must divide the batch; found "
            f"{term.shape[0]} maps for {x.shape[0]} samples"
        )
    if not usable(x, weight, bias, term):
        return _by_library(x, weight, bias, term)
    from paretocosmos.layers.kernels._ops import forward_op

    maps = None if term is None else term.unsqueeze(0)
    h, _ = forward_op(x.unsqueeze(0), weight.unsqueeze(0), bias.unsqueeze(0), maps, precision)
    result: Tensor = h.squeeze(0)
    return result


def usable(x: Tensor, weight: Tensor, bias: Tensor | None, term: Tensor | None = None) -> bool:
    """Whether the kernels take this: tensors they are `taken` for, few channels, small filters."""
    if bias is None or x.dim() != 4 or weight.dim() != 4:
        return False
    rest = [weight, bias] if term is None else [weight, bias, term]
    batch, channels, *size = x.shape
    outputs, fan, *kernel = weight.shape
    conv = [side - kernel[0] + 1 for side in size]
    pooled = [side // 2 for side in conv]
    return (
        taken(x, *rest)
        and kernel[0] == kernel[1]
        and channels == fan
        and bias.shape == (outputs,)
        and min(batch, *pooled) >= 1
        and outputs <= MOST_CHANNELS
        and fan * kernel[0] ** 2 <= MOST_WEIGHTS
        and batch * pooled[0] * pooled[1] * max(fan * (kernel[0] + 1) ** 2, outputs)
        <= MOST_ELEMENTS
        and x.numel() <= MOST_ELEMENTS
        and (term is None or list(term.shape[1:]) == [outputs, *conv])
    )


def _by_library(x: Tensor, weight: Tensor, bias: Tensor, term: Tensor | None) -> Tensor:
    y = F.conv2d(x, weight, bias)
    if term is not None:
        y = (y.unflatten(0, (term.shape[0], -1)) + term.unsqueeze(1)).flatten(0, 1)
    return F.max_pool2d(y, 2).relu()
