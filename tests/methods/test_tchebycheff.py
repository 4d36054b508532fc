"""Tchebycheff weights against autograd through the scalar itself, in float64."""

import pytest
import torch
from torch import Tensor

from paretocosmos.errors import ConfigurationError
from paretocosmos.methods import Linear, Method, SmoothTchebycheff, Tchebycheff
from paretocosmos.pareto import tchebycheff_loss, tchebycheff_weights

DOUBLE = torch.float64
LEADING = pytest.mark.parametrize("leading", [(), (4,), (2, 5)], ids=["[J]", "[G,J]", "[S,G,J]"])
Either = Tchebycheff | SmoothTchebycheff
METHODS: list[Either] = [Tchebycheff(), SmoothTchebycheff(), SmoothTchebycheff(smoothing=2.0)]
EVERY = pytest.mark.parametrize("method", METHODS)


def no_gram() -> Tensor:
    raise AssertionError("a scalarization never pays for the Gram matrix")


def _scalar(method: Either, losses: Tensor, rays: Tensor) -> Tensor:
    """The equation, written once more."""
    weighed = losses * rays
    if isinstance(method, Tchebycheff):
        return weighed.max(dim=-1).values
    mu = method.smoothing
    largest = weighed.max(dim=-1, keepdim=True).values
    return largest[..., 0] + mu * ((weighed - largest) / mu).exp().sum(dim=-1).log()


@EVERY
@LEADING
def test_weights_are_the_gradient_of_the_scalar(method: Either, leading: tuple[int, ...]) -> None:
    losses = (3 * torch.rand(*leading, 3, dtype=DOUBLE)).requires_grad_()
    rays = torch.rand(*leading, 3, dtype=DOUBLE).softmax(dim=-1)
    scalar = _scalar(method, losses, rays)
    (expected,) = torch.autograd.grad(scalar.sum(), losses)
    weights, state = method.weights(losses, rays, no_gram, {})
    assert state == {}
    assert not weights.requires_grad
    torch.testing.assert_close(weights, expected, rtol=1e-12, atol=1e-14)
    smoothing = 0.0 if isinstance(method, Tchebycheff) else method.smoothing
    value = tchebycheff_loss(losses, rays, smoothing=smoothing)
    torch.testing.assert_close(value, scalar, rtol=1e-12, atol=1e-14)
    (through,) = torch.autograd.grad(value.sum(), losses)
    torch.testing.assert_close(through, expected, rtol=1e-12, atol=1e-14)


@EVERY
@pytest.mark.parametrize("losses", [[0.0, 0.0], [5.0, 0.0], [1e-30, 1e30]])
def test_zero_rays_and_losses_of_any_size_give_finite_weights(
    method: Either, losses: list[float]
) -> None:
    rays = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    weights, _ = method.weights(torch.tensor(losses).expand(3, 2), rays, no_gram, {})
    assert weights.isfinite().all()
    assert (weights >= 0).all()
    assert weights[0, 1] == weights[1, 0] == 0  # what a ray has no interest in is not lowered


def test_of_equals_one_is_lowered() -> None:
    weights = tchebycheff_weights(torch.tensor([1.0, 1.0]), torch.tensor([0.5, 0.5]))
    assert weights.tolist() == [0.5, 0.0]


def test_smoothing_lies_between_the_largest_and_the_sum() -> None:
    losses, rays = torch.rand(20, 3, dtype=DOUBLE), torch.rand(20, 3, dtype=DOUBLE).softmax(-1)
    sharp = tchebycheff_weights(losses, rays, smoothing=1e-6)
    torch.testing.assert_close(sharp, tchebycheff_weights(losses, rays))
    flat = tchebycheff_weights(losses, rays, smoothing=1e6)
    torch.testing.assert_close(flat, rays / 3, rtol=1e-5, atol=0)


def _descended(method: Method) -> float:
    """The angle reached on the quarter circle (sin t, cos t), concave for who minimises."""
    t = torch.tensor(0.6, dtype=DOUBLE, requires_grad=True)
    for _ in range(1000):
        losses = torch.stack([t.sin(), t.cos()])
        weights, _ = method.weights(losses, torch.tensor([0.5, 0.5]), no_gram, {})
        (gradient,) = torch.autograd.grad((weights * losses).sum(), t)
        with torch.no_grad():
            t -= 0.02 * gradient
    return t.item()


def test_it_reaches_the_middle_of_a_concave_front_and_a_sum_does_not() -> None:
    assert _descended(Tchebycheff()) == pytest.approx(torch.pi / 4, abs=0.02)
    assert _descended(SmoothTchebycheff()) == pytest.approx(torch.pi / 4, abs=0.02)
    assert _descended(Linear()) < 0


@pytest.mark.parametrize("smoothing", [0.0, -1.0, float("inf"), float("nan")])
def test_smoothing_must_be_positive(smoothing: float) -> None:
    with pytest.raises(ConfigurationError, match=r"`smoothing` must be finite and above 0"):
        SmoothTchebycheff(smoothing=smoothing)
    if smoothing != 0:
        for function in (tchebycheff_loss, tchebycheff_weights):
            with pytest.raises(ConfigurationError, match=r"`smoothing` must be finite and at leas"):
                function(torch.ones(2), torch.ones(2), smoothing=smoothing)
