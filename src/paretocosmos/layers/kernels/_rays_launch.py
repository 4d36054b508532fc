"""How the kernels of the ray net are launched; as in `_launch.py`, stacked tensors, seeds first."""

import functools

import numpy as np
from torch import Tensor

from paretocosmos.layers.kernels import _rays_maps, _rays_term
from paretocosmos.layers.kernels._launch import _ceil, _power, _seed_stride

__all__ = ["map_term", "map_term_gradients", "most_pixels", "ray_maps", "ray_maps_gradients"]

OPTIONS = {"num_warps": 4, "num_stages": 1}
PIXELS = 32  # of a map, per program
POSITIONS = 64  # of the term, per program
CELLS = 16  # of a map's gradient, per program
WEIGHTS = 16  # of the term's filters, per program
MOST_ROWS = 256  # of a tile: what it does not hold is looped over
MOST_RAYS = 8  # summed over at once


@functools.cache
def most_pixels(size: int, enlarged: int) -> int:
    """The most pixels that the nearest neighbour gives one cell, counted with its rounding."""
    scale = np.float32(size / enlarged)
    source = (np.arange(enlarged, dtype=np.float32) * scale).astype(np.int64)
    return int(np.bincount(np.minimum(source, size - 1)).max())


def _padded(n: int, most: int) -> int:
    """A power of two that n fits in, up to the most; at least 2, so that an axis is an axis."""
    return max(2, min(_power(n), most))


def ray_maps(rays: Tensor, first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
    """Give maps [S,B,J,10,10] and the pixels [S,B,J,4,4] they were made from."""
    seeds, batch, j = rays.shape
    maps = rays.new_empty((seeds, batch, j, 10, 10))
    pixels = rays.new_empty((seeds, batch, j, 4, 4))
    rays, stride = _seed_stride(rays)
    _rays_maps.rays_kernel[seeds * batch, j, _ceil(100, PIXELS)](
        rays,
        first.contiguous(),
        second.contiguous(),
        maps,
        pixels,
        stride,
        batch,
        *(j, _padded(j, 32), _padded(j * 16, MOST_ROWS), PIXELS),
        **OPTIONS,
    )
    return maps, pixels


def ray_maps_gradients(
    grad: Tensor,
    maps: Tensor,
    pixels: Tensor,
    rays: Tensor,
    second: Tensor,
    *,
    needs_first: bool,
    needs_second: bool,
) -> tuple[Tensor | None, Tensor | None]:
    """Give the gradients of both weights, those that are needed, in one launch."""
    seeds, batch, j = rays.shape
    dfirst = rays.new_empty((seeds, j, j, 4, 4)) if needs_first else None
    dsecond = rays.new_empty((seeds, j, j, 6, 6)) if needs_second else None
    tiles = seeds * j * 16 if needs_first else 0
    rays, stride = _seed_stride(rays)
    _rays_maps.rays_back_kernel[(tiles + (seeds * j * j if needs_second else 0),)](
        rays,
        second.contiguous(),
        pixels.contiguous(),
        maps.contiguous(),
        grad := grad.contiguous(),
        grad if dfirst is None else dfirst,  # not written where not needed
        grad if dsecond is None else dsecond,
        stride,
        batch,
        tiles,
        *(j, _padded(j, 32), _padded(batch, MOST_RAYS), _padded(j * 36, 512)),
        **OPTIONS,
    )
    return dfirst, dsecond


def map_term(maps: Tensor, weight: Tensor, height: int, width: int) -> Tensor:
    """Give the term [S,B,O,H - K + 1,W - K + 1]."""
    seeds, batch, j, mh, mw = maps.shape
    o, k = weight.shape[1], weight.shape[-1]
    ch, cw = height - k + 1, width - k + 1
    term = maps.new_empty((seeds, batch, o, ch, cw))
    maps, stride = _seed_stride(maps)
    _rays_term.term_kernel[seeds * batch, _ceil(ch * cw, POSITIONS), o](
        maps,
        weight.contiguous(),
        term,
        stride,
        batch,
        mh / height,
        mw / width,
        *(j, o, k, mh, mw, height, width, _padded(j, 32), POSITIONS),
        **OPTIONS,
    )
    return term


def map_term_gradients(
    grad: Tensor, maps: Tensor, weight: Tensor, *, height: int, width: int, **needs: bool
) -> tuple[Tensor | None, Tensor | None]:
    """Give the gradients of maps and weight: sums over cells, then both products in one launch."""
    seeds, batch, j, mh, mw = maps.shape
    o, k = weight.shape[1], weight.shape[-1]
    cells = maps.new_empty((seeds, batch, o, k, k, mh, mw))
    _rays_term.cells_kernel[seeds * batch * o, _ceil(k * k * mh * mw, 128)](
        grad := grad.contiguous(),
        cells,
        mh / height,
        mw / width,
        *(k, mh, mw, height, width, most_pixels(mh, height), most_pixels(mw, width), 128),
        **OPTIONS,
    )
    dmaps = maps.new_empty(maps.shape) if needs["needs_maps"] else None
    dweight = maps.new_empty(weight.shape) if needs["needs_weight"] else None
    tiles = 0 if dmaps is None else seeds * batch * j * _ceil(mh * mw, CELLS)
    others = 0 if dweight is None else seeds * j * _ceil(o * k * k, WEIGHTS)
    maps, stride = _seed_stride(maps)
    _rays_term.contract_kernel[(tiles + others,)](
        cells,
        maps,
        weight.contiguous(),
        grad if dmaps is None else dmaps,
        grad if dweight is None else dweight,
        stride,
        batch,
        tiles,
        *(j, o, k * k, mh * mw),
        *(_padded(o * k * k, MOST_ROWS), CELLS, WEIGHTS, _padded(mh * mw, 128)),
        **OPTIONS,
    )
    return dmaps, dweight
