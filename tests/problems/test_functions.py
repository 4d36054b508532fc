"""Functions of decision variables: exact fronts against random variables, and what is refused."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from paretocosmos import fit, load_problem
from paretocosmos.errors import ConfigurationError
from paretocosmos.pareto.metrics import hypervolume
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
