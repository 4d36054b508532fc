"""Fused CUDA kernels for the blocks of a small convolutional network.

A LeNet block through a library is some ten kernels forward and back, each bound by its launch or by
memory traffic that fusing removes. Here it is one forward and two to five back. Triton compiles
them at first use; it comes with the CUDA builds of torch and is no dependency of this package, so
nothing here imports it until a kernel is asked for.

Here are the functions that networks call, which decide between kernel and library: `conv_pool` is
a convolution with a ray's term, pooled and rectified; `ray_maps` turns rays into maps beside an
image, and `map_term` computes what these maps add to its convolution: through a library some thirty
kernels forward and back, each too small to fill a GPU, here two forward and three back.
`conv_pool_ops.py` and `ray_maps_ops.py` make them operators of torch and launch the kernels in
`*_triton.py` and `conv_pool_direct.py`.
"""

import importlib.util
import os
import shutil
import warnings
from functools import cache
from typing import Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor

from paretocosmos.errors import ConfigurationError, EngineWarning

Precision = Literal["tf32", "tf32x3", "ieee"]
"""Precision of products: tf32 inputs, three tf32 products (close to float32), or plain float32."""

MOST_CHANNELS = 64  # output channels of one tile
MOST_WEIGHTS = 512  # per output channel
MOST_ELEMENTS = 2**31 - 1  # offsets within a seed or a ray are 32-bit


def conv_pool(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    term: Tensor | None = None,
    *,
    precision: Precision = "ieee",
) -> Tensor:
    """relu(max_pool2d(conv2d(x, weight, bias) + term, 2)), fused if `can_fuse_conv_pool`.

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
    # also where torch computes it: a typo must not wait for a GPU to show
    if precision not in get_args(Precision):
        choices = ", ".join(get_args(Precision))
        raise ConfigurationError(f"`precision` must be one of {choices}; found {precision!r}")
    if term is not None and x.shape[0] % term.shape[0]:
        raise ConfigurationError(
            "`term` has one map per group, so their number must divide the batch; found "
            f"{term.shape[0]} maps for {x.shape[0]} samples"
        )
    if not can_fuse_conv_pool(x, weight, bias, term):
        return _compute_with_torch(x, weight, bias, term)
    from paretocosmos.nn.kernels.conv_pool_ops import forward_op

    maps = None if term is None else term.unsqueeze(0)
    h, _ = forward_op(x.unsqueeze(0), weight.unsqueeze(0), bias.unsqueeze(0), maps, precision)
    result: Tensor = h.squeeze(0)
    return result


def can_fuse_conv_pool(
    x: Tensor, weight: Tensor, bias: Tensor | None, term: Tensor | None = None
) -> bool:
    """Return True if the kernels take this: supported tensors, few channels, small filters."""
    if bias is None or x.dim() != 4 or weight.dim() != 4:
        return False
    rest = [weight, bias] if term is None else [weight, bias, term]
    batch, channels, *size = x.shape
    outputs, fan, *kernel = weight.shape
    conv = [side - kernel[0] + 1 for side in size]
    pooled = [side // 2 for side in conv]
    return (
        supports_tensors(x, *rest)
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


def _compute_with_torch(x: Tensor, weight: Tensor, bias: Tensor, term: Tensor | None) -> Tensor:
    """Compute the same block by torch's own operators."""
    y = F.conv2d(x, weight, bias)
    if term is not None:
        y = (y.unflatten(0, (term.shape[0], -1)) + term.unsqueeze(1)).flatten(0, 1)
    return F.max_pool2d(y, 2).relu()  # in this order the ReLU runs on a quarter of the numbers


MOST_RAYS = 32  # entries of a ray, so maps
MOST_FILTERS, MOST_SIDE = 64, 7  # of the convolution that reads the maps
MOST_PIXELS = 64  # of an enlarged map for one cell, since summing them is written out


def ray_maps(rays: Tensor, first_weight: Tensor, second_weight: Tensor) -> Tensor:
    """Two transposed convolutions with ReLU of rays taken as images of one pixel.

    The first makes 4 x 4 pixels of one, the second, stride 2 and padding 1, 10 x 10 of those.
    Fused where that is `can_fuse_ray_maps`, by torch's own operators elsewhere. Under `torch.vmap`
    the mapped axis (several seeds) becomes part of the same launches.

    Args:
        rays: [G, J]; data as a rule, so that their gradient, if asked for, is the library's.
        first_weight: [J, J, 4, 4], the rays' entries first, as in `torch.nn.ConvTranspose2d`.
        second_weight: [J, J, 6, 6].

    Returns:
        [G, J, 10, 10].

    Example:
        >>> import torch
        >>> ray_maps(torch.ones(3, 2), torch.ones(2, 2, 4, 4), torch.ones(2, 2, 6, 6)).shape
        torch.Size([3, 2, 10, 10])
    """
    if not can_fuse_ray_maps(rays, first_weight, second_weight):
        pixels = F.relu(rays @ first_weight.flatten(1)).unflatten(1, first_weight.shape[1:])
        return F.relu(F.conv_transpose2d(pixels, second_weight, stride=2, padding=1))
    from paretocosmos.nn.kernels.ray_maps_ops import ray_maps_op

    maps, _ = ray_maps_op(*(t.unsqueeze(0) for t in (rays, first_weight, second_weight)))
    result: Tensor = maps.squeeze(0)
    return result


def map_term(maps: Tensor, weight: Tensor, size: tuple[int, int]) -> Tensor:
    """conv2d(interpolate(maps, size, mode="nearest"), weight), the enlarged maps never in memory.

    Differentiable in both; a gradient is computed only where asked for. Fused where that is
    `can_fuse_map_term`, by torch's own operators elsewhere, and over seeds as `ray_maps`.

    Args:
        maps: [G, J, h, w].
        weight: [O, J, K, K]; stride 1, no padding.
        size: height H and width W the maps are enlarged to.

    Returns:
        [G, O, H - K + 1, W - K + 1].

    Example:
        >>> import torch
        >>> map_term(torch.ones(3, 2, 10, 10), torch.ones(4, 2, 5, 5), (36, 36)).shape
        torch.Size([3, 4, 32, 32])
    """
    height, width = size
    if not can_fuse_map_term(maps, weight, (height, width)):
        return F.conv2d(F.interpolate(maps, size=(height, width), mode="nearest"), weight)
    from paretocosmos.nn.kernels.ray_maps_ops import map_term_op

    result: Tensor = map_term_op(maps.unsqueeze(0), weight.unsqueeze(0), height, width).squeeze(0)
    return result


def can_fuse_ray_maps(rays: Tensor, first_weight: Tensor, second_weight: Tensor) -> bool:
    """Return True if the kernels support these tensors and sizes, J up to 32."""
    # first where it runs: asking for sizes that may vary would fix them in an exported model
    if (
        not supports_tensors(rays, first_weight, second_weight)
        or rays.dim() != 2
        or min(rays.shape) < 1
    ):
        return False
    j = rays.shape[1]
    return (
        j <= MOST_RAYS
        and first_weight.shape == (j, j, 4, 4)
        and second_weight.shape == (j, j, 6, 6)
        and rays.shape[0] * j * 100 <= MOST_ELEMENTS
    )


def can_fuse_map_term(maps: Tensor, weight: Tensor, size: tuple[int, int]) -> bool:
    """Return True if the kernels support these: small filters, few pixels per cell of a map."""
    if not supports_tensors(maps, weight) or maps.dim() != 4 or weight.dim() != 4:
        return False
    _, j, *cells = maps.shape
    outputs, fan, side, other = weight.shape
    if min(*maps.shape, *weight.shape, *size) < 1 or side != other or min(size) < side:
        return False
    from paretocosmos.nn.kernels.ray_maps_ops import count_most_pixels

    pixels = [count_most_pixels(*pair) for pair in zip(cells, size, strict=True)]
    return (
        fan == j <= MOST_RAYS
        and outputs <= MOST_FILTERS
        and side <= MOST_SIDE
        and pixels[0] * pixels[1] <= MOST_PIXELS
        and maps.numel() <= MOST_ELEMENTS
        and outputs * side**2 * cells[0] * cells[1] <= MOST_ELEMENTS
        and outputs * size[0] * size[1] <= MOST_ELEMENTS
    )


def supports_tensors(first: Tensor, *rest: Tensor) -> bool:
    """Return True for float32 tensors on one device with kernels, outside autocast and compilation.

    A compiler that records the network from outside has kernels of its own.
    """
    return (
        not torch.compiler.is_compiling()
        and runs_on(first.device.type)
        and first.dtype == torch.float32
        and all(t.dtype == first.dtype and t.device == first.device for t in rest)
        and not torch.is_autocast_enabled(first.device.type)
    )


def runs_on(device: str) -> bool:
    """Return True if Triton is available for a kind of device.

    With TRITON_INTERPRET=1 a CPU will do, slowly: that is for the tests.
    """
    interpreted = os.environ.get("TRITON_INTERPRET") == "1"
    if device != "cuda" and not interpreted:
        return False
    if importlib.util.find_spec("triton") is None:
        return False
    return interpreted or has_c_compiler()


@cache
def has_c_compiler() -> bool:
    """Return True if Triton will find a C compiler to build its launchers with."""
    if os.environ.get("CC") or any(map(shutil.which, ("gcc", "clang", "cc"))):
        return True
    warnings.warn(
        "the fused kernels need a C compiler, found none: training continues with the library's "
        "kernels, which are slower but give the same results; install gcc",
        EngineWarning,
        stacklevel=2,
    )
    return False
