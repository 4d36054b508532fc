import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torchjd.scalarization import COSMOS

from paretocosmos.errors import ConfigurationError
from paretocosmos.pareto import Alignment, cosmos_loss, cosmos_weights, linear_loss

ALIGNMENTS: tuple[Alignment, ...] = ("ray", "inverse")


def _random(seed: int, *shape: int) -> tuple[Tensor, Tensor]:
    """Positive losses and rays in float64."""
    generator = torch.Generator().manual_seed(seed)
    losses = torch.rand(shape, generator=generator, dtype=torch.float64) * 3 + 1e-3
    rays = torch.rand(shape, generator=generator, dtype=torch.float64) + 1e-2
    return losses.requires_grad_(), rays / rays.sum(dim=-1, keepdim=True)


@given(seed=st.integers(0, 2**31), objectives=st.integers(1, 6), penalty=st.floats(0, 10))
def test_value_and_gradient_are_torchjds(seed: int, objectives: int, penalty: float) -> None:
    losses, ray = _random(seed, objectives)
    ours = cosmos_loss(losses, ray, penalty=penalty)
    theirs = COSMOS(penalty, ray)(losses)
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)
    gradients = [torch.autograd.grad(value, losses)[0] for value in (ours, theirs)]
    torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-10, atol=1e-10)
    written_out = cosmos_weights(losses.detach(), ray, penalty=penalty)
    torch.testing.assert_close(written_out, gradients[1], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("alignment", ALIGNMENTS)
@pytest.mark.parametrize("shape", [(4,), (5, 2), (2, 5, 3)])
def test_weights_are_the_gradient_by_the_losses(
    alignment: Alignment, shape: tuple[int, ...]
) -> None:
    losses, rays = _random(11, *shape)
    for ray in (rays, rays.reshape(-1, shape[-1])[0]):  # one each, or one for all
        for penalty in (0.0, 0.01, 8.0):
            value = cosmos_loss(losses, ray, penalty=penalty, alignment=alignment)
            (expected,) = torch.autograd.grad(value.sum(), losses)
            found = cosmos_weights(losses.detach(), ray, penalty=penalty, alignment=alignment)
            torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


@given(seed=st.integers(0, 2**31))
def test_inverse_alignment_is_the_cosine_with_the_reciprocal(seed: int) -> None:
    losses, ray = _random(seed, 3)
    along = losses.detach().tolist()
    inverse = [1 / r for r in ray.tolist()]
    cosine = sum(a * b for a, b in zip(along, inverse, strict=True)) / (
        math.hypot(*along) * math.hypot(*inverse)
    )
    expected = sum(a * r for a, r in zip(along, ray.tolist(), strict=True)) - 2.5 * cosine
    found = cosmos_loss(losses.detach(), ray, penalty=2.5, alignment="inverse")
    assert float(found) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("alignment", ALIGNMENTS)
@pytest.mark.parametrize("penalty", [0.0, 0.01, 8.0])
def test_gradcheck(alignment: Alignment, penalty: float) -> None:
    losses, rays = _random(5, 2, 3, 4)
    assert torch.autograd.gradcheck(
        lambda x: cosmos_loss(x, rays, penalty=penalty, alignment=alignment), (losses,)
    )


@pytest.mark.parametrize("alignment", ALIGNMENTS)
def test_leading_axes_are_independent(alignment: Alignment) -> None:
    losses, rays = _random(6, 2, 3, 4)
    whole = cosmos_loss(losses, rays, penalty=2.0, alignment=alignment)
    assert whole.shape == (2, 3)
    one = cosmos_loss(losses[1, 2], rays[1, 2], penalty=2.0, alignment=alignment)
    torch.testing.assert_close(whole[1, 2], one)
    # one ray for all
    shared = cosmos_loss(losses, rays[0, 0], penalty=2.0, alignment=alignment)
    torch.testing.assert_close(
        shared[1, 2], cosmos_loss(losses[1, 2], rays[0, 0], penalty=2.0, alignment=alignment)
    )


def test_no_penalty_is_the_weighted_sum() -> None:
    losses, rays = _random(7, 5, 3)
    expected = torch.einsum("nj,nj->n", losses, rays)
    torch.testing.assert_close(cosmos_loss(losses, rays, penalty=0), expected)
    torch.testing.assert_close(linear_loss(losses, rays), expected)


@pytest.mark.parametrize("alignment", ALIGNMENTS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_all_zero_losses_give_zero_and_the_ray_as_gradient(
    alignment: Alignment, dtype: torch.dtype
) -> None:
    losses = torch.zeros(2, 3, dtype=dtype, requires_grad=True)
    ray = torch.tensor([0.0, 0.25, 0.75], dtype=dtype)
    value = cosmos_loss(losses, ray, penalty=5.0, alignment=alignment)
    assert value.tolist() == [0.0, 0.0]
    (gradient,) = torch.autograd.grad(value.sum(), losses)
    assert torch.equal(gradient, ray.expand(2, 3))  # the cosine adds nothing
    weights = cosmos_weights(losses.detach(), ray, penalty=5.0, alignment=alignment)
    assert torch.equal(weights, ray.expand(2, 3))


@pytest.mark.parametrize("scale", [1e-18, 1e-15, 1e-12, 1e-6, 1e6, 1e12])
def test_losses_of_any_size_have_the_right_gradient_in_float32(scale: float) -> None:
    losses, ray = _random(8, 3)
    small = (losses.detach() * scale).requires_grad_()
    (expected,) = torch.autograd.grad(cosmos_loss(small, ray, penalty=1.0), small)
    single = small.detach().float().requires_grad_()
    (found,) = torch.autograd.grad(cosmos_loss(single, ray.float(), penalty=1.0), single)
    torch.testing.assert_close(found.double() * scale, expected * scale, rtol=1e-4, atol=1e-5)
    weights = cosmos_weights(single.detach(), ray.float(), penalty=1.0)
    torch.testing.assert_close(weights.double() * scale, expected * scale, rtol=1e-4, atol=1e-5)


def test_ordinary_losses_are_weighed_by_the_formula_as_it_stands_bit_for_bit() -> None:
    for scale in (1e-12, 1e-3, 1.0, 1e9):
        losses, rays = (part.float() for part in _random(3, 500, 3))
        losses, rays = losses * scale, rays / rays.sum(dim=-1, keepdim=True)
        norms = losses.square().sum(dim=-1) * rays.square().sum(dim=-1)
        expected = (losses * rays).sum(dim=-1) - 2.0 * ((losses * rays).sum(dim=-1) / norms.sqrt())
        assert torch.equal(cosmos_loss(losses, rays, penalty=2.0), expected)


@pytest.mark.parametrize("alignment", ["ray", "inverse"])
@pytest.mark.parametrize("penalty", [0.01, 8.0, 1e6])
def test_losses_too_small_to_square_have_a_finite_gradient_and_a_cosine_of_at_most_one(
    alignment: Alignment, penalty: float
) -> None:
    for exponent in range(-46, 1):
        for ray in ([0.5, 0.5], [0.9, 0.1], [1.0, 0.0]):
            size = 10.0**exponent
            losses = (size * torch.tensor([1.0, 0.7])).requires_grad_()
            value = cosmos_loss(losses, torch.tensor(ray), penalty=penalty, alignment=alignment)
            (gradient,) = torch.autograd.grad(value, losses)
            losses, value = losses.detach(), value.detach()
            cosine = float(linear_loss(losses, torch.tensor(ray)) - value) / penalty
            assert -1e-4 <= cosine <= 1 + 1e-4  # the subtraction rounds
            weights = cosmos_weights(
                losses, torch.tensor(ray), penalty=penalty, alignment=alignment
            )
            assert torch.isfinite(gradient).all(), f"{size}"
            assert torch.isfinite(weights).all(), f"{size}"


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32(dtype: torch.dtype) -> None:
    # 300^2 overflows float16; and 1 - cosine is below the resolution of both types
    losses = torch.tensor([300.0, 302.0], dtype=dtype)
    ray = torch.tensor([0.5, 0.5])
    value = cosmos_loss(losses, ray, penalty=1000.0)
    assert value.dtype == torch.float32
    expected = cosmos_loss(losses.double(), ray.double(), penalty=1000.0)
    assert float(value) == pytest.approx(float(expected), rel=1e-6)


def test_the_ray_may_be_of_another_type() -> None:
    losses, ray = _random(9, 2)
    assert cosmos_loss(losses, ray.float(), penalty=1.0).dtype == torch.float64
    assert cosmos_loss(losses.float(), ray, penalty=1.0).dtype == torch.float32


def _best_on_arc(ray: tuple[float, float], penalty: float, alignment: Alignment) -> Tensor:
    """The best losses on the convex front L = (t^2, (1 - t)^2), by brute force."""
    t = torch.linspace(0.0, 1.0, 2001, dtype=torch.float64)
    losses = torch.stack([t**2, (1 - t) ** 2], dim=1)
    value = cosmos_loss(
        losses, torch.tensor(ray, dtype=torch.float64), penalty=penalty, alignment=alignment
    )
    return losses[value.argmin()]


@pytest.mark.parametrize("penalty", [0.0, 0.01, 1.0, 8.0, 1000.0])
def test_inverse_alignment_means_more_weight_smaller_loss_at_every_penalty(penalty: float) -> None:
    rays = [(w, 1 - w) for w in (0.1, 0.3, 0.5, 0.7, 0.9)]
    first = [float(_best_on_arc(ray, penalty, "inverse")[0]) for ray in rays]
    assert first == sorted(first, reverse=True)
    assert first[0] > first[-1] + 0.1


def test_ray_alignment_turns_the_meaning_round_when_the_penalty_grows() -> None:
    low, high = (0.1, 0.9), (0.9, 0.1)
    small = [float(_best_on_arc(ray, 0.01, "ray")[0]) for ray in (low, high)]
    large = [float(_best_on_arc(ray, 100.0, "ray")[0]) for ray in (low, high)]
    assert small[0] > small[1]
    assert large[0] < large[1]


@pytest.mark.parametrize("alignment", ALIGNMENTS)
def test_a_corner_ray_has_a_finite_value_and_gradient(alignment: Alignment) -> None:
    losses = torch.tensor([0.5, 0.25], requires_grad=True)
    value = cosmos_loss(losses, torch.tensor([1.0, 0.0]), penalty=1.0, alignment=alignment)
    (gradient,) = torch.autograd.grad(value, losses)
    # toward (1, 0), or, as 1/0 dwarfs 1/1, toward (0, 1)
    along = 0.5 if alignment == "ray" else 0.25
    assert value.item() == pytest.approx(0.5 - along / math.hypot(0.5, 0.25), abs=1e-5)
    assert gradient.isfinite().all()
    weights = cosmos_weights(
        losses.detach(), torch.tensor([1.0, 0.0]), penalty=1.0, alignment=alignment
    )
    torch.testing.assert_close(weights, gradient, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("penalty", [-0.1, float("nan"), float("inf")])
def test_a_bad_penalty_is_refused(penalty: float) -> None:
    with pytest.raises(ConfigurationError, match=r"`penalty`.*finite"):
        cosmos_loss(torch.ones(2), torch.ones(2) / 2, penalty=penalty)
    with pytest.raises(ConfigurationError, match="`penalty`"):
        cosmos_weights(torch.ones(2), torch.ones(2) / 2, penalty=penalty)


def test_a_bad_alignment_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"`alignment`.*found `x`"):
        cosmos_loss(torch.ones(2), torch.ones(2) / 2, penalty=1.0, alignment="x")  # type: ignore[arg-type]


@pytest.mark.parametrize(("losses", "ray"), [((2,), (3,)), ((4, 2), (4,)), ((2,), ())])
def test_shapes_that_do_not_fit_are_refused(losses: tuple[int, ...], ray: tuple[int, ...]) -> None:
    with pytest.raises(ConfigurationError, match="same last axis"):
        cosmos_loss(torch.ones(losses), torch.ones(ray), penalty=1.0)
