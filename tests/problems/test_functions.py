"""Functions of decision variables: exact fronts against random variables, and what is refused."""

import math
from typing import Any

import moocore
import numpy as np
import pytest
import torch
from torch import Tensor

from paretocosmos import fit, load_problem
from paretocosmos.errors import ConfigurationError
from paretocosmos.pareto.metrics import hypervolume, monotonicity
from paretocosmos.problems.functions import Bounds, FunctionProblem

NAMES = ("zdt1", "zdt2", "zdt3", "dtlz2", "dtlz7", "vlmop2", "re21")


def known(name: str) -> FunctionProblem:
    problem = load_problem(name)
    assert isinstance(problem, FunctionProblem)
    return problem


def two_wells(x: Tensor) -> Tensor:
    return torch.stack([x.square().sum(-1), (x - 1).square().sum(-1)], dim=-1)


def make(**changes: Any) -> FunctionProblem:
    given: dict[str, Any] = {
        "function": two_wells,
        "bounds": [(-1, 2), (-1, 2)],
        "names": ("cost", "wear"),
        "reference": (3, 3),
    }
    given |= changes
    return FunctionProblem.of(given.pop("function"), **given)


@pytest.mark.parametrize("name", NAMES)
def test_no_variables_dominate_the_exact_front(name: str) -> None:
    problem = known(name)
    count = len(problem.bounds.lower)
    generator = torch.Generator().manual_seed(1)
    variables = torch.rand(20_000, count, generator=generator, dtype=torch.float64)
    # half of them where the distance to the front is smallest, as all would hardly come near it
    best = {"dtlz2": 0.5}.get(name, 0.0)
    distances = slice(2 if name.startswith("dtlz") else 1, None)
    if name == "vlmop2":
        variables[:10_000] = variables[:10_000, :1]
    elif name == "re21":
        variables[:10_000, 2] = 0
    else:
        variables[:10_000, distances] = best
    lower, upper = torch.tensor(problem.bounds.lower), torch.tensor(problem.bounds.upper)
    values = problem.function(lower + (upper - lower) * variables).numpy()
    front = problem.exact_front(60)
    assert front.non_dominated.all()
    assert (front.values < front.reference).all()
    better = (values[:, None] < front.values[None] - 1e-9).all(axis=2)
    assert not better.any()
    # and some come near it everywhere
    near = np.abs(values[:, None] - front.values[None]).max(axis=2).min(axis=0)
    assert near.max() < 0.1


@pytest.mark.parametrize(
    ("name", "volume"),
    [
        # areas under 1 - √x and 1 - x², from (1.1, 1.1)
        ("zdt1", 1.21 - 1 / 3),
        ("zdt2", 1.21 - 2 / 3),
    ],
)
def test_the_hypervolume_is_the_integral(name: str, volume: float) -> None:
    assert hypervolume(known(name).exact_front(2000)) == pytest.approx(volume, abs=1e-3)


def test_a_sphere_has_the_volume_of_one() -> None:
    circle = known("dtlz2").exact_front(400)
    np.testing.assert_allclose(np.linalg.norm(circle.values, axis=1), 1, atol=1e-6)
    flat = FunctionProblem.exact_front(load_problem("dtlz2", settings={"objectives": 2}), 3000)  # type: ignore[arg-type]
    assert hypervolume(flat) == pytest.approx(1.21 - math.pi / 4, abs=1e-3)


def test_a_rocket_injector_has_the_published_values() -> None:
    problem = known("re37")
    points = torch.tensor([(0.25, 0.5, 0.75, 0.125), (0, 0, 0, 0), (1, 1, 1, 1)]).double()
    best = np.array([0.00889341391106, 0.00488, -0.431499999825])
    worst = np.array([0.98949120096, 0.956587924661, 0.987530948586])
    values = problem.function(points).numpy() * (worst - best) + best
    # from the formulas as printed, computed apart; at the corners only sums of factors are left
    expected = [[0.43422375, 0.62516875, 0.438896875], [0.692, 0.153, 0.37]]
    np.testing.assert_allclose(values, [*expected, [0.20514, 0.8774, 0.2838]], rtol=1e-9)
    with pytest.raises(ConfigurationError, match="true front"):
        problem.exact_front()


def kursawe(x: Tensor) -> Tensor:
    squares = x.square() + 1e-12
    pairs = (squares[..., :-1] + squares[..., 1:]).sqrt()
    first = -10 * torch.exp(-0.2 * pairs).sum(-1)
    return torch.stack([first, (squares**0.4 + 5 * torch.sin(x**3)).sum(-1)], dim=-1)


def test_the_ranges_of_a_front_are_found() -> None:
    # its minima as Kursawe has them, among many local ones, and what the other objective is there
    problem = make(function=kursawe, bounds=[(-5, 5)] * 3, reference=(-10, 100))
    ranges = [(objective.best, objective.worst) for objective in problem.objectives]  # type: ignore[attr-defined]
    np.testing.assert_allclose(ranges, [(-20, -14.44), (-11.63, 0)], atol=0.02)
    # the reference limits a range, and makes one where an objective has none
    near = make(reference=(1, 3)).objectives[0]
    flat = make(function=lambda x: two_wells(x)[:, :1].expand(-1, 2)).objectives[1]
    assert near.worst == 1  # type: ignore[attr-defined]
    assert flat.worst == 3  # type: ignore[attr-defined]


def test_a_front_may_lie_anywhere(tmp_path: Any) -> None:
    def moved(x: Tensor) -> Tensor:  # Schaffer's: x² and (x - 2)² for x from 0 to 2
        return torch.cat([x.square() - 7, 1000 + 100 * (x - 2).square()], dim=-1)

    problem = make(function=moved, bounds=[(-10, 10)], reference=(-2, 1500))
    run = fit(
        problem,
        out=tmp_path / "run",
        device="cpu",
        progress=False,
        report=False,
        settings={"rays": 100},
    )
    share = np.linspace(0, 2, 100)
    exact = np.stack([share**2 - 7, 1000 + 100 * (share - 2) ** 2], axis=1)
    best = moocore.hypervolume(exact, ref=(-2, 1500))
    assert moocore.hypervolume(run.front.values, ref=(-2, 1500)) > 0.99 * best
    assert monotonicity(run.front).min() > 0.97
    assert run.record["findings"] == []


def test_outputs_become_variables_within_bounds() -> None:
    bounds = Bounds((0.0, -2.0), (1.0, 2.0))
    outputs = torch.tensor([[-math.pi / 2, math.pi / 2], [0.0, 0.0], [50.0, -50.0]])
    inside = bounds.inside(outputs)
    torch.testing.assert_close(inside[:2], torch.tensor([[0.0, 2.0], [0.5, 0.0]]))
    assert ((inside >= torch.tensor([0.0, -2.0])) & (inside <= torch.tensor([1.0, 2.0]))).all()


def test_a_network_learns_the_variables_of_every_ray(tmp_path: Any) -> None:
    problem = make()
    run = fit(
        problem,
        out=tmp_path / "run",
        epochs=40,
        device="cpu",
        progress=False,
        report=False,
        settings={"rays": 9},
    )
    rays = torch.from_numpy(run.front.rays.copy())
    variables = problem.variables(run.model, rays)
    np.testing.assert_allclose(two_wells(variables).numpy(), run.front.values, atol=1e-5)
    # the Pareto set is the segment between the two wells
    assert (variables[:, 0] - variables[:, 1]).abs().max() < 0.05
    assert variables.min() > -0.05
    assert variables.max() < 1.05


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"bounds": []}, "finite pair"),
        ({"bounds": [(0, 0), (0, 1)]}, "finite pair"),
        ({"bounds": [(0, math.inf), (0, 1)]}, "finite pair"),
        ({"names": ("cost",)}, "one column per name"),
        ({"reference": (3, 3, 3)}, "3 numbers in `reference`"),
        ({"function": lambda x: x @ torch.ones(7, 2)}, "`function` cannot be evaluated"),
        ({"function": Tensor.detach}, "`function` cannot be differentiated"),
        ({"reference": (3, -1)}, "worse than the front in everything, found -1 for `wear`"),
    ],
)
def test_what_does_not_fit_is_refused(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigurationError, match=sentence):
        make(**changes)


def test_an_unknown_front_is_not_drawn() -> None:
    with pytest.raises(ConfigurationError, match=r"`function` is not known: pass `exact`"):
        make().exact_front()
    with pytest.raises(ConfigurationError, match=r"`count`.*found 1"):
        known("zdt1").exact_front(1)
