"""What every method promises."""

import contextlib
import inspect
import json
import math
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from paretocosmos import registry
from paretocosmos.errors import ConfigurationError, FrontWarning, ParetoCosmosError
from paretocosmos.methods import FixedRays, Method, State
from paretocosmos.pareto import Front

NAMES = registry.names("methods")
FIXED = [name for name in NAMES if issubclass(registry.find("methods", name), FixedRays)]  # type: ignore[arg-type]
LATE = 10**6  # an epoch after which no method begins anything new


def _built(name: str) -> Method:
    built = registry.find("methods", name)()
    assert isinstance(built, Method)
    return built


@pytest.fixture(params=NAMES)
def method(request: pytest.FixtureRequest, thing_in: Callable[[str, str], Any]) -> Method:
    thing = thing_in("methods", request.param)
    assert set(registry.parameters(thing)) == set(
        inspect.signature(thing).parameters
    )  # a method is made of settings alone
    return _built(request.param)


def _losses_and_gram(
    *shape: int, dtype: torch.dtype = torch.float32
) -> tuple[Tensor, Callable[[], Tensor]]:
    """Positive losses, and the Gram matrices of random gradients."""
    losses = torch.rand(shape, dtype=dtype) + 0.1
    gradients = torch.randn(*shape, 20)
    return losses, lambda: gradients @ gradients.mT


def _rays(method: Method, *shape: int) -> Tensor:
    """Rays ``[..., J]`` as the method would meet them."""
    fixed, count = method.fixed_rays(shape[-1]), math.prod(shape[:-1])
    if fixed is None:
        return method.sample(shape[-1], count, torch.Generator().manual_seed(3)).reshape(shape)
    return fixed[torch.arange(count) % len(fixed)].reshape(shape)


def test_there_are_methods_of_both_kinds() -> None:
    assert {"cosmos", "linear", "epo", "tchebycheff", "smooth_tchebycheff"} <= set(NAMES) - set(
        FIXED
    )
    assert {"mgda", "pareto_mtl", "separate", "single_task", "uniform"} <= set(FIXED)


@pytest.mark.parametrize("objectives", [2, 3, 5])
@pytest.mark.parametrize("name", sorted(set(NAMES) - set(FIXED)))
def test_it_draws_rays_on_the_simplex_from_the_generator(name: str, objectives: int) -> None:
    method = _built(name)
    assert method.fixed_rays(objectives) is None
    rays = method.sample(objectives, 8, torch.Generator().manual_seed(1))
    _on_the_simplex(rays, 8, objectives)
    torch.manual_seed(5)
    again = method.sample(objectives, 8, torch.Generator().manual_seed(1))
    assert torch.equal(rays, again)


@pytest.mark.parametrize("stratified", [False, True])
@pytest.mark.parametrize("name", sorted(set(NAMES) - set(FIXED)))
def test_it_draws_the_rays_of_many_steps(name: str, stratified: bool) -> None:
    method = registry.find("methods", name)(stratified=stratified)
    rays = method.sample_steps(3, 5, 4, torch.Generator().manual_seed(1))
    _on_the_simplex(rays, 20, 3)
    plain = method.sample(3, 20, torch.Generator().manual_seed(1))
    assert torch.equal(rays, plain) != stratified  # which are of one step, not of five
    one = method.sample_steps(3, 1, 20, torch.Generator().manual_seed(1))
    assert torch.equal(one, plain)


@pytest.mark.parametrize("objectives", [2, 3, 5])
@pytest.mark.parametrize("name", FIXED)
def test_or_it_has_rays_of_its_own_and_draws_none(name: str, objectives: int) -> None:
    method = _built(name)
    rays = method.fixed_rays(objectives)
    assert rays is not None
    _on_the_simplex(rays, len(rays), objectives)
    assert len(torch.unique(rays, dim=0)) == len(rays)  # a network each, all different
    before = torch.get_rng_state()
    again = method.fixed_rays(objectives)
    assert again is not None
    assert torch.equal(rays, again)
    assert torch.equal(torch.get_rng_state(), before)
    with pytest.raises(ConfigurationError, match=r"does not draw rays: .*`fixed_rays`"):
        method.sample(objectives, 1, torch.Generator())


def _on_the_simplex(rays: Tensor, count: int, objectives: int) -> None:
    assert rays.shape == (count, objectives)
    assert rays.dtype == torch.float32
    assert not rays.requires_grad
    assert (rays >= 0).all()
    torch.testing.assert_close(rays.sum(dim=1), torch.ones(count))


@pytest.mark.parametrize("objectives", [2, 3])
@pytest.mark.parametrize("leading", [(), (4,), (2, 4)], ids=["[J]", "[G,J]", "[S,G,J]"])
def test_weights_have_the_shape_of_the_losses(
    method: Method, objectives: int, leading: tuple[int, ...]
) -> None:
    losses, gram = _losses_and_gram(*leading, objectives)
    losses.requires_grad_()
    rays = _rays(method, *leading, objectives)
    state = method.at_epoch(LATE, method.init(objectives))
    weights, after = method.weights(losses, rays, gram, state)
    assert weights.shape == losses.shape
    assert weights.dtype == torch.float32
    assert not weights.requires_grad
    assert weights.isfinite().all()
    assert (weights.abs().sum(dim=-1) > 0).all()
    assert losses.grad is None
    _alike(after, state)


def _alike(after: State, state: State) -> None:
    """A loop copies one into the other, in place."""
    assert list(after) == list(state)
    for name, value in state.items():
        assert after[name].shape == value.shape
        assert after[name].dtype == value.dtype
        assert not after[name].requires_grad


@pytest.mark.parametrize("epoch", [0, LATE])
def test_leading_axes_are_independent(method: Method, epoch: int) -> None:
    losses, gram = _losses_and_gram(4, 3)
    rays = _rays(method, 4, 3)
    state = method.at_epoch(epoch, method.init(3))
    whole, _ = method.weights(losses, rays, gram, state)
    for i in range(4):
        alone, _ = method.weights(losses[i], rays[i], lambda i=i: gram()[i], state)  # type: ignore[misc]
        torch.testing.assert_close(whole[i], alone)


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("objectives", [2, 3])
def test_networks_side_by_side_are_each_alone(method: Method, objectives: int, groups: int) -> None:
    """A leading axis on everything, the state too; over several steps."""
    networks = 4
    rays = _rays(method, networks, objectives).unsqueeze(1).expand(-1, groups, -1)
    alone = [method.init(objectives) for _ in range(networks)]
    stacked: State = {name: torch.stack([value] * networks) for name, value in alone[0].items()}
    for epoch in range(4):
        stacked = method.at_epoch(epoch, stacked)
        losses, gram = _losses_and_gram(networks, groups, objectives)
        found, stacked = method.weights(losses, rays, gram, stacked)
        for k in range(networks):
            mine = method.at_epoch(epoch, alone[k])
            products = gram()[k]
            own, alone[k] = method.weights(losses[k], rays[k], lambda p=products: p, mine)  # type: ignore[misc]
            torch.testing.assert_close(found[k], own)
            for name, value in alone[k].items():
                torch.testing.assert_close(stacked[name][k], value)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_weights_are_float32_or_better(method: Method, dtype: torch.dtype) -> None:
    losses, gram = _losses_and_gram(4, 2, dtype=dtype)
    state = method.init(2)
    weights, after = method.weights(losses, _rays(method, 4, 2), gram, state)
    assert weights.dtype == torch.promote_types(dtype, torch.float32)
    _alike(after, state)


def test_it_is_a_pure_function_of_its_arguments(method: Method) -> None:
    losses, gram = _losses_and_gram(4, 2)
    rays = _rays(method, 4, 2)
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
    for epoch in (0, LATE):
        weights = torch.zeros(4, 2)
        state = method.at_epoch(epoch, method.init(2))
        with contextlib.suppress(ParetoCosmosError):  # refused, in a sentence of this family
            weights, _ = method.weights(weights, _rays(method, 4, 2), gram, state)
        assert weights.isfinite().all()


def test_all_zero_gradients_give_finite_weights(method: Method) -> None:
    losses, _ = _losses_and_gram(4, 3)
    for epoch in (0, LATE):
        state = method.at_epoch(epoch, method.init(3))
        weights, _ = method.weights(
            losses, _rays(method, 4, 3), lambda: torch.zeros(4, 3, 3), state
        )
        assert weights.isfinite().all()


@pytest.mark.parametrize("networks", [None, 3])
def test_an_epoch_begins_with_a_state_of_the_same_kind(
    method: Method, networks: int | None
) -> None:
    state = dict(method.init(2))
    if networks is not None:
        state = {name: torch.stack([value] * networks) for name, value in state.items()}
    kept = {name: value.clone() for name, value in state.items()}
    for epoch in (0, 1, 2, LATE):
        _alike(method.at_epoch(epoch, state), state)
    assert all(torch.equal(value, kept[name]) for name, value in state.items())


def test_its_report_is_numbers_by_name(method: Method) -> None:
    losses, gram = _losses_and_gram(4, 2)
    state = method.init(2)
    for _ in range(2):  # before the first step too
        report = method.report(state)
        assert all(isinstance(name, str) and type(value) is float for name, value in report.items())
        assert all(math.isfinite(value) for value in report.values())
        assert json.loads(json.dumps(report)) == report
        _, state = method.weights(losses, _rays(method, 4, 2), gram, state)


def test_a_network_that_is_better_everywhere_has_the_higher_quality(method: Method) -> None:
    draw = np.random.default_rng(1)
    fixed = method.fixed_rays(2)
    rays = _rays(method, 1 if fixed is not None else 7, 2).numpy()
    values = draw.uniform(0.2, 1.5, rays.shape)
    front, better = (Front(rays, v, ("a", "b"), (2, 2)) for v in (values, 0.9 * values))
    assert type(method.quality(front)) is float
    assert method.quality(better) > method.quality(front)


def test_beyond_the_reference_point_the_nearer_network_has_the_higher_quality(
    method: Method,
) -> None:
    fixed = method.fixed_rays(2)
    rays = _rays(method, 1 if fixed is not None else 7, 2).numpy()
    draw = np.random.default_rng(1).uniform(3, 4, rays.shape)
    further, near, inside = (
        Front(rays, v, ("a", "b"), (2, 2)) for v in (draw, 0.8 * draw, 0.4 * draw)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FrontWarning)
        found = [method.quality(front) for front in (further, near, inside)]
    assert found[0] < found[1] < found[2]
    assert all(type(value) is float for value in found)


def test_usual_losses_pass_its_check(method: Method) -> None:
    method.check(torch.tensor([0.7, 1e-3, 12.0]), ("a", "b", "c"))


@pytest.mark.parametrize("name", NAMES)
def test_its_docstring_has_what_a_reader_looks_for(name: str) -> None:
    text = inspect.getdoc(registry.find("methods", name)) or ""
    assert ".. math::" in text
    for word in ("Cost: ", "Use ", "avoid "):
        assert word in " ".join(text.split()), word
    (paper,) = (line for line in text.splitlines() if line.startswith("Paper: "))
    assert re.search(r"\b(19|20)\d\d\b", paper)
