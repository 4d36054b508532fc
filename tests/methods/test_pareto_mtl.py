"""ParetoMTL's two stages, written out in numpy from FACTS.md, section 4; the hulls by cvxpy."""

from collections.abc import Callable
from functools import cache

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor

from paretocosmos.errors import ConfigurationError
from paretocosmos.methods import ParetoMtl, State
from paretocosmos.pareto import even_rays

Array = npt.NDArray[np.float64]
Shortest = Callable[[Array], Array]
DOUBLE = torch.float64
LATE = 10**6


def _units(networks: int, objectives: int) -> Array:
    """Angles .1 to π/2 − .1 for two objectives; even rays of unit length for more."""
    if objectives == 2 and networks > 1:
        angles = np.linspace(0.1, np.pi / 2 - 0.1, networks)
        return np.stack([np.cos(angles), np.sin(angles)], axis=1)
    rays = even_rays(networks, objectives).double().numpy()
    return rays / np.linalg.norm(rays, axis=1, keepdims=True)


def _active(units: Array, k: int, losses: Array) -> Array:
    """The rows w_j = u_j - u_k, j ≠ k, with w_j·L/‖L‖ > 0."""
    direction = losses / np.linalg.norm(losses)
    rows = [unit - units[k] for j, unit in enumerate(units) if j != k]
    return np.array([row for row in rows if row @ direction > 0]).reshape(-1, len(losses))


def _by_hand(
    units: Array, k: int, losses: Array, gradients: Array, shortest: Shortest, *, searching: bool
) -> Array:
    active = _active(units, k, losses)
    if searching:
        if not len(active):
            return np.zeros_like(losses)
        s = np.ones(1) if len(active) == 1 else shortest(active @ gradients)
        return np.asarray(s @ active)
    s = shortest(np.vstack([gradients, active @ gradients]))
    weights = s[: len(losses)] + s[len(losses) :] @ active
    return np.asarray(len(losses) * weights / np.abs(weights).sum())


def _case(objectives: int, seed: int) -> tuple[Tensor, Tensor]:
    """Losses in all directions, and gradients ``[J, P]`` of about their size."""
    draw = torch.Generator().manual_seed(seed)
    losses = torch.rand(objectives, generator=draw, dtype=DOUBLE) + 0.02
    gradients = torch.randn(objectives, 8, generator=draw, dtype=DOUBLE)
    return losses, losses.unsqueeze(1) * gradients


@cache
def _fixed(method: ParetoMtl, objectives: int) -> Tensor:
    return method.fixed_rays(objectives)


def _weights(
    method: ParetoMtl, k: int, losses: Tensor, gradients: Tensor, state: State
) -> tuple[Tensor, State]:
    ray = _fixed(method, losses.shape[-1])[k].expand_as(losses)
    return method.weights(losses, ray, lambda: gradients @ gradients.mT, state)


def _inside(units: Array, k: int) -> Tensor:
    """Losses in the cone of network k."""
    return 0.7 * torch.from_numpy(units[k])


@pytest.mark.parametrize("networks", [1, 2, 5, 9])
@pytest.mark.parametrize("objectives", [2, 3])
@pytest.mark.parametrize("searching", [True, False], ids=["search", "descend"])
def test_weights_are_those_written_out(
    searching: bool, objectives: int, networks: int, shortest: Shortest
) -> None:
    method, units = ParetoMtl(networks=networks), _units(networks, objectives)
    state = method.at_epoch(0 if searching else LATE, method.init(objectives))
    for seed in range(5):
        losses, gradients = _case(objectives, 10 * networks + seed)
        for k in range(networks):
            found, _ = _weights(method, k, losses, gradients, state)
            expected = _by_hand(
                units, k, losses.numpy(), gradients.numpy(), shortest, searching=searching
            )
            np.testing.assert_allclose(found.numpy(), expected, rtol=0, atol=2e-5)


@pytest.mark.parametrize("objectives", [2, 3])
def test_a_network_is_in_its_cone_where_its_unit_vector_is_the_nearest(objectives: int) -> None:
    method, units = ParetoMtl(networks=5), _units(5, objectives)
    every = [_case(objectives, seed)[0] for seed in range(20)]
    every += [_inside(units, k) for k in range(5)]
    state = method.init(objectives)
    for losses in every:
        nearest = int(np.argmax(units @ losses.numpy()))
        for k in range(5):
            weights, after = _weights(method, k, losses, torch.eye(objectives, dtype=DOUBLE), state)
            assert bool(after["searching"]) == (k != nearest)
            assert bool(weights.any()) == (k != nearest)  # in the cone it takes no step


@pytest.mark.parametrize("dtype", [torch.float32, DOUBLE])
@pytest.mark.parametrize(("objectives", "networks"), [(2, 5), (2, 25), (3, 5), (3, 10)])
def test_its_own_vector_is_no_constraint(
    objectives: int, networks: int, dtype: torch.dtype
) -> None:
    """u_k - u_k is 0; what rounding leaves of it would pass for the shortest gradient of all."""
    method = ParetoMtl(networks=networks)
    late = method.at_epoch(LATE, method.init(objectives))
    rays = method.fixed_rays(objectives)
    losses = 0.3 * rays.to(dtype)  # each network's on its own ray
    gram = torch.eye(objectives, dtype=dtype).expand(networks, -1, -1)
    for given in (rays, rays.to(dtype)):
        weights, _ = method.weights(losses, given, lambda: gram, late)
        # no constraint, so the shortest of J orthogonal vectors of one length: their mean
        torch.testing.assert_close(weights, torch.ones_like(losses))
        for k in range(networks):
            _, after = method.weights(losses[k], given[k], lambda: gram[0], method.init(objectives))
            assert not after["searching"]


def test_the_search_ends_with_a_batch_in_the_cone() -> None:
    method, units = ParetoMtl(), _units(5, 2)
    outside, gradients = torch.tensor([0.9, 0.05], dtype=DOUBLE), torch.eye(2, dtype=DOUBLE)
    state = method.init(2)
    for step in range(3):
        weights, state = _weights(method, 4, outside, gradients, state)
        assert state["searching"] == 1
        assert method.report(state)["steps_searching"] == step + 1
        assert weights.any()
        assert weights.abs().sum() < 1.9  # not rescaled
    weights, state = _weights(method, 4, _inside(units, 4), gradients, state)
    assert not weights.any()  # that batch itself takes no step
    assert state["searching"] == 0
    for _ in range(2):  # and it does not begin again
        weights, state = _weights(method, 4, outside, gradients, state)
        assert float(weights.abs().sum()) == pytest.approx(2)
    report = method.report(state)
    gap = float(state["gap"])
    assert report == {"steps_searching": 4.0, "reached_cone": 1.0, "largest_gap": gap}


@pytest.mark.parametrize("epochs", [0, 1, 2, 5])
def test_or_with_the_epochs_it_may_last(epochs: int) -> None:
    method = ParetoMtl(search_epochs=epochs)
    state: State = method.init(2)
    outside = torch.tensor([0.9, 0.05], dtype=DOUBLE)
    for epoch in range(7):
        state = method.at_epoch(epoch, state)
        assert bool(state["searching"]) == (epoch < epochs)
        _, state = _weights(method, 4, outside, torch.eye(2, dtype=DOUBLE), state)
    assert method.report(state)["steps_searching"] == float(epochs)
    assert method.report(state)["reached_cone"] == 0  # it was given up
    # a batch that happens to be there later is none that the search led to
    _, state = _weights(method, 4, _inside(_units(5, 2), 4), torch.eye(2, dtype=DOUBLE), state)
    assert method.report(state)["reached_cone"] == 0
    assert ParetoMtl().search_epochs == 2


def test_one_group_in_the_cone_ends_the_search_of_its_network_alone() -> None:
    """Two networks of three groups; a group in the cone takes no step, the others still search."""
    method, units = ParetoMtl(), _units(5, 2)
    outside = torch.tensor([0.9, 0.05], dtype=DOUBLE)
    losses = outside.expand(2, 3, 2).clone()
    losses[1, 2] = _inside(units, 4)
    rays = method.fixed_rays(2)[4].expand(2, 3, 2)
    gram = torch.eye(2, dtype=DOUBLE).expand(2, 3, 2, 2)
    state: State = {name: torch.stack([value] * 2) for name, value in method.init(2).items()}
    weights, after = method.weights(losses, rays, lambda: gram, state)
    assert after["searching"].tolist() == [1, 0]
    assert after["steps_searching"].tolist() == [1, 1]
    assert after["reached_cone"].tolist() == [0, 1]
    alone, _ = method.weights(outside, rays[0, 0], lambda: gram[0, 0], method.init(2))
    for network, group in ((0, 0), (0, 1), (0, 2), (1, 0), (1, 1)):
        torch.testing.assert_close(weights[network, group], alone)
    assert not weights[1, 2].any()
    weights, after = method.weights(losses, rays, lambda: gram, after)
    assert after["steps_searching"].tolist() == [2, 1]
    torch.testing.assert_close(weights[0, 0], alone)
    torch.testing.assert_close(weights[1].abs().sum(dim=-1), torch.full((3,), 2.0, dtype=DOUBLE))


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"networks": 0}, "`networks`.*found 0"),
        ({"search_epochs": -1}, "`search_epochs`.*found -1"),
    ],
    ids=["networks", "search_epochs"],
)
def test_bad_settings_are_refused(settings: dict[str, int], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        ParetoMtl(**settings)


def test_negative_losses_have_no_cone() -> None:
    ParetoMtl().check(torch.tensor([0.0, 1.0]), ("a", "b"))
    with pytest.raises(ConfigurationError, match=r"-0\.1 for `b` .*add a const"):
        ParetoMtl().check(torch.tensor([1.0, -0.1]), ("a", "b"))
