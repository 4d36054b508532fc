"""What every method promises."""

import contextlib
import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from paretocosmos import find
from paretocosmos.errors import ParetoCosmosError
from paretocosmos.methods import Method

NAMES = find.names("methods")


@pytest.fixture(params=NAMES)
def method(request: pytest.FixtureRequest, thing_in: Callable[[str, str], Any]) -> Method:
    thing = thing_in("methods", request.param)
    found = thing()
    assert isinstance(found, Method)
    assert set(find.parameters(thing)) == set(
        inspect.signature(thing).parameters
    )  # a method is made of settings alone
    return found


def _losses_and_gram(
    *shape: int, dtype: torch.dtype = torch.float32
) -> tuple[Tensor, Callable[[], Tensor]]:
    """Positive losses, and the Gram matrices of random gradients."""
    losses = torch.rand(shape, dtype=dtype) + 0.1
    gradients = torch.randn(*shape, 20)
    return losses, lambda: gradients @ gradients.mT


def test_there_are_methods() -> None:
    assert {"cosmos", "linear"} <= set(NAMES)


@pytest.mark.parametrize("objectives", [2, 3, 5])
def test_it_draws_rays_on_the_simplex_from_the_generator(method: Method, objectives: int) -> None:
    rays = method.sample(objectives, 8, torch.Generator().manual_seed(1))
    assert rays.shape == (8, objectives)
    assert rays.dtype == torch.float32
    assert not rays.requires_grad
    assert (rays >= 0).all()
    torch.testing.assert_close(rays.sum(dim=1), torch.ones(8))
    torch.manual_seed(5)
    again = method.sample(objectives, 8, torch.Generator().manual_seed(1))
    assert torch.equal(rays, again)


@pytest.mark.parametrize("objectives", [2, 3])
@pytest.mark.parametrize("leading", [(), (4,), (2, 4)], ids=["[J]", "[G,J]", "[S,G,J]"])
def test_weights_have_the_shape_of_the_losses(
    method: Method, objectives: int, leading: tuple[int, ...]
) -> None:
    losses, gram = _losses_and_gram(*leading, objectives)
    losses.requires_grad_()
    rays = torch.rand(*leading, objectives).softmax(dim=-1)
    state = method.init(objectives)
    weights, after = method.weights(losses, rays, gram, state)
    assert weights.shape == losses.shape
    assert weights.dtype == torch.float32
    assert not weights.requires_grad
    assert weights.isfinite().all()
    assert weights.abs().sum() > 0
    assert set(after) == set(state)
    assert all(isinstance(value, Tensor) for value in after.values())
    assert all(after[name].shape == value.shape for name, value in state.items())
    assert losses.grad is None


def test_leading_axes_are_independent(method: Method) -> None:
    losses, gram = _losses_and_gram(4, 3)
    rays = torch.rand(4, 3).softmax(dim=-1)
    state = method.init(3)
    whole, _ = method.weights(losses, rays, gram, state)
    for i in range(4):
        alone, _ = method.weights(losses[i], rays[i], lambda i=i: gram()[i], state)  # type: ignore[misc]
        torch.testing.assert_close(whole[i], alone)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_weights_are_float32_or_better(method: Method, dtype: torch.dtype) -> None:
    losses, gram = _losses_and_gram(4, 2, dtype=dtype)
    rays = torch.full((4, 2), 0.5)
    weights, _ = method.weights(losses, rays, gram, method.init(2))
    assert weights.dtype == torch.promote_types(dtype, torch.float32)


def test_it_is_a_pure_function_of_its_arguments(method: Method) -> None:
    losses, gram = _losses_and_gram(4, 2)
    rays = torch.rand(4, 2).softmax(dim=-1)
    state = method.init(2)
    kept = {name: value.clone() for name, value in state.items()}
    before = losses.clone(), rays.clone()
    first, _ = method.weights(losses, rays, gram, state)
    again, _ = method.weights(losses, rays, gram, state)
    assert torch.equal(first, again)
    assert torch.equal(losses, before[0])
    assert torch.equal(rays, before[1])
    assert all(torch.equal(value, kept[name]) for name, value in state.items())


def test_all_zero_losses_give_finite_weights_or_a_sentence(method: Method) -> None:
    _, gram = _losses_and_gram(4, 2)
    weights = torch.zeros(4, 2)
    with contextlib.suppress(ParetoCosmosError):  # refused, in a sentence of this family
        weights, _ = method.weights(weights, torch.full((4, 2), 0.5), gram, method.init(2))
    assert weights.isfinite().all()
