"""The fused kernels against torch's own operators in float64.

Triton is no dependency of this project. Where it is missing only the way round it is tested. Where
it is installed, `TRITON_INTERPRET=1 pytest tests/kernels` runs every kernel on the CPU in Triton's
interpreter; on a CUDA machine the same tests run the compiled kernels.
"""

import importlib.util
from collections.abc import Callable

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

from paretocosmos.errors import ConfigurationError
from paretocosmos.nn import kernels
from paretocosmos.nn.kernels import can_fuse_conv_pool, conv_pool

# B, C, O, H, W, K, G (0: no term); seeds are added where they matter
SHAPES = [
    pytest.param((4, 1, 10, 36, 36, 5, 1), id="lenet-1"),
    pytest.param((3, 10, 20, 16, 16, 5, 0), id="lenet-2"),
    pytest.param((8, 1, 10, 12, 12, 5, 4), id="four-groups"),
    pytest.param((7, 3, 7, 13, 14, 3, 0), id="odd-sizes"),  # 11x12: the pool drops a row
    pytest.param((6, 2, 5, 11, 12, 4, 2), id="odd-sizes-even-kernel-two-groups"),
    pytest.param((1, 2, 33, 8, 9, 2, 1), id="one-sample-many-channels"),
    pytest.param((37, 1, 3, 6, 6, 5, 37), id="one-position-group-each"),
    pytest.param((5, 32, 17, 7, 7, 4, 0), id="widest"),  # 32*4*4 = 512 weights a channel
    pytest.param((5, 8, 4, 6, 6, 1, 0), id="kernel-of-one"),
]


def conv_pool_reference(x: Tensor, weight: Tensor, bias: Tensor, term: Tensor | None) -> Tensor:
    """The function, as its definition reads."""
    y = F.conv2d(x, weight, bias)
    if term is not None:
        y = y + term.repeat_interleave(len(x) // len(term), 0)
    return F.relu(F.max_pool2d(y, 2))


def draw(
    shape: tuple[int, ...], seeds: int | None = None, *, grad_x: bool = True
) -> list[Tensor | None]:
    """Random x, weight, bias and term; half of each image is black, so that maxima tie."""
    b, c, o, h, w, k, g = shape
    first = () if seeds is None else (seeds,)
    x = torch.rand(*first, b, c, h, w)
    x[..., : h // 2, :] = 0
    weight, bias = torch.randn(*first, o, c, k, k) / k, torch.randn(*first, o)
    term = torch.randn(*first, g, o, h - k + 1, w - k + 1) if g else None
    if term is not None:
        term[..., ::2] = 0  # ties in the black half again
    tensors = [x, weight, bias, term]
    moved = [None if t is None else t.to(DEVICE).requires_grad_() for t in tensors]
    moved[0].requires_grad_(grad_x)
    return moved


def test_without_triton_the_library_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "runs_on", lambda device: False)
    inputs = draw((6, 2, 5, 11, 12, 4, 2))
    assert not can_fuse_conv_pool(*inputs)  # type: ignore[arg-type]
    compare(conv_pool, conv_pool_reference, inputs)


def test_triton_may_be_missing_and_nothing_minds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert not can_fuse_conv_pool(torch.ones(2, 1, 8, 8), torch.ones(3, 1, 5, 5), torch.ones(3))
    from paretocosmos.nn.kernels import (  # both import without it
        conv_pool_ops,
        conv_pool_triton,
    )

    assert {conv_pool_ops.__name__, conv_pool_triton.__name__}


@pytest.mark.parametrize(
    ("x", "weight", "bias"),
    [
        pytest.param((4, 1, 8, 8), (3, 2, 5, 5), (3,), id="channels"),
        pytest.param((4, 1, 8, 8), (3, 1, 5, 3), (3,), id="not-square"),
        pytest.param((4, 1, 5, 8), (3, 1, 5, 5), (3,), id="nothing-left-to-pool"),
        pytest.param((0, 1, 8, 8), (3, 1, 5, 5), (3,), id="no-sample"),
        pytest.param((4, 1, 8, 8), (65, 1, 5, 5), (65,), id="too-many-outputs"),
        pytest.param((4, 21, 8, 8), (3, 21, 5, 5), (3,), id="too-many-weights"),
        pytest.param((4, 1, 8, 8), (3, 1, 5, 5), (1,), id="bias"),
        pytest.param((1, 8, 8), (3, 1, 5, 5), (3,), id="no-batch"),
    ],
)
def test_refuses_shapes_the_kernels_do_not_take(
    monkeypatch: pytest.MonkeyPatch,
    x: tuple[int, ...],
    weight: tuple[int, ...],
    bias: tuple[int, ...],
) -> None:
    monkeypatch.setattr(kernels, "runs_on", lambda device: True)
    assert not can_fuse_conv_pool(torch.ones(x), torch.ones(weight), torch.ones(bias))
    assert can_fuse_conv_pool(torch.ones(4, 1, 8, 8), torch.ones(3, 1, 5, 5), torch.ones(3))
    half = torch.ones(4, 1, 8, 8).half()
    assert not can_fuse_conv_pool(half, torch.ones(3, 1, 5, 5), torch.ones(3))


def test_wrong_settings_are_refused_in_a_sentence() -> None:
    x, weight, bias = torch.ones(4, 1, 8, 8), torch.ones(2, 1, 5, 5), torch.ones(2)
    with pytest.raises(ConfigurationError, match="`precision` must be one of"):
        conv_pool(x, weight, bias, precision="half")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="3 maps for 4"):
        conv_pool(x, weight, bias, torch.ones(3, 2, 4, 4))


@needs_triton
@pytest.mark.parametrize("shape", SHAPES)
def test_values_and_gradients(shape: tuple[int, ...]) -> None:
    inputs = draw(shape)
    assert can_fuse_conv_pool(*inputs)  # type: ignore[arg-type]
    compare(conv_pool, conv_pool_reference, inputs)


@needs_triton
@pytest.mark.parametrize("shape", SHAPES[:3])
@pytest.mark.parametrize("seeds", [None, 3])
def test_pixels_from_0_to_255(shape: tuple[int, ...], seeds: int | None) -> None:
    """Bytes as they are, which the published code hands to its networks."""
    inputs = draw(shape, seeds)
    inputs[0] = (inputs[0].detach() * 255).round().requires_grad_()
    if seeds is None:
        compare(conv_pool, conv_pool_reference, inputs)
        return
    dims = (0, 0, 0, 0 if shape[-1] else None)
    every = torch.vmap(conv_pool, in_dims=dims)
    compare(every, torch.vmap(conv_pool_reference, in_dims=dims), inputs)


@needs_triton
def test_one_channel_through_the_matrix_unit_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table sends one input channel to the direct kernels; the others can do it as well."""
    from paretocosmos.nn.kernels import conv_pool_ops

    monkeypatch.setattr(conv_pool_ops, "MOST_DIRECT", 0)
    compare(conv_pool, conv_pool_reference, draw((4, 1, 10, 12, 13, 5, 2)))


@needs_triton
@pytest.mark.parametrize("shape", SHAPES[:5])
@pytest.mark.parametrize("seeds", [1, 3])
def test_several_seeds(shape: tuple[int, ...], seeds: int) -> None:
    dims = (0, 0, 0, 0 if shape[-1] else None)
    every = torch.vmap(conv_pool, in_dims=dims)
    compare(every, torch.vmap(conv_pool_reference, in_dims=dims), draw(shape, seeds))


@needs_triton
@pytest.mark.parametrize("shared", [0, 1, 2])
def test_seeds_may_share_an_argument(shared: int) -> None:
    inputs = draw((4, 2, 5, 9, 10, 3, 2), 3)
    argument = inputs[shared]
    inputs[shared] = argument[0].detach().clone().requires_grad_()
    dims = tuple(None if i == shared else 0 for i in range(4))
    every = torch.vmap(conv_pool, in_dims=dims)
    compare(every, torch.vmap(conv_pool_reference, in_dims=dims), inputs)


@needs_triton
def test_nothing_is_computed_for_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first layer's x is data: its gradient must not be computed, with seeds or without."""
    from paretocosmos.nn.kernels import conv_pool_ops

    def refuse(*_: object) -> None:
        raise AssertionError("dx was computed")

    monkeypatch.setattr(conv_pool_ops, "launch_input_gradient", refuse)
    compare(conv_pool, conv_pool_reference, draw(SHAPES[4].values[0], grad_x=False))  # type: ignore[arg-type]
    inputs = draw(SHAPES[4].values[0], 3, grad_x=False)  # type: ignore[arg-type]
    compare(torch.vmap(conv_pool), torch.vmap(conv_pool_reference), inputs)


@needs_triton
def test_the_first_of_equals_wins_and_nan_spreads() -> None:
    x = torch.zeros(1, 1, 6, 6, device=DEVICE)
    weight, bias = torch.zeros(2, 1, 3, 3, device=DEVICE), torch.ones(2, device=DEVICE)
    term = torch.zeros(1, 2, 4, 4, device=DEVICE, requires_grad=True)
    conv_pool(x, weight, bias, term).sum().backward()
    assert torch.equal(term.grad.nonzero()[:, 2:] % 2, torch.zeros(8, 2, device=DEVICE).long())
    broken = term.detach().clone()
    broken[0, 0, 1, 1] = torch.nan
    h = conv_pool(x, weight, bias, broken)
    assert torch.equal(h.isnan().nonzero(), torch.tensor([[0, 0, 0, 0]], device=DEVICE))


@needs_triton
def test_repeats_bit_for_bit() -> None:
    inputs = draw((40, 1, 10, 12, 12, 5, 1))

    def once() -> tuple[Tensor, ...]:
        h = conv_pool(*inputs)  # type: ignore[arg-type]
        return torch.autograd.grad(h.square().sum(), leaves(inputs))

    assert all(torch.equal(a, b) for a, b in zip(once(), once(), strict=True))


@needs_triton
@pytest.mark.parametrize("seeds", [None, 2])
def test_can_be_recorded(seeds: int | None) -> None:
    inputs = draw((4, 1, 3, 8, 8, 3, 1), seeds, grad_x=False)
    forward = conv_pool if seeds is None else torch.vmap(conv_pool)
    check_recording(forward, inputs, ["conv_pool", "conv_pool_backward"])


@needs_triton
@pytest.mark.parametrize("seeds", [None, 2])
def test_several_gradients_at_once(seeds: int | None) -> None:
    functions: list[Callable[..., Tensor]] = [conv_pool, conv_pool_reference]
    if seeds is not None:
        functions = [torch.vmap(function) for function in functions]
    check_gradients_at_once(functions[0], functions[1], draw((4, 2, 5, 9, 10, 3, 2), seeds))


@needs_triton
def test_operators_are_sound() -> None:
    """torch's own check: schema, shapes of the fake versions, autograd registration."""
    from paretocosmos.nn.kernels.conv_pool_ops import forward_op

    inputs = [None if t is None else t.unsqueeze(0) for t in draw((2, 1, 3, 7, 8, 3, 1))]
    given = tuple(None if t is None else t.detach().requires_grad_() for t in inputs)
    checks = ("test_schema", "test_faketensor", "test_autograd_registration")
    torch.library.opcheck(forward_op, (*given, "ieee"), test_utils=checks)


@needs_cuda
@needs_triton
def test_can_be_captured() -> None:
    check_capture(torch.vmap(conv_pool), draw((64, 1, 10, 36, 36, 5, 1), 2, grad_x=False))
