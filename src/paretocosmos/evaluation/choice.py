"""A point chosen for use: by the validation data, and what it is worth on the test data."""

import dataclasses
import warnings
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from paretocosmos.errors import ConfigurationError, FrontWarning, InfeasibleError
from paretocosmos.evaluation.evaluate import bring, evaluate, evaluating, scored, sweep
from paretocosmos.evaluation.intervals import intervals
from paretocosmos.evaluation.proof import proven
from paretocosmos.evaluation.refine import refine
from paretocosmos.evaluation.threshold import MIDDLE, at_threshold, takes_threshold
from paretocosmos.evaluation.threshold_search import other_threshold
from paretocosmos.pareto.front import Front
from paretocosmos.pareto.selection import Criteria, Point, is_constant, pick, point_of
from paretocosmos.problems import Problem, check_split
from paretocosmos.runtime.device import precise
from paretocosmos.types import map_tensors

__all__ = ["Choice", "Settled", "choose", "look", "settle"]

# A look at the chosen ray on val and one on test, for the intervals.
LOOKS = 2


@dataclass(frozen=True)
class Choice:
    """A point of a run, chosen.

    Attributes:
        ray: the preference to predict with.
        val: the point on the validation data, by which it was chosen: it keeps the bounds there,
            and so do its `limits`, where a confidence was asked for.
        test: the same ray on the test data, which had no say.
        evaluations: rays evaluated for it, those on test included.
        threshold: the probability above which a decision between two classes is positive, for
            everybody; 0.5 where no other is worth it, and where nothing of the kind is decided.
    """

    ray: tuple[float, ...]
    val: Point
    test: Point
    evaluations: int
    threshold: float = MIDDLE

    def __repr__(self) -> str:
        ray = ", ".join(f"{part:.4g}" for part in self.ray)
        if self.threshold != MIDDLE:
            ray += f"; threshold {self.threshold:.4g}"
        points = [
            ", ".join(f"{name} {value:.4g}" for name, value in point.values.items())
            for point in (self.val, self.test)
        ]
        return f"Choice(ray ({ray}): {points[0]} on val; {points[1]} on test)"

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers, ready for JSON."""
        return {
            "ray": list(self.ray),
            "val": self.val.to_dict(),
            "test": self.test.to_dict(),
            "evaluations": self.evaluations,
            "threshold": self.threshold,
        }


@dataclass(frozen=True)
class Settled:
    """What was chosen on the validation data.

    Attributes:
        point: the point, without intervals.
        threshold: at which decisions are made.
        problem: what decides at that threshold.
        spent: rays that were evaluated.
    """

    point: Point
    threshold: float
    problem: Problem
    spent: int


def choose(
    model: nn.Module,
    problem: Problem,
    front: Front,
    criteria: Criteria,
    *,
    fixed: bool,
    evaluations: int,
    threshold: float | None = None,
) -> Choice:
    """Choose on the validation data, then look at the test data once.

    Args:
        model: the network.
        problem: what it was trained on.
        front: its validation front.
        criteria: what is asked.
        fixed: whether it has a network for each ray of the front and knows no other.
        evaluations: rays to evaluate at most.
        threshold: at which decisions are made; `None` as `settle` has it.
    """
    if evaluations < LOOKS:
        raise ConfigurationError(
            f"`evaluations` are at least {LOOKS}, the chosen ray on val and on test; found "
            f"{evaluations}"
        )
    found = settle(
        model,
        problem,
        front,
        criteria,
        fixed=fixed,
        evaluations=evaluations - LOOKS,
        threshold=threshold,
    )
    ray = found.point.ray
    seen = look(model, found.problem, ray, split="val", chosen=True)
    test = look(model, found.problem, ray, split="test")
    # as it was judged: alone, a ray's numbers may differ in the last digit
    val = dataclasses.replace(found.point, intervals=seen.intervals)
    return Choice(ray, val, test, found.spent + LOOKS, found.threshold)


def settle(
    model: nn.Module,
    problem: Problem,
    front: Front,
    criteria: Criteria,
    *,
    fixed: bool,
    evaluations: int,
    threshold: float | None = None,
) -> Settled:
    """The point of the validation data that meets the criteria best.

    Decisions are made at the probability 0.5, unless another threshold is given; or unless no ray
    keeps the bounds there but by giving everybody the same answer; or unless another gains more of
    what is to be large than chance explains. With a confidence it is not looked for, since that
    would be a choice by the data again.

    Args:
        model: the network.
        problem: what it was trained on.
        front: its validation front.
        criteria: what is asked.
        fixed: whether it has a network for each ray of the front and knows no other.
        evaluations: rays to evaluate at most.
        threshold: at which decisions are made.
    """
    decided = MIDDLE if threshold is None else threshold
    looked_for = threshold is None and criteria.confidence is None and takes_threshold(problem)
    at_it, spent = at_threshold(problem, decided), 0
    if at_it is not problem:
        front = evaluate(model, at_it, split="val", rays=torch.tensor(front.rays).float())

    def at(rays: Tensor) -> Front:
        nonlocal spent
        spent += len(rays)
        return evaluate(model, at_it, split="val", rays=rays)

    try:
        if criteria.confidence is not None:
            point = proven(model, at_it, front, criteria)
        elif fixed:
            point = point_of(front, pick(front, criteria))
        else:
            point, _ = refine(front, at, criteria, evaluations=evaluations)
    except InfeasibleError:
        other = other_threshold(model, problem, front, criteria) if looked_for else None
        if other is None:
            raise
    else:
        other = None
        if looked_for and criteria.maximize is not None:
            other = other_threshold(model, problem, front, criteria, beyond=point)
    if other is not None:
        point, decided = other
        at_it = at_threshold(problem, decided)
    _warn_of_constant(point)
    return Settled(point, decided, at_it, spent)


def _warn_of_constant(point: Point) -> None:
    if is_constant(point):
        warnings.warn(
            f"the chosen point is a constant classifier: everybody gets the same answer on "
            f"{point.split}; leave `allow_constant` out, or give a `threshold`",
            FrontWarning,
            stacklevel=5,
        )


def look(
    model: nn.Module,
    problem: Problem,
    ray: tuple[float, ...],
    *,
    split: str,
    chosen: bool = False,
) -> Point:
    """One ray on a split, with intervals; those of a ray that was `chosen` on that split."""
    parameter = next(model.parameters(), torch.zeros(()))
    batch = bring(problem.split(check_split(split)), parameter.device, parameter.dtype)
    rays = torch.tensor([ray])
    every = {objective.name: objective.score for objective in problem.objectives}
    with evaluating(model), precise("fp32"):
        outputs = sweep(model, batch.inputs, rays, problem.prepare)
        front = scored(
            problem.objectives,
            outputs,
            batch.targets,
            rays,
            metrics=problem.metrics,
            reference=problem.reference,
            score_batch=problem.score_batch,
            split=split,
        )
        ends = intervals(
            every | dict(problem.metrics),
            map_tensors(lambda out: out[0], outputs),
            batch.targets,
            score_batch=problem.score_batch,
            chosen=chosen,
        )
    return dataclasses.replace(point_of(front, 0), intervals=ends)
