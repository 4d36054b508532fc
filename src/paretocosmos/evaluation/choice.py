"""A point chosen for use: by the validation data, and what it is worth on the test data."""

import dataclasses
import warnings
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from paretocosmos.errors import FrontWarning, InfeasibleError
from paretocosmos.evaluation.evaluate import evaluate, evaluating, outputs_of
from paretocosmos.evaluation.intervals import intervals
from paretocosmos.evaluation.learned import POOLED, pooled_gaps
from paretocosmos.evaluation.proof import proven
from paretocosmos.evaluation.refine import refine
from paretocosmos.evaluation.samples import samples_for
from paretocosmos.evaluation.scoring import front_of, score, table_of
from paretocosmos.evaluation.threshold import MIDDLE, at_threshold, takes_threshold
from paretocosmos.evaluation.threshold_search import other_threshold
from paretocosmos.io.formatting import Grid, format_number
from paretocosmos.pareto.front import Front
from paretocosmos.pareto.selection import Criteria, Point, find_best, get_point, is_constant
from paretocosmos.problems import Problem, check_split, split_of
from paretocosmos.runtime.device import precise
from paretocosmos.types import first, map_tensors

__all__ = ["Choice", "Settled", "look_at_test", "settle"]

# What is told of a choice beside objectives and what was asked for.
TOLD = {"accuracy"}


@dataclass(frozen=True)
class Choice:
    """A point of a front, as `run.choose` chose it.

    Attributes:
        ray: the preference to predict with.
        val: the point on the validation data, on which it was chosen: it keeps the bounds there,
            and so do its `limits`, if a confidence was asked for. Where the network follows a
            preference by a formula (`tilt`), bounds on gaps are kept on the training and
            validation rows together, and `val.pooled` has these gaps.
        test: the same ray on the test data, which were not used to choose.
        evaluations: how many rays were evaluated, those on test included.
        threshold: the probability above which a decision between two classes is positive, for
            everybody; 0.5 unless another one is worth it.
        asked: the criteria, where they are known.

    >>> import tempfile
    >>> from paretocosmos import fit
    >>> run = fit("toy_convex", epochs=5, out=tempfile.mkdtemp() + "/run", report=False)
    >>> choice = run.choose(max={"first": 0.25})
    >>> choice.val["first"] <= 0.25, round(choice.test["second"], 2)  # √first + √second = 1
    (True, 0.25)
    """

    ray: tuple[float, ...]
    val: Point
    test: Point
    evaluations: int
    threshold: float = MIDDLE
    asked: Criteria | None = None

    def __repr__(self) -> str:
        return self._grid().text()

    def _repr_html_(self) -> str:
        return self._grid().html()

    def _grid(self) -> Grid:
        """What was asked of the point, and what it got on val and on test."""
        bounds = [] if self.asked is None else self.asked.bounds()
        said = {name: f"at {'most' if side > 0 else 'least'} {b:g}" for name, b, side in bounds}
        aims = {} if self.asked is None else {"small": self.asked.minimize}
        aims |= {} if self.asked is None else {"large": self.asked.maximize}
        said |= {
            name: f"{how}{f', {said[name]}' if name in said else ''}"
            for how, name in aims.items()
            if name is not None
        }
        names = dict.fromkeys([*said, *self.val.values, *(TOLD & self.val.metrics.keys())])
        rows = [
            [name, said.get(name, ""), format_number(self.val[name]), *_with_ends(self.test, name)]
            for name in names
        ]
        heads = ["", "asked", "on val", "on test", "95 % interval"]
        if self.val.pooled:
            heads.insert(2, f"on {POOLED}")
            for row in rows:
                found = self.val.pooled.get(row[0])
                row.insert(2, "" if found is None else format_number(found))
        ray = ", ".join(f"{part:.4g}" for part in self.ray)
        notes = [f"at the ray ({ray})"]
        if self.threshold != MIDDLE:
            notes = [f"{notes[0]} and the threshold {self.threshold:.4g}"]
        return Grid("Choice", heads, rows, notes)

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers, ready for JSON."""
        return {
            "ray": list(self.ray),
            "val": self.val.to_dict(),
            "test": self.test.to_dict(),
            "evaluations": self.evaluations,
            "threshold": self.threshold,
            "asked": {} if self.asked is None else self.asked.to_dict(),
        }


def _with_ends(point: Point, name: str) -> list[str]:
    """A number and its interval."""
    ends = point.intervals.get(name)
    return [
        format_number(point[name]),
        "" if ends is None else f"{format_number(ends[0])} to {format_number(ends[1])}",
    ]


@dataclass(frozen=True)
class Settled:
    """What was chosen on the validation data.

    Attributes:
        point: the point, with intervals.
        threshold: at which decisions are made.
        problem: what decides at that threshold.
        evaluations: rays that were evaluated for it.
    """

    point: Point
    threshold: float
    problem: Problem
    evaluations: int


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

    The last evaluation is a look at the chosen ray alone, for its intervals.

    Bounds on gaps are kept on the training and validation rows together where the network has
    learned nothing of them (`evaluation/learned.py`), but not with a confidence, which needs rows
    that no network has seen.

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
        evaluations: rays to evaluate at most, the chosen one included.
        threshold: at which decisions are made.
    """
    decided = MIDDLE if threshold is None else threshold
    looked_for = threshold is None and criteria.confidence is None and takes_threshold(problem)
    at_it, spent = at_threshold(problem, decided), 0
    if at_it is not problem:
        front = evaluate(model, at_it, split="val", rays=torch.tensor(front.rays).float())
    gaps = pooled_gaps(model, at_it) if criteria.bounds() and not criteria.confidence else None
    if gaps is not None:
        front = gaps.into(front)

    def at(rays: Tensor) -> Front:
        nonlocal spent
        spent += len(rays)
        found = evaluate(model, at_it, split="val", rays=rays)
        return found if gaps is None else gaps.into(found)

    try:
        if criteria.confidence is not None:
            point = proven(model, at_it, front, criteria)
        elif fixed:
            point = get_point(front, find_best(front, criteria))
        else:
            point, _ = refine(front, at, criteria, evaluations=evaluations - 1)
    except InfeasibleError:
        other = other_threshold(model, problem, front, criteria) if looked_for else None
        if other is None:
            raise
    else:
        other = None
        # where gaps are pooled, 0.5 is where the formula's decisions have the most right answers
        if looked_for and criteria.maximize not in (None, *(["accuracy"] if gaps else [])):
            other = other_threshold(model, problem, front, criteria, beyond=point)
    if other is not None:
        point, decided = other
        at_it, gaps = at_threshold(problem, decided), None
    _warn_of_constant(point)
    seen = _look(model, at_it, point.ray, split="val", chosen=True)
    _warn_below_constant(seen, problem, bounded=bool(criteria.bounds()))
    if gaps is None:
        # its values as they were judged: alone, a ray's numbers may differ in the last digit
        point = dataclasses.replace(point, intervals=seen.intervals)
    else:
        bounded = {name for name, *_ in criteria.bounds()} & gaps.metrics.keys()
        point = dataclasses.replace(seen, pooled={name: point[name] for name in bounded})
    return Settled(point, decided, at_it, spent + 1)


def look_at_test(model: nn.Module, found: Settled) -> Choice:
    """What was chosen, and one look at the test data."""
    test = _look(model, found.problem, found.point.ray, split="test")
    return Choice(found.point.ray, found.point, test, found.evaluations + 1, found.threshold)


def _warn_of_constant(point: Point) -> None:
    if is_constant(point):
        warnings.warn(
            f"the chosen point is a constant classifier: it predicts the same for everybody on "
            f"{point.split}; leave `allow_constant` out, or give a `threshold`",
            FrontWarning,
            stacklevel=4,
        )


def _warn_below_constant(point: Point, problem: Problem, *, bounded: bool) -> None:
    """Say aloud that one answer for everybody would be right more often than what was chosen."""
    reached, constant = point.metrics.get("accuracy"), _constant_accuracy(problem)
    if reached is not None and constant is not None and reached < constant:
        way = "allow more of what is bounded" if bounded else "train longer"
        warnings.warn(
            f"the chosen point has an accuracy of {reached:.1%} on {point.split}, but a constant "
            f"classifier, which predicts the same for everybody, has {constant:.1%}: {way}, or "
            "take a constant classifier with `allow_constant`",
            FrontWarning,
            stacklevel=4,
        )


def _constant_accuracy(problem: Problem) -> float | None:
    """Return the accuracy of the best constant classifier on val; `None` if it is not known."""
    accuracy, classes = problem.metrics.get("accuracy"), problem.outputs
    if accuracy is None or not isinstance(classes, int) or problem.source("val") is not None:
        return None
    rows = split_of(problem, "val")
    answers = torch.tensor([[-1.0], [1.0]]) if classes == 1 else torch.eye(classes)
    everybody = answers.unsqueeze(1).expand(-1, len(rows), -1).to(first(rows.inputs).device)
    return float(score(accuracy, everybody, rows.targets, problem.score_batch).max())


def _look(
    model: nn.Module,
    problem: Problem,
    ray: tuple[float, ...],
    *,
    split: str,
    chosen: bool = False,
) -> Point:
    """One ray on a split, with intervals; those of a ray that was `chosen` on that split."""
    rays, size = torch.tensor([ray]), problem.score_batch
    tables: list[Tensor] = []
    ends: dict[str, tuple[float, float]] = {}
    for objectives, samples in samples_for(model, problem, check_split(split)):
        outputs, targets = outputs_of(model, problem, samples, rays, whose="an interval")
        every = {objective.name: objective.score for objective in objectives}
        with evaluating(model), precise("fp32"):
            tables.append(table_of(objectives, outputs, targets, problem.metrics, size))
            ends |= intervals(
                every | dict(problem.metrics),
                map_tensors(lambda out: out[0], outputs),
                targets,
                score_batch=size,
                chosen=chosen,
            )
    front = front_of(
        torch.cat(tables),
        problem.objectives,
        rays,
        metrics=tuple(problem.metrics),
        reference=problem.reference,
        score_batch=size,
        split=split,
        provenance=None,
    )
    return dataclasses.replace(get_point(front, 0), intervals=ends)
