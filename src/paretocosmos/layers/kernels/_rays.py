"""The net that turns rays into maps beside an image, and what the maps add to its convolution.

Through a library some thirty kernels forward and back, each too small to fill a GPU; here two
forward and three back.
"""

import torch.nn.functional as F
from torch import Tensor

from paretocosmos.layers.kernels._where import taken

__all__ = ["map_term", "ray_maps", "usable_maps", "usable_term"]

MOST_RAYS = 32  # entries of a ray, so maps
MOST_FILTERS, MOST_SIDE = 64, 7  # of the convolution that reads the maps
MOST_PIXELS = 64  # of an enlarged map for one cell, since summing them is written out
MOST_ELEMENTS = 2**31 - 1  # offsets within a ray are 32-bit


def ray_maps(rays: Tensor, first_weight: Tensor, second_weight: Tensor) -> Tensor:
    """Two transposed convolutions with ReLU of rays taken as images of one pixel.

    The first makes 4 x 4 pixels of one, the second, stride 2 and padding 1, 10 x 10 of those.
    Fused where that is `usable_maps`, by torch's own operators elsewhere. Under `torch.vmap` the
    mapped axis (several seeds) becomes part of the same launches.

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
    if not usable_maps(rays, first_weight, second_weight):
        pixels = F.relu(rays @ first_weight.flatten(1)).unflatten(1, first_weight.shape[1:])
        return F.relu(F.conv_transpose2d(pixels, second_weight, stride=2, padding=1))
    from paretocosmos.layers.kernels._rays_ops import ray_maps_op

    maps, _ = ray_maps_op(*(t.unsqueeze(0) for t in (rays, first_weight, second_weight)))
    result: Tensor = maps.squeeze(0)
    return result


def map_term(maps: Tensor, weight: Tensor, size: tuple[int, int]) -> Tensor:
    """conv2d(interpolate(maps, size, mode="nearest"), weight), the enlarged maps never in memory.

    Differentiable in both; a gradient is computed only where asked for. Fused where that is
    `usable_term`, by torch's own operators elsewhere, and over seeds as `ray_maps`.

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
    if not usable_term(maps, weight, (height, width)):
        return F.conv2d(F.interpolate(maps, size=(height, width), mode="nearest"), weight)
    from paretocosmos.layers.kernels._rays_ops import map_term_op

    result: Tensor = map_term_op(maps.unsqueeze(0), weight.unsqueeze(0), height, width).squeeze(0)
    return result


def usable_maps(rays: Tensor, first_weight: Tensor, second_weight: Tensor) -> bool:
    """Whether the kernels take this: float32 on a CUDA device, J up to 32, Triton at hand."""
    # first where it runs: asking for sizes that may vary would fix them in an exported model
    if not taken(rays, first_weight, second_weight) or rays.dim() != 2 or min(rays.shape) < 1:
        return False
    j = rays.shape[1]
    return (
        j <= MOST_RAYS
        and first_weight.shape == (j, j, 4, 4)
        and second_weight.shape == (j, j, 6, 6)
        and rays.shape[0] * j * 100 <= MOST_ELEMENTS
    )


def usable_term(maps: Tensor, weight: Tensor, size: tuple[int, int]) -> bool:
    """Whether the kernels take this: as `usable_maps`, and small filters, cells of few pixels."""
    if not taken(maps, weight) or maps.dim() != 4 or weight.dim() != 4:
        return False
    _, j, *cells = maps.shape
    outputs, fan, side, other = weight.shape
    if min(*maps.shape, *weight.shape, *size) < 1 or side != other or min(size) < side:
        return False
    from paretocosmos.layers.kernels._rays_launch import most_pixels

    pixels = [most_pixels(*pair) for pair in zip(cells, size, strict=True)]
    return (
        fan == j <= MOST_RAYS
        and outputs <= MOST_FILTERS
        and side <= MOST_SIDE
        and pixels[0] * pixels[1] <= MOST_PIXELS
        and maps.numel() <= MOST_ELEMENTS
        and outputs * side**2 * cells[0] * cells[1] <= MOST_ELEMENTS
        and outputs * size[0] * size[1] <= MOST_ELEMENTS
    )
