"""The operators of the ray net that torch knows; see `_ops.py` for why operators."""

# ruff: noqa: ARG001 (a fake version takes what its operator takes)

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from paretocosmos.layers.kernels import _rays_launch
from paretocosmos.layers.kernels._ops import _none, _stacking

__all__ = ["map_term_backward_op", "map_term_op", "ray_maps_backward_op", "ray_maps_op"]


@torch.library.custom_op("paretocosmos::ray_maps", mutates_args=())
def ray_maps_op(rays: Tensor, first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
    """Give maps [S,G,J,10,10] and the pixels [S,G,J,4,4] between the layers."""
    return _rays_launch.ray_maps(rays, first, second)


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
    """Give the gradients of both weights; an empty tensor for what is not asked for."""
    given = grad, maps, pixels, rays, second
    found = _rays_launch.ray_maps_gradients(
        *given, needs_first=needs_first, needs_second=needs_second
    )
    dfirst, dsecond = (_none(grad) if one is None else one for one in found)
    return dfirst, dsecond


@torch.library.custom_op("paretocosmos::map_term", mutates_args=())
def map_term_op(maps: Tensor, weight: Tensor, height: int, width: int) -> Tensor:
    """Give the term [S,G,O,H - K + 1,W - K + 1]."""
    return _rays_launch.map_term(maps, weight, height, width)


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
    """Give the gradients of maps and weight; an empty tensor for what is not asked for."""
    found = _rays_launch.map_term_gradients(
        grad,
        maps,
        weight,
        height=height,
        width=width,
        needs_maps=needs_maps,
        needs_weight=needs_weight,
    )
    dmaps, dweight = (_none(grad) if one is None else one for one in found)
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
        second.new_empty((*second.shape[:3], 4, 4)) if needs_first else _none(grad),
        second.new_empty(second.shape) if needs_second else _none(grad),
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
        maps.new_empty(maps.shape) if needs_maps else _none(grad),
        weight.new_empty(weight.shape) if needs_weight else _none(grad),
    )


def _setup_maps(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    rays, first, second = inputs
    ctx.save_for_backward(*output, rays, second, first)
    ctx.set_materialize_grads(False)  # or a tensor of zeros is made for the pixels


def _backward_maps(ctx: Any, grad: Tensor | None, _: Tensor | None) -> tuple[Tensor | None, ...]:
    if grad is None:
        return None, None, None
    needs_rays, *needs = ctx.needs_input_grad
    maps, pixels, rays, second, first = ctx.saved_tensors
    drays = _ray_gradient(grad, maps, pixels, first, second) if needs_rays else None
    if not any(needs):
        return drays, None, None
    found = ray_maps_backward_op(grad, maps, pixels, rays, second, *needs)
    return drays, *(one if need else None for one, need in zip(found, needs, strict=True))


def _ray_gradient(
    grad: Tensor, maps: Tensor, pixels: Tensor, first: Tensor, second: Tensor
) -> Tensor:
    """By the library: rays are data in training, and only a curious caller asks."""
    d = torch.where(maps <= 0, 0.0, grad).transpose(0, 1).flatten(1, 2)
    d = F.conv2d(d, second.flatten(0, 1), stride=2, padding=1, groups=len(second))
    d = torch.where(pixels <= 0, 0.0, d.unflatten(1, second.shape[:2]).transpose(0, 1))
    return torch.einsum("sgiyx,sriyx->sgr", d, first)


def _setup_term(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    maps, weight, ctx.height, ctx.width = inputs
    ctx.save_for_backward(maps, weight)


def _backward_term(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    maps, weight, *_ = ctx.needs_input_grad
    given = *ctx.saved_tensors, ctx.height, ctx.width
    dmaps, dweight = map_term_backward_op(grad, *given, maps, weight)
    return dmaps if maps else None, dweight if weight else None, None, None


def _stacking_one(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> Any:
    """The same rule for an operator with one result, which is no tuple."""
    (term,), _ = _stacking(lambda *given: (map_term_op(*given),))(info, in_dims, *args)
    return term, 0


ray_maps_op.register_autograd(_backward_maps, setup_context=_setup_maps)
map_term_op.register_autograd(_backward_term, setup_context=_setup_term)
for op in (ray_maps_op, ray_maps_backward_op, map_term_backward_op):
    op.register_vmap(_stacking(op))
map_term_op.register_vmap(_stacking_one)
