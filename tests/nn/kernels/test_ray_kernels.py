"""The ray net's kernels against torch's own operators in float64; how to run: test_conv_pool.py."""

import importlib.util
import itertools
from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tests.nn.kernels.oracle import (
    DEVICE,
    check_capture,
    check_gradients_at_once,
    check_recording,
    compare,
    leaves,
    needs_cuda,
    needs_triton,
)
from torch import Tensor

from paretocosmos.nn import kernels
from paretocosmos.nn.kernels import can_fuse_map_term, can_fuse_ray_maps, map_term, ray_maps
from paretocosmos.nn.kernels.ray_maps_ops import count_most_pixels

# G, J, h, w, O, K, H, W
TERMS = [
    pytest.param((1, 2, 10, 10, 10, 5, 36, 36), id="lenet"),
    pytest.param((4, 2, 10, 10, 3, 5, 24, 24), id="four-groups"),
    pytest.param((1, 10, 10, 10, 10, 5, 36, 36), id="ten-objectives"),
    pytest.param((2, 1, 10, 10, 4, 3, 24, 24), id="one-objective"),
    pytest.param((1, 3, 10, 10, 5, 5, 32, 32), id="cifar"),
    pytest.param((2, 3, 10, 10, 7, 3, 37, 20), id="not-square"),
    pytest.param((3, 2, 13, 5, 2, 2, 9, 11), id="cells-without-a-pixel"),
    pytest.param((1, 2, 10, 10, 12, 5, 10, 10), id="not-enlarged"),
    pytest.param((9, 2, 4, 3, 2, 1, 4, 3), id="taps-of-one"),
    pytest.param((1, 2, 2, 7, 64, 7, 10, 8), id="widest-filters"),
    pytest.param((2, 32, 2, 2, 2, 2, 16, 16), id="most-objectives"),
]


def maps_reference(rays: Tensor, first: Tensor, second: Tensor) -> Tensor:
    pixels = F.relu(F.conv_transpose2d(rays[:, :, None, None], first))
    return F.relu(F.conv_transpose2d(pixels, second, stride=2, padding=1))


def term_reference(maps: Tensor, weight: Tensor, size: tuple[int, int]) -> Tensor:
    return F.conv2d(F.interpolate(maps, size=size, mode="nearest"), weight)


def rays_of(g: int, j: int, *first: int) -> list[Tensor]:
    rays = torch.rand(*first, g, j) + 0.1
    weights = torch.randn(*first, j, j, 4, 4), torch.randn(*first, j, j, 6, 6)
    return [rays.to(DEVICE), *(t.to(DEVICE).requires_grad_() for t in weights)]


def term_of(shape: tuple[int, ...], *first: int) -> list[Tensor]:
    g, j, h, w, o, k, _, _ = shape
    tensors = torch.randn(*first, g, j, h, w), torch.randn(*first, o, j, k, k)
    return [t.to(DEVICE).requires_grad_() for t in tensors]


def sized(function: Callable[..., Tensor], size: tuple[int, ...]) -> Callable[..., Tensor]:
    return lambda maps, weight: function(maps, weight, size)


def both(size: tuple[int, int], *, plain: bool = False) -> Callable[..., Tensor]:
    """The whole ray net, rays to term."""
    inner, outer = (maps_reference, term_reference) if plain else (ray_maps, map_term)

    def net(rays: Tensor, first: Tensor, second: Tensor, weight: Tensor) -> Tensor:
        return outer(inner(rays, first, second), weight, size)

    return net


def net_of(g: int, j: int, *first: int) -> list[Tensor]:
    weight = torch.randn(*first, 5, j, 3, 3, device=DEVICE, requires_grad=True)
    return [*rays_of(g, j, *first), weight]


def test_without_triton_the_library_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "runs_on", lambda device: False)
    inputs = rays_of(4, 3)
    assert not can_fuse_ray_maps(*inputs)
    compare(ray_maps, maps_reference, inputs)
    terms = term_of((2, 3, 10, 10, 7, 3, 37, 20))
    assert not can_fuse_map_term(terms[0], terms[1], (37, 20))
    compare(sized(map_term, (37, 20)), sized(term_reference, (37, 20)), terms)


def test_triton_may_be_missing_and_nothing_minds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert not can_fuse_ray_maps(*rays_of(4, 3))
    from paretocosmos.nn.kernels import ray_maps_ops, ray_maps_triton  # both import without it

    assert {ray_maps_ops.__name__, ray_maps_triton.__name__}


def test_refuses_what_the_kernels_do_not_take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "runs_on", lambda device: True)
    one = torch.ones
    first, second = one(2, 2, 4, 4), one(2, 2, 6, 6)
    assert can_fuse_ray_maps(one(1, 2), first, second)
    assert not can_fuse_ray_maps(one(0, 2), first, second)
    assert not can_fuse_ray_maps(one(2), first, second)
    assert not can_fuse_ray_maps(one(1, 2).double(), first, second)
    assert not can_fuse_ray_maps(one(1, 2), second, second)
    assert not can_fuse_ray_maps(one(1, 33), one(33, 33, 4, 4), one(33, 33, 6, 6))
    maps, weight = one(1, 2, 10, 10), one(10, 2, 5, 5)
    assert can_fuse_map_term(maps, weight, (36, 36))
    assert not can_fuse_map_term(maps, weight, (4, 36))
    assert not can_fuse_map_term(maps, weight, (90, 90))
    assert not can_fuse_map_term(maps, one(10, 3, 5, 5), (36, 36))
    assert not can_fuse_map_term(maps, one(10, 2, 5, 3), (36, 36))
    assert not can_fuse_map_term(maps, one(65, 2, 5, 5), (36, 36))
    assert not can_fuse_map_term(maps, one(10, 2, 8, 8), (36, 36))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert not can_fuse_map_term(maps, weight, (36, 36))


def test_cells_are_counted_as_torch_rounds() -> None:
    for size, enlarged in itertools.product((1, 2, 3, 7, 10, 13, 29), range(1, 300)):
        source = F.interpolate(torch.arange(float(size))[None, None], enlarged, mode="nearest")
        assert (
            count_most_pixels(size, enlarged) == np.bincount(source.flatten().int().numpy()).max()
        )


@needs_triton
@pytest.mark.parametrize("g", [1, 4, 11])
@pytest.mark.parametrize("j", [1, 2, 3, 10])
def test_maps_and_gradients(g: int, j: int) -> None:
    inputs = rays_of(g, j)
    assert can_fuse_ray_maps(*inputs)
    compare(ray_maps, maps_reference, inputs)


@needs_triton
def test_maps_of_most_objectives() -> None:
    compare(ray_maps, maps_reference, rays_of(2, 20))  # more than one tile holds


@needs_triton
def test_rays_may_want_a_gradient() -> None:
    inputs = rays_of(2, 3)
    inputs[0].requires_grad_()
    compare(ray_maps, maps_reference, inputs)


@needs_triton
@pytest.mark.parametrize("shape", TERMS)
def test_term_and_gradients(shape: tuple[int, ...]) -> None:
    inputs = term_of(shape)
    assert can_fuse_map_term(inputs[0], inputs[1], (shape[-2], shape[-1]))
    compare(sized(map_term, shape[-2:]), sized(term_reference, shape[-2:]), inputs)


@needs_triton
def test_nearest_as_torch_has_it_at_many_sizes() -> None:
    """One tap of weight one shows which cell each pixel reads, and which pixels a cell."""
    one = torch.ones(1, 1, 1, 1, device=DEVICE)
    for height in (*range(1, 60, 2), 61, 77, 79):
        size = height, 80 - height
        maps = torch.rand(1, 1, 10, 11, device=DEVICE, requires_grad=True)
        assert can_fuse_map_term(maps, one, size)
        mine, exact = map_term(maps, one, size), term_reference(maps, one, size)
        assert torch.equal(mine, exact)
        grads = [torch.autograd.grad(t.square().sum(), maps)[0] for t in (mine, exact)]
        torch.testing.assert_close(*grads)


@needs_triton
@pytest.mark.parametrize("seeds", [1, 3])
@pytest.mark.parametrize(("g", "j"), [(1, 2), (4, 3), (1, 10)])
def test_several_seeds(seeds: int, g: int, j: int) -> None:
    mine, plain = (torch.vmap(both((24, 17), plain=plain)) for plain in (False, True))
    compare(mine, plain, net_of(g, j, seeds))


@needs_triton
@pytest.mark.parametrize("shared", range(4))
def test_seeds_may_share_an_argument(shared: int) -> None:
    inputs = net_of(2, 2, 3)
    inputs[shared] = inputs[shared][0].detach().clone().requires_grad_(shared > 0)
    dims = tuple(None if i == shared else 0 for i in range(4))
    mine, plain = (torch.vmap(both((24, 17), plain=p), in_dims=dims) for p in (False, True))
    compare(mine, plain, inputs)


@needs_triton
def test_seeds_may_share_maps() -> None:
    shape = (2, 3, 10, 10, 7, 3, 37, 20)
    inputs = [term_of(shape)[0], term_of(shape, 3)[1]]
    mine, plain = (sized(f, shape[-2:]) for f in (map_term, term_reference))
    compare(torch.vmap(mine, in_dims=(None, 0)), torch.vmap(plain, in_dims=(None, 0)), inputs)


@needs_triton
@pytest.mark.parametrize("needs", [True, False])
def test_rays_of_seeds_may_want_a_gradient(needs: bool) -> None:
    inputs = [t.detach().requires_grad_(needs) for t in rays_of(2, 3, 2)]
    inputs[0].requires_grad_()
    compare(torch.vmap(ray_maps), torch.vmap(maps_reference), inputs)


@needs_triton
@pytest.mark.parametrize("wanted", [0, 1])
def test_nothing_is_computed_that_is_not_needed(
    monkeypatch: pytest.MonkeyPatch, wanted: int
) -> None:
    """Empty memory stands for every gradient that is not wanted, and no program writes one."""
    from paretocosmos.nn.kernels import ray_maps_ops

    asked: list[tuple[bool, ...]] = []

    def watched(name: str) -> None:
        original = getattr(ray_maps_ops, name)

        def watching(*args: object, **kwargs: object) -> object:
            found = original(*args, **kwargs)
            asked.append(tuple(one.numel() > 0 for one in found))
            return found

        monkeypatch.setattr(ray_maps_ops, name, watching)

    watched("ray_maps_backward_op")
    watched("map_term_backward_op")
    inputs, terms = rays_of(2, 2), term_of((2, 2, 10, 10, 3, 3, 24, 24))
    inputs[1 + (1 - wanted)].requires_grad_(False)
    terms[1 - wanted].requires_grad_(False)
    compare(ray_maps, maps_reference, inputs)
    compare(sized(map_term, (24, 24)), sized(term_reference, (24, 24)), terms)
    assert asked == [(wanted == 0, wanted == 1)] * 2


@needs_triton
def test_nan_spreads() -> None:
    rays, first, second = rays_of(2, 2)
    rays[1, 0] = torch.nan
    maps = ray_maps(rays, first, second)
    assert torch.equal(maps.isnan(), maps_reference(rays, first, second).isnan())


@needs_triton
def test_repeats_bit_for_bit() -> None:
    inputs = net_of(2, 3, 2)
    net = torch.vmap(both((20, 20)))

    def once() -> tuple[Tensor, ...]:
        term = net(*inputs)
        return (term, *torch.autograd.grad(term.square().sum(), leaves(inputs)))

    assert all(torch.equal(a, b) for a, b in zip(once(), once(), strict=True))


@needs_triton
@pytest.mark.parametrize("seeds", [None, 2])
def test_can_be_recorded(seeds: int | None) -> None:
    inputs = net_of(1, 2) if seeds is None else net_of(1, 2, seeds)
    forward = both((16, 16)) if seeds is None else torch.vmap(both((16, 16)))
    operators = ["ray_maps", "map_term", "map_term_backward", "ray_maps_backward"]
    check_recording(forward, inputs, operators)


@needs_triton
@pytest.mark.parametrize("seeds", [None, 2])
def test_several_gradients_at_once(seeds: int | None) -> None:
    functions = [both((14, 11)), both((14, 11), plain=True)]
    if seeds is not None:
        functions = [torch.vmap(function) for function in functions]
    check_gradients_at_once(
        functions[0], functions[1], net_of(2, 3) if seeds is None else net_of(2, 3, seeds)
    )


@needs_triton
def test_operators_are_sound() -> None:
    """torch's own check: schema, shapes of the fake versions, autograd registration."""
    from paretocosmos.nn.kernels.ray_maps_ops import map_term_op, ray_maps_op

    checks = ("test_schema", "test_faketensor", "test_autograd_registration")
    rays = tuple(t.detach().requires_grad_(t.requires_grad) for t in rays_of(2, 2, 1))
    torch.library.opcheck(ray_maps_op, rays, test_utils=checks)
    term = tuple(term_of((2, 2, 10, 10, 3, 3, 24, 17), 1))
    torch.library.opcheck(map_term_op, (*term, 24, 17), test_utils=checks)


@needs_cuda
@needs_triton
def test_can_be_captured() -> None:
    check_capture(torch.vmap(both((36, 36))), net_of(1, 2, 2))
