import sys
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
import torch
from scipy.optimize import linprog
from tests.pareto.solvers.conftest import Gradients, is_on_simplex
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

from paretocosmos.errors import ConfigurationError
from paretocosmos.pareto.solvers import epo

FAMILIES = [
    "full rank",
    "rank 1",
    "rank 2",
    "rank 3",
    "zero gradient",
    "equal",
    "opposite",
    "positive",
    "nearly collinear 1e-2",
    "nearly collinear 1e-6",
    "matrices 1e-16 to 1e16",
    "all zero",
]
PLACES = ["anywhere", "near the ray", "on the ray", "corner ray", "equal losses"]


def _place(name: str, count: int, n: int, seed: int) -> tuple[Tensor, Tensor]:
    """Losses and rays ``[count, n]``."""
    generator = np.random.default_rng(seed)
    rays = generator.dirichlet(np.ones(n), count).clip(1e-3)
    rays /= rays.sum(axis=1, keepdims=True)
    losses = generator.uniform(0.01, 1, (count, n))
    if name == "on the ray":
        losses = 0.3 / rays
    elif name == "near the ray":
        losses = np.exp(0.01 * generator.standard_normal((count, n))) / rays
    elif name == "equal losses":
        losses[:] = 0.7
    elif name == "corner ray":
        rays = np.eye(n)[generator.integers(n, size=count)]
    return torch.tensor(losses), torch.tensor(rays)


class Programme(NamedTuple):
    """Maximise gain·x over the simplex with rows @ x >= right; straight from the definition."""

    gain: np.ndarray
    rows: np.ndarray
    right: np.ndarray
    balance: bool


def _programme(gram: np.ndarray, losses: np.ndarray, ray: np.ndarray) -> Programme:
    m = len(losses)
    gram = gram / (np.trace(gram) or 1.0)
    rl = ray * losses
    hat = rl / rl.sum()
    logs = np.log(m * hat, out=np.zeros(m), where=hat > 0)
    mu = (hat * logs).sum()
    ca = gram @ (ray * (logs - mu))
    # rows divided by the length of their gradient: the same programme, and a fair tolerance
    length = np.sqrt(np.diag(gram))
    length[length == 0] = 1
    if mu > 1e-4:
        right = np.where(ca > 0, -np.inf, ca) if (ca > 0).any() else np.zeros(m)
        right[rl == rl.max()] = 0
        kept = right > -np.inf
        return Programme(ca, (gram / length[:, None])[kept], (right / length)[kept], True)
    rows = np.concatenate([gram / length[:, None], ca[None]])
    right = np.append(np.zeros(m), min(0.0, ca.max()))
    return Programme(gram.sum(axis=0), rows, right, False)


OPTIONS = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def _highs(programme: Programme) -> float | None:
    """The optimum by HiGHS; None if infeasible."""
    gain, rows, right, _ = programme
    size = np.abs(gain).max() or 1.0
    found = linprog(
        -gain / size, -rows, -right, np.ones((1, len(gain))), [1.0], method="highs", options=OPTIONS
    )
    if found.status == 2:
        return None
    assert found.status == 0, found.message
    return float(-found.fun * size)


def _least_violation(programme: Programme) -> float:
    """The smallest t with rows @ x + t >= right somewhere on the simplex."""
    gain, rows, right, _ = programme
    n = len(gain)
    found = linprog(
        np.append(np.zeros(n), 1.0),
        np.hstack([-rows, -np.ones((len(rows), 1))]),
        -right,
        np.append(np.ones(n), 0.0)[None],
        [1.0],
        [(0, None)] * n + [(None, None)],
        method="highs",
        options=OPTIONS,
    )
    assert found.status == 0
    return float(found.fun)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("family", FAMILIES)
def test_the_value_of_highs(gradients: Gradients, family: str, place: str) -> None:
    for n in (2, 3, 4, 6, 10):
        gram = gradients(family, 6, n, n)
        gram = gram @ gram.mT
        losses, rays = _place(place, 6, n, n)
        found = epo(gram, losses, rays)
        assert is_on_simplex(found.weights)
        for i in range(6):
            programme = _programme(gram[i].numpy(), losses[i].numpy(), rays[i].numpy())
            gain, rows, right, balance = programme
            optimum = _highs(programme)
            if not found.feasible[i]:
                assert not balance  # the first programme has the shortest vector as a solution
                assert optimum is None or _least_violation(programme) > 1e-11
                np.testing.assert_allclose(found.weights[i], rays[i], atol=1e-15)
                continue
            assert found.gap[i] <= 1e-10
            weights = found.weights[i].numpy()
            assert (rows @ weights >= right - 1e-10).all()
            if optimum is None:
                assert _least_violation(programme) < 1e-7
            else:
                # gains below 1e-15 of the trace are rounding
                assert abs(gain @ weights - optimum) <= 1e-9 * max(np.abs(gain).max(), 1e-6)


def test_infeasible_exactly_when_highs_says_so(gradients: Gradients) -> None:
    counts = {True: 0, False: 0}
    for n in (3, 4, 5, 7, 9):
        for family in ("rank 2", "rank 3", "full rank"):
            vectors = gradients(family, 60, n, 9 * n)
            gram = vectors @ vectors.mT
            losses, rays = _place("near the ray", 60, n, 9 * n)
            found = epo(gram, losses, rays)
            for i in range(60):
                programme = _programme(gram[i].numpy(), losses[i].numpy(), rays[i].numpy())
                violation = _least_violation(programme)
                if programme.balance or 1e-11 < violation < 1e-7:
                    continue
                counts[violation <= 1e-11] += 1
                assert bool(found.feasible[i]) == (violation <= 1e-11)
    assert counts[True] > 300
    assert counts[False] > 50


@pytest.mark.parametrize("seed", [0, 1])
def test_two_objectives_are_always_feasible(gradients: Gradients, seed: int) -> None:
    for family in FAMILIES:
        vectors = gradients(family, 200, 2, seed)
        for place in PLACES:
            found = epo(vectors @ vectors.mT, *_place(place, 200, 2, seed))
            assert found.feasible.all()
            assert found.gap.max() <= 1e-14


@pytest.mark.parametrize("family", ["lengths 1e-4 to 1e4", "lengths 1e-8 to 1e8"])
@pytest.mark.parametrize("n", [3, 5, 10])
def test_lengths_over_many_decades(gradients: Gradients, n: int, family: str) -> None:
    vectors = gradients(family, 500, n, n)
    gram = vectors @ vectors.mT
    for place in PLACES:
        found = epo(gram, *_place(place, 500, n, n))
        assert is_on_simplex(found.weights)
        assert found.gap.isfinite().all()
        if family == "lengths 1e-4 to 1e4":
            # a solver for float64 can do no more for 1e-8 to 1e8: a Gram matrix over 32 decades
            assert found.gap[found.feasible].max() <= 1e-8
            assert found.feasible.all() or place == "near the ray"


@pytest.mark.parametrize("n", [3, 4, 6, 10])
def test_the_gap_bounds_the_distance_to_the_optimum(
    gradients: Gradients, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # too few pivots: points that are feasible, with a tolerance as wide as a barn, and not optimal
    module = sys.modules["paretocosmos.pareto.solvers.epo"]
    monkeypatch.setattr(module, "PIVOTS", 1 / n)
    monkeypatch.setattr(module, "FEASIBLE", 10.0)
    monkeypatch.setattr(module, "find_best_vertex", _few(module.find_best_vertex))
    vectors = gradients("rank 3", 40, n, n)
    gram = vectors @ vectors.mT
    losses, rays = _place("anywhere", 40, n, n)
    found = epo(gram, losses, rays)
    missed = 0
    for i in range(40):
        programme = _programme(gram[i].numpy(), losses[i].numpy(), rays[i].numpy())
        optimum = _highs(programme)
        assert optimum is not None
        weights, size = found.weights[i].numpy(), np.abs(programme.gain).max()
        short = (optimum - programme.gain @ weights) / size
        below = (programme.right - programme.rows @ weights).max()
        assert short <= found.gap[i] + 1e-9
        assert below <= found.gap[i] + 1e-9
        missed += below > 1e-6
    assert missed >= 1


def _few(function: Callable[..., object]) -> Callable[..., object]:
    def call(rows: Tensor, gain: Tensor, *, pivots: float) -> object:
        return function(rows, gain, pivots=int(pivots))

    return call


@pytest.mark.parametrize("loss", [0.0, -1.0, float("nan"), float("inf")])
@pytest.mark.parametrize("n", [2, 3])
def test_a_loss_that_is_not_positive_gives_the_ray(n: int, loss: float) -> None:
    losses = torch.ones(3, n)
    losses[1, 0] = loss
    rays = torch.full((3, n), 2.0)
    found = epo(torch.eye(n).expand(3, n, n), losses, rays)
    assert found.feasible.tolist() == [True, False, True]
    torch.testing.assert_close(found.weights[1], torch.full((n,), 1 / n, dtype=torch.float64))
    if loss <= 0:
        assert found.gap.isfinite().all()


@pytest.mark.parametrize("n", [2, 3, 5])
@pytest.mark.parametrize("scale", [0.0, 5e-324, 1e-310, 1e-300, 1e-16, 1e16, 1e300])
@pytest.mark.parametrize("loss", [1e-320, 1e-300, 1.0, 1e300])
def test_always_finite(n: int, scale: float, loss: float) -> None:
    vectors = torch.tensor([[1.0, i % 3 - 1.0] for i in range(n)], dtype=torch.float64)
    losses = torch.linspace(1, 2, n, dtype=torch.float64) * loss
    for ray in (torch.full((n,), 1 / n), torch.eye(n)[0]):
        found = epo(vectors @ vectors.mT * scale, losses, ray)
        assert is_on_simplex(found.weights)
        assert found.gap.isfinite()
        assert found.feasible


@pytest.mark.parametrize("n", [2, 3, 5])
def test_leading_axes_are_independent_and_inputs_untouched(gradients: Gradients, n: int) -> None:
    vectors = gradients("full rank", 6, n, 1)
    gram = (vectors @ vectors.mT).reshape(2, 3, n, n)
    losses, rays = (x.reshape(2, 3, n) for x in _place("anywhere", 6, n, 1))
    before = [x.clone() for x in (gram, losses, rays)]
    whole = epo(gram, losses, rays)
    assert whole.weights.shape == (2, 3, n)
    assert whole.feasible.shape == whole.gap.shape == (2, 3)
    one = epo(gram[1, 2], losses[1, 2], rays[1, 2])
    torch.testing.assert_close(whole.weights[1, 2], one.weights, rtol=0, atol=1e-12)
    shared = epo(gram[1, 2], losses, rays[1, 2])  # broadcast
    torch.testing.assert_close(shared.weights[1, 2], one.weights, rtol=0, atol=1e-12)
    assert all(torch.equal(x, y) for x, y in zip((gram, losses, rays), before, strict=True))


@pytest.mark.system
@pytest.mark.parametrize("n", [2, 3, 5])
def test_a_recording_works_for_other_values(gradients: Gradients, n: int) -> None:
    def call(gram: Tensor, losses: Tensor, rays: Tensor) -> tuple[Tensor, ...]:
        return tuple(epo(gram, losses, rays))

    start = torch.zeros(8, n, n), torch.ones(8, n), torch.ones(8, n)
    recorded = make_fx(call)(*start)
    for place in PLACES:
        vectors = gradients("rank 2", 8, n, 2)
        values = [x.float() for x in (vectors @ vectors.mT, *_place(place, 8, n, 2))]
        for replayed, direct in zip(recorded(*values), call(*values), strict=True):
            assert torch.equal(replayed, direct)
    assert epo(*(x.to("meta") for x in start)).weights.shape == (8, n)


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_computed_in_float64_whatever_comes_in(
    gradients: Gradients, n: int, dtype: torch.dtype
) -> None:
    vectors = gradients("full rank", 20, n, 4)
    values = [x.to(dtype) for x in (vectors @ vectors.mT, *_place("anywhere", 20, n, 4))]
    found = epo(*values)
    assert found.weights.dtype == found.gap.dtype == torch.float64
    assert found.feasible.dtype == torch.bool
    assert torch.equal(found.weights, epo(*(x.double() for x in values)).weights)


@pytest.mark.parametrize("shapes", [((2, 2), (3,), (2,)), ((3, 3), (3,), (2,)), ((2, 2), (2,), ())])
def test_shapes_that_do_not_fit_are_refused(shapes: tuple[tuple[int, ...], ...]) -> None:
    with pytest.raises(ConfigurationError, match="same last axis"):
        epo(*(torch.ones(shape) for shape in shapes))
