"""The ray net's operators, registered with torch, and the launches of its kernels.

See `conv_pool_ops.py` for why they are operators; as there, tensors are stacked, seeds first.
"""

# ruff: noqa: ARG001 (a fake version takes what its operator takes)

import functools
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from paretocosmos.nn.kernels import ray_maps_triton
from paretocosmos.nn.kernels.conv_pool_ops import (
    _divide_up,
    _make_empty,
    _make_vmap_rule,
    _round_to_power_of_2,
    _split_seed_stride,
)

# Launch options and sizes of tiles: the sums are small, so what counts is waiting for loads.
OPTIONS = {"num_warps": 4, "num_stages": 1}
PIXELS = 32  # of a map, per program
POSITIONS = 64  # of the term, per program
CELLS = 16  # of a map's gradient, per program
WEIGHTS = 16  # of the term's filters, per program
MOST_ROWS = 256  # of a tile: what it does not hold is looped over
MOST_RAYS = 8  # summed over at once


@functools.cache
def count_most_pixels(size: int, enlarged: int) -> int:
    """Count the most pixels that the nearest neighbour gives one cell, with its rounding."""
    # float32, as ATen computes it: float64 would give some pixels to another cell
    scale = np.float32(size / enlarged)
    source = (np.arange(enlarged, dtype=np.float32) * scale).astype(np.int64)
    return int(np.bincount(np.minimum(source, size - 1)).max())


def _pad_axis(n: int, most: int) -> int:
    """Return a power of 2 of at least n, up to the most; at least 2, so that an axis is an axis."""
    return max(2, min(_round_to_power_of_2(n), most))


@torch.library.custom_op("paretocosmos::ray_maps", mutates_args=())
def ray_maps_op(rays: Tensor, first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
    """Return maps [S,G,J,10,10] and the pixels [S,G,J,4,4] between the layers."""
    seeds, batch, j = rays.shape
    maps = rays.new_empty((seeds, batch, j, 10, 10))
    pixels = rays.new_empty((seeds, batch, j, 4, 4))
    rays, stride = _split_seed_stride(rays)
    ray_maps_triton.rays_kernel[seeds * batch, j, _divide_up(100, PIXELS)](
        rays,
        first.contiguous(),
        second.contiguous(),
        maps,
        pixels,
        stride,
        batch,
        *(j, _pad_axis(j, 32), _pad_axis(j * 16, MOST_ROWS), PIXELS),
        **OPTIONS,
    )
    return maps, pixels


@torch.library.custom_op("paretocosmos::ray_maps_backward", mutates_args=())
def ray_maps_backward_op(
    grad: Tensor,
    maps: Tensor,
    pixels: Tensor,
    rays: Tensor,
    second: Tensor,
    needs_first: bool,
    needs_second: bool,
) -> tuple[Tensor, Tensor]:
    """Return the gradients of both weights; an empty tensor for what is not asked for."""
    seeds, batch, j = rays.shape
    dfirst = rays.new_empty((seeds, j, j, 4, 4)) if needs_first else _make_empty(grad)
    dsecond = rays.new_empty((seeds, j, j, 6, 6)) if needs_second else _make_empty(grad)
    tiles = seeds * j * 16 if needs_first else 0
    rays, stride = _split_seed_stride(rays)
    ray_maps_triton.rays_back_kernel[(tiles + (seeds * j * j if needs_second else 0),)](
        rays,
        second.contiguous(),
        pixels.contiguous(),
        maps.contiguous(),
        grad := grad.contiguous(),
        dfirst if needs_first else grad,  # not written where not needed
        dsecond if needs_second else grad,
        stride,
        batch,
        tiles,
        *(j, _pad_axis(j, 32), _pad_axis(batch, MOST_RAYS), _pad_axis(j * 36, 512)),
        **OPTIONS,
    )
    return dfirst, dsecond


@torch.library.custom_op("paretocosmos::map_term", mutates_args=())
def map_term_op(maps: Tensor, weight: Tensor, height: int, width: int) -> Tensor:
    """Return the term [S,G,O,H - K + 1,W - K + 1]."""
    seeds, batch, j, mh, mw = maps.shape
    o, k = weight.shape[1], weight.shape[-1]
    ch, cw = height - k + 1, width - k + 1
    term = maps.new_empty((seeds, batch, o, ch, cw))
    maps, stride = _split_seed_stride(maps)
    ray_maps_triton.term_kernel[seeds * batch, _divide_up(ch * cw, POSITIONS), o](
        maps,
        weight.contiguous(),
        term,
        stride,
        batch,
        mh / height,
        mw / width,
        *(j, o, k, mh, mw, height, width, _pad_axis(j, 32), POSITIONS),
        **OPTIONS,
    )
    return term


@torch.library.custom_op("paretocosmos::map_term_backward", mutates_args=())
def map_term_backward_op(
    grad: Tensor,
    maps: Tensor,
    weight: Tensor,
    height: int,
    width: int,
    needs_maps: bool,
    needs_weight: bool,
) -> tuple[Tensor, Tensor]:
    """Return the gradients of maps and weight; an empty tensor for what is not asked for.

    Sums over cells by one kernel, then products by another.
    """
    seeds, batch, j, mh, mw = maps.shape
    o, k = weight.shape[1], weight.shape[-1]
    cells = maps.new_empty((seeds, batch, o, k, k, mh, mw))
    ray_maps_triton.cells_kernel[seeds * batch * o, _divide_up(k * k * mh * mw, 128)](
        grad := grad.contiguous(),
        cells,
        mh / height,
        mw / width,
        *(
            k,
            mh,
            mw,
            height,
            width,
            count_most_pixels(mh, height),
            count_most_pixels(mw, width),
            128,
        ),
        **OPTIONS,
    )
    dmaps = maps.new_empty(maps.shape) if needs_maps else _make_empty(grad)
    dweight = maps.new_empty(weight.shape) if needs_weight else _make_empty(grad)
    tiles = seeds * batch * j * _divide_up(mh * mw, CELLS) if needs_maps else 0
    others = seeds * j * _divide_up(o * k * k, WEIGHTS) if needs_weight else 0
    maps, stride = _split_seed_stride(maps)
    ray_maps_triton.contract_kernel[(tiles + others,)](
        cells,
        maps,
        weight.contiguous(),
        dmaps if needs_maps else grad,  # any pointer where it is not needed
        dweight if needs_weight else grad,
        stride,
        batch,
        tiles,
        *(j, o, k * k, mh * mw),
        *(_pad_axis(o * k * k, MOST_ROWS), CELLS, WEIGHTS, _pad_axis(mh * mw, 128)),
        **OPTIONS,
    )
    return dmaps, dweight


@ray_maps_op.register_fake
def _(rays: Tensor, first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
    return rays.new_empty((*rays.shape, 10, 10)), rays.new_empty((*rays.shape, 4, 4))


@ray_maps_backward_op.register_fake
def _(
    grad: Tensor,
    maps: Tensor,
    pixels: Tensor,
    rays: Tensor,
    second: Tensor,
    needs_first: bool,
    needs_second: bool,
) -> tuple[Tensor, Tensor]:
    return (
        second.new_empty((*second.shape[:3], 4, 4)) if needs_first else _make_empty(grad),
        second.new_empty(second.shape) if needs_second else _make_empty(grad),
    )


@map_term_op.register_fake
def _(maps: Tensor, weight: Tensor, height: int, width: int) -> Tensor:
    o, k = weight.shape[1], weight.shape[-1]
    return maps.new_empty((*maps.shape[:2], o, height - k + 1, width - k + 1))


@map_term_backward_op.register_fake
def _(
    grad: Tensor,
    maps: Tensor,
    weight: Tensor,
    height: int,
    width: int,
    needs_maps: bool,
    needs_weight: bool,
) -> tuple[Tensor, Tensor]:
    return (
        maps.new_empty(maps.shape) if needs_maps else _make_empty(grad),
        weight.new_empty(weight.shape) if needs_weight else _make_empty(grad),
    )


def _save_maps(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    rays, first, second = inputs
    # maps and pixels say where the ReLUs cut
    ctx.save_for_backward(*output, rays, second, first)
    ctx.set_materialize_grads(False)  # or a tensor of zeros is made for the pixels


def _compute_maps_gradients(
    ctx: Any, grad: Tensor | None, _: Tensor | None
) -> tuple[Tensor | None, ...]:
    if grad is None:
        return None, None, None
    needs_rays, *needs = ctx.needs_input_grad  # of the two weights
    maps, pixels, rays, second, first = ctx.saved_tensors
    drays = None
    if needs_rays:  # by torch: rays are data in training, so it is rarely asked for
        # seeds become groups of one convolution, the adjoint of the transposed one
        d = torch.where(maps <= 0, 0.0, grad).transpose(0, 1).flatten(1, 2)
        d = F.conv2d(d, second.flatten(0, 1), stride=2, padding=1, groups=len(second))
        d = torch.where(pixels <= 0, 0.0, d.unflatten(1, second.shape[:2]).transpose(0, 1))
        drays = torch.einsum("sgiyx,sriyx->sgr", d, first)
    if not any(needs):
        return drays, None, None
    gradients = ray_maps_backward_op(grad, maps, pixels, rays, second, *needs)
    return drays, *(
        gradient if need else None for gradient, need in zip(gradients, needs, strict=True)
    )


def _save_term(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    """Save what the backward pass of `map_term_op`, the ray's term of the convolution, needs."""
    maps, weight, ctx.height, ctx.width = inputs
    ctx.save_for_backward(maps, weight)  # the enlarged maps are computed again


def _compute_term_gradients(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    maps, weight, *_ = ctx.needs_input_grad
    arguments = *ctx.saved_tensors, ctx.height, ctx.width
    dmaps, dweight = map_term_backward_op(grad, *arguments, maps, weight)
    return dmaps if maps else None, dweight if weight else None, None, None


ray_maps_op.register_autograd(_compute_maps_gradients, setup_context=_save_maps)
map_term_op.register_autograd(_compute_term_gradients, setup_context=_save_term)
for op in (ray_maps_op, ray_maps_backward_op, map_term_op, map_term_backward_op):
    op.register_vmap(_make_vmap_rule(op))
