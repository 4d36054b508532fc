"""A point chosen for use: by the validation data, and what it is worth on the test data."""

import dataclasses
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from paretocosmos.errors import ConfigurationError
from paretocosmos.evaluation.evaluate import bring, evaluate, evaluating, scored, sweep
from paretocosmos.evaluation.intervals import intervals
from paretocosmos.evaluation.proof import proven
from paretocosmos.evaluation.refine import refine
from paretocosmos.pareto.front import Front
from paretocosmos.pareto.selection import Criteria, Point, pick, point_of
from paretocosmos.problems import Problem, check_split
from paretocosmos.runtime.device import precise
from paretocosmos.types import map_tensors

__all__ = ["Choice", "choose"]

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
    """

    ray: tuple[float, ...]
    val: Point
    test: Point
    evaluations: int

    def __repr__(self) -> str:
        ray = ", ".join(f"{part:.4g}" for part in self.ray)
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
        }


def choose(
    model: nn.Module,
    problem: Problem,
    front: Front,
    criteria: Criteria,
    *,
    fixed: bool,
    evaluations: int,
) -> Choice:
    """Choose on the validation data, then look at the test data once.

    Args:
        model: the network.
        problem: what it was trained on.
        front: its validation front.
        criteria: what is asked.
        fixed: whether it has a network for each ray of the front and knows no other.
        evaluations: rays to evaluate at most.
    """
    if evaluations < LOOKS:
        raise ConfigurationError(
            f"`evaluations` are at least {LOOKS}, the chosen ray on val and on test; found "
            f"{evaluations}"
        )

    def at(rays: Tensor) -> Front:
        return evaluate(model, problem, split="val", rays=rays)

    if criteria.confidence is not None:
        point, spent = proven(model, problem, front, criteria), 0
    elif fixed:
        point, spent = point_of(front, pick(front, criteria)), 0
    else:
        point, spent = refine(front, at, criteria, evaluations=evaluations - LOOKS)
    seen = look(model, problem, point.ray, split="val", chosen=True)
    test = look(model, problem, point.ray, split="test")
    # as it was judged: alone, a ray's numbers may differ in the last digit
    val = dataclasses.replace(point, intervals=seen.intervals)
    return Choice(point.ray, val, test, spent + LOOKS)


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
