"""The toys: their closed-form fronts against brute force over the plane."""

import numpy as np
import pytest
import torch
from torch import Tensor

from paretocosmos.pareto import even_rays
from paretocosmos.problems.functions import ToyProblem, toy_concave, toy_convex

BOTH = (toy_convex(), toy_concave())


def values(problem: ToyProblem, answer: Tensor) -> list[float]:
    batch = problem.split("test")
    outputs = answer.float().expand(len(batch), 2)
    return [float(objective.score(outputs, batch.targets)) for objective in problem.objectives]


def ends(problem: ToyProblem) -> tuple[Tensor, Tensor]:
    targets = problem.split("test").targets
    return targets["first"][0], targets["second"][0]


def grid(problem: ToyProblem) -> np.ndarray:
    side = torch.linspace(-1.5, 1.5, 61)
    return np.array([values(problem, y) for y in torch.cartesian_prod(side, side)])


@pytest.mark.parametrize("problem", BOTH)
def test_the_closed_form_is_what_the_objectives_say(problem: ToyProblem) -> None:
    first, second = ends(problem)
    front = problem.exact_front(9)
    for ray, expected in zip(front.rays, front.values, strict=True):
        found = values(problem, ray[0] * first + ray[1] * second)
        assert found == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("problem", BOTH)
def test_nothing_in_the_plane_dominates_the_front(problem: ToyProblem) -> None:
    front, every = problem.exact_front(50).values, grid(problem)
    better = (every[:, None] < front[None] - 1e-6).all(axis=2)
    assert not better.any()
    assert problem.exact_front(50).non_dominated.all()


def test_a_weighted_sum_finds_every_convex_point() -> None:
    problem = toy_convex()
    first, second = ends(problem)
    for ray in even_rays(5, 2):
        answer = torch.zeros(2, requires_grad=True)
        batch = problem.split("train")
        outputs = answer.expand(len(batch), 2)
        losses = torch.stack([o.loss(outputs, batch.targets) for o in problem.objectives])
        # both are quadratic with second derivative 1: one Newton step is exact
        (slope,) = torch.autograd.grad(ray @ losses, answer)
        np.testing.assert_allclose(-slope, ray[0] * first + ray[1] * second, atol=1e-6)
        assert values(problem, -slope) == pytest.approx(
            problem.exact_values(ray[None].numpy())[0], abs=1e-6
        )


def test_a_weighted_sum_misses_the_middle_of_the_concave_front() -> None:
    problem = toy_concave()
    middle = problem.exact_values(np.array([[0.5, 0.5]]))[0].mean()
    assert problem.exact_front(101).values.mean(axis=1).min() < middle - 0.1
