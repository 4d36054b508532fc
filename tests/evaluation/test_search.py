"""Choosing beyond the rays held, on fronts that are known in closed form."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from paretocosmos import Front, even_rays
from paretocosmos.errors import InfeasibleError
from paretocosmos.evaluation import refine_choice
from paretocosmos.pareto import Criteria

SEEN: list[Tensor] = []


def circle(rays: Tensor) -> Front:
    """More weight on an objective makes it small; both lie on a quarter circle around (1, 1)."""
    SEEN.append(rays)
    angle = rays[:, 0].double() * math.pi / 2
    values = 1 - torch.stack([angle.sin(), angle.cos()], dim=1)
    return Front(rays.numpy(), values.numpy(), ("loss", "gap"), np.array([2, 2]), split="val")


def cap(rays: Tensor) -> Front:
    """Three objectives, or more, on a sphere around (1, 1, 1)."""
    toward = rays.double() / rays.double().norm(dim=1, keepdim=True)
    names, count = "abcdefghij", rays.shape[1]
    values = (1 - toward).numpy()
    return Front(rays.numpy(), values, tuple(names[:count]), np.full(count, 2.0), split="val")


@pytest.fixture(autouse=True)
def forget() -> None:
    SEEN.clear()


@pytest.mark.parametrize("bound", [0.02, 0.11, 0.5, 0.77])
@pytest.mark.parametrize("held", [3, 25])
def test_a_bisection_meets_the_bound(bound: float, held: int) -> None:
    point, spent = refine_choice(circle(even_rays(held, 2)), circle, Criteria(max={"gap": bound}))
    assert point["gap"] <= bound  # exactly
    best = 1 - math.sin(math.acos(1 - bound))  # on the circle
    assert best <= point["loss"] < best + 1e-3
    assert spent == sum(map(len, SEEN[1:])) <= 20


def test_one_may_go_beyond_the_outermost_ray() -> None:
    front = circle(even_rays(5, 2))
    assert front.values[:, 1].min() > 0.009
    point, _ = refine_choice(front, circle, Criteria(max={"gap": 1e-4}))
    assert point["gap"] <= 1e-4
    with pytest.raises(InfeasibleError, match=r"the closest has `gap` \d"):
        refine_choice(front, circle, Criteria(max={"gap": -0.1}))


@pytest.mark.parametrize(
    ("criteria", "wanted"),
    [
        (Criteria(knee=True), 1 - math.sqrt(0.5)),
        (Criteria(weights=[0.5, 0.5]), 1 - math.sqrt(0.5)),
        (Criteria(near={"loss": 0.3210}), 0.3210),
        (Criteria(maximize="gap", max={"loss": 0.123}), None),
    ],
)
def test_other_wishes_are_refined_too(criteria: Criteria, wanted: float | None) -> None:
    front = circle(even_rays(4, 2))
    point, spent = refine_choice(front, circle, criteria)
    first, _ = refine_choice(front, circle, criteria, evaluations=0)
    assert spent <= 20
    if wanted is None:
        assert point["gap"] >= first["gap"]
    else:
        assert abs(point["loss"] - wanted) < 1e-3 < abs(first["loss"] - wanted)


def test_three_objectives() -> None:
    front = cap(even_rays(25, 3))
    criteria = Criteria(max={"b": 0.5, "c": 0.6})
    point, spent = refine_choice(front, cap, criteria)
    held, none = refine_choice(front, cap, criteria, evaluations=0)
    assert none == 0 < spent <= 20
    assert point["b"] <= 0.5
    assert point["c"] <= 0.6
    assert point["a"] < held["a"]
    best = 1 - math.sqrt(1 - 0.5**2 - 0.4**2)
    assert best <= point["a"] < best + 1e-3


def test_the_knee_of_a_sphere() -> None:
    front = cap(even_rays(12, 3))
    point, _ = refine_choice(front, cap, Criteria(knee=True))
    held, _ = refine_choice(front, cap, Criteria(knee=True), evaluations=0)
    middle = 1 - 1 / math.sqrt(3)
    off = [max(abs(v - middle) for v in p.values.values()) for p in (point, held)]
    assert off[0] < off[1] / 2  # not quite 0: the rays held are not the same on every side


def test_ten_objectives() -> None:
    front = cap(even_rays(40, 10))
    criteria = Criteria(max={"b": 0.45, "c": 0.5})
    point, spent = refine_choice(front, cap, criteria)
    assert spent <= 20
    assert point["b"] <= 0.45
    assert point["c"] <= 0.5
    with pytest.raises(InfeasibleError):  # none of those held
        refine_choice(front, cap, criteria, evaluations=0)


def test_a_metric_that_is_missing_somewhere_does_not_matter() -> None:
    def gappy(rays: Tensor) -> Front:
        plain = cap(rays)
        auc = np.where(plain.rays[:, 0] > 0.3, np.nan, 0.5)
        return Front(plain.rays, plain.values, plain.names, plain.reference, {"auc": auc}, "val")

    criteria = Criteria(max={"b": 0.5, "c": 0.6})
    point, _ = refine_choice(gappy(even_rays(25, 3)), gappy, criteria)
    assert point.values == refine_choice(cap(even_rays(25, 3)), cap, criteria)[0].values


@pytest.mark.parametrize("most", [0, 1, 2, 7])
def test_no_more_rays_than_allowed(most: int) -> None:
    _, spent = refine_choice(circle(even_rays(5, 2)), circle, Criteria(knee=True), evaluations=most)
    assert spent == most == sum(map(len, SEEN[1:]))


def test_what_it_evaluates_are_rays() -> None:
    refine_choice(cap(even_rays(5, 3)), cap, Criteria(knee=True))
    refine_choice(circle(even_rays(5, 2)), circle, Criteria(near=[0, 0]))
    for rays in SEEN:
        assert bool((rays >= 0).all())
        torch.testing.assert_close(rays.sum(dim=1), torch.ones(len(rays)))
