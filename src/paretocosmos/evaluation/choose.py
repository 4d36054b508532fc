"""Choose a point for use by the validation data, and see what it is worth on the test data."""

import dataclasses
import warnings
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from paretocosmos.errors import FrontWarning, InfeasibleError
from paretocosmos.evaluation.bounds import POOLED, BoundRows, choose_with_confidence
from paretocosmos.evaluation.evaluate import collect_outputs, evaluation_mode
from paretocosmos.evaluation.intervals import compute_intervals
from paretocosmos.evaluation.output_cache import NO_CACHE, OutputCache
from paretocosmos.evaluation.samples import load_samples_for
from paretocosmos.evaluation.scoring import build_front, compute_score, compute_table
from paretocosmos.evaluation.search import refine_choice
from paretocosmos.evaluation.threshold import MIDDLE, at_threshold, find_threshold, takes_threshold
from paretocosmos.io.formatting import Grid, format_number
from paretocosmos.pareto.front import Front, Point, get_point
from paretocosmos.pareto.selection import Criteria, find_best, is_constant
from paretocosmos.problems import Problem, Split, split_of
from paretocosmos.runtime.device import set_precision
from paretocosmos.types import first, map_tensors

# Shown of a choice beside objectives and what was asked for.
SHOWN = {"accuracy"}


@dataclass(frozen=True)
class Choice:
    """A point of a front, as `run.choose` chose it.

    Attributes:
        ray: the preference to predict with.
        val: the point on the validation data, on which it was chosen: it keeps the bounds there,
            and so do its `limits`, if a confidence was asked for. Where the network has a
            `fairness_adjustment`, bounds on gaps are kept on the training and
            validation rows together, and `val.pooled` has these gaps.
        test: the same ray on the test data, which were not used to choose.
        evaluations: how many rays were evaluated, those on test included.
        threshold: the probability above which a decision between two classes is positive, for
            everybody; 0.5 unless another one is worth it.
        asked: the criteria, where they are known.

    >>> import tempfile
    >>> from paretocosmos import fit
    >>> run = fit("toy_convex", out=tempfile.mkdtemp() + "/run", report=False)
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
        """Tabulate what was asked of the point, and what it reaches on val and on test."""
        wishes: dict[str, str] = {}
        if self.asked is not None:
            for name, bound, side in self.asked.bounds():
                wishes[name] = f"at {'most' if side > 0 else 'least'} {bound:g}"
            for wanted, size in ((self.asked.minimize, "small"), (self.asked.maximize, "large")):
                if wanted is not None:
                    wishes[wanted] = f"{size}, {wishes[wanted]}" if wanted in wishes else size
        names = dict.fromkeys([*wishes, *self.val.values, *(SHOWN & self.val.metrics.keys())])
        columns = {"": list(names), "asked": [wishes.get(name, "") for name in names]}
        if pooled := self.val.pooled:
            columns[f"on {POOLED}"] = [
                format_number(pooled[name]) if name in pooled else "" for name in names
            ]
        ends = [self.test.intervals.get(name, ()) for name in names]
        columns |= {
            "on val": [format_number(self.val[name]) for name in names],
            "on test": [format_number(self.test[name]) for name in names],
            "95 % interval": [" to ".join(map(format_number, pair)) for pair in ends],
        }
        rows = [list(row) for row in zip(*columns.values(), strict=True)]
        note = f"at the ray ({', '.join(f'{weight:.4g}' for weight in self.ray)})"
        if self.threshold != MIDDLE:
            note += f" and the threshold {self.threshold:.4g}"
        return Grid("Choice", list(columns), rows, [note])

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


@dataclass(frozen=True)
class ChosenPoint:
    """A point that was chosen on the validation data.

    Attributes:
        criteria: what was asked.
        point: the point, with intervals.
        threshold: at which decisions are made.
        problem: makes decisions at that threshold.
        evaluations: rays that were evaluated for it.
    """

    criteria: Criteria
    point: Point
    threshold: float
    problem: Problem
    evaluations: int


def choose_point(
    model: nn.Module,
    problem: Problem,
    front: Front,
    criteria: Criteria,
    *,
    fixed: bool,
    evaluations: int,
    threshold: float | None = None,
    cache: OutputCache = NO_CACHE,
) -> ChosenPoint:
    """Choose the point that meets the criteria best on the validation data.

    The last evaluation is that of the chosen ray alone, for its intervals.

    Bounds are judged on the rows of `evaluation.bounds.BoundRows`.

    Decisions are made at the probability 0.5, unless another threshold is given; or unless no ray
    keeps the bounds there but by giving everybody the same answer; or unless another gains more of
    what is to be large than chance explains. With a confidence none is searched for, since that
    would be a choice by the data again.

    Args:
        model: the network.
        problem: what it was trained on.
        front: its validation front; evaluated again if it lacks metrics that the problem has now.
        criteria: what is asked.
        fixed: whether it has a network for each ray of the front and knows no other.
        evaluations: rays to evaluate at most, the chosen one included.
        threshold: at which decisions are made.
        cache: outputs of this network on this problem's data, which later choices take from it.
    """
    decided = MIDDLE if threshold is None else threshold
    # with a confidence, a threshold picked on these rows would need a correction of its own
    searches = threshold is None and criteria.confidence is None and takes_threshold(problem)
    deciding = at_threshold(problem, decided)
    rows = BoundRows(model, deciding, criteria, cache)
    if deciding is problem and front.metrics.keys() == problem.metrics.keys():
        front = rows.judge(front)
    else:  # it is of another threshold, or lacks a metric of the problem
        front = rows.evaluate(torch.tensor(front.rays).float())
        rows.evaluations = 0  # the rays of the front are no new ones
    other = None
    try:
        if criteria.confidence is not None:
            point = choose_with_confidence(model, deciding, front, criteria, cache)
        elif fixed:
            point = get_point(front, find_best(front, criteria))
        else:
            point, _ = refine_choice(front, rows.evaluate, criteria, evaluations=evaluations - 1)
    except InfeasibleError:
        if searches:
            other = find_threshold(model, problem, front, criteria, cache=cache)
        if other is None:
            raise
    else:
        # where gaps are pooled, 0.5 is where the formula's decisions have the most right answers
        at_best = (None, "accuracy") if rows.pooled else (None,)
        if searches and criteria.maximize not in at_best:
            other = find_threshold(model, problem, front, criteria, better_than=point, cache=cache)
    judged_on_val = other is not None or not rows.pooled
    if other is not None:
        point, decided = other
        deciding = at_threshold(problem, decided)
    _warn_of_constant(point)
    val = _evaluate_ray(model, deciding, point.ray, split="val", chosen=True, cache=cache)
    _warn_below_constant(val, problem, bounded=bool(criteria.bounds()))
    if judged_on_val:
        # its values as they were judged: alone, a ray's numbers may differ in the last digit
        point = dataclasses.replace(point, intervals=val.intervals)
    else:
        bounded = {name for name, *_ in criteria.bounds()} & rows.pooled.keys()
        point = dataclasses.replace(val, pooled={name: point[name] for name in bounded})
    return ChosenPoint(criteria, point, decided, deciding, rows.evaluations + 1)


def evaluate_choice(model: nn.Module, chosen: ChosenPoint, cache: OutputCache = NO_CACHE) -> Choice:
    """Evaluate the chosen point once on the test data."""
    test = _evaluate_ray(model, chosen.problem, chosen.point.ray, split="test", cache=cache)
    return Choice(
        ray=chosen.point.ray,
        val=chosen.point,
        test=test,
        evaluations=chosen.evaluations + 1,
        threshold=chosen.threshold,
        asked=chosen.criteria,
    )


def _warn_of_constant(point: Point) -> None:
    if is_constant(point):
        warnings.warn(
            f"the chosen point is a constant classifier: it predicts the same for everybody on "
            f"{point.split}; leave `allow_constant` out, or give a `threshold`",
            FrontWarning,
            stacklevel=5,
        )


def _warn_below_constant(point: Point, problem: Problem, *, bounded: bool) -> None:
    """Warn if one answer for everybody would be right more often than what was chosen."""
    reached, constant = point.metrics.get("accuracy"), _compute_constant_accuracy(problem)
    if reached is not None and constant is not None and reached < constant:
        hint = "allow more of what is bounded" if bounded else "train longer"
        warnings.warn(
            f"the chosen point has an accuracy of {reached:.1%} on {point.split}, but a constant "
            f"classifier, which predicts the same for everybody, has {constant:.1%}: {hint}, or "
            "take a constant classifier with `allow_constant`",
            FrontWarning,
            stacklevel=5,
        )


def _compute_constant_accuracy(problem: Problem) -> float | None:
    """Return the accuracy of the best constant classifier on val; `None` if it is not known."""
    accuracy, classes = problem.metrics.get("accuracy"), problem.outputs
    # of several heads, or of rows that are read from a source, it is not computed
    if accuracy is None or not isinstance(classes, int) or problem.source("val") is not None:
        return None
    rows = split_of(problem, "val")
    answers = torch.tensor([[-1.0], [1.0]]) if classes == 1 else torch.eye(classes)
    # [answers, rows, outputs]: the same logits for every row, scored as if answers were rays
    everybody = answers.unsqueeze(1).expand(-1, len(rows), -1).to(first(rows.inputs).device)
    scores = compute_score(accuracy, everybody, rows.targets, problem.score_batch)
    return float(scores.max())


def _evaluate_ray(
    model: nn.Module,
    problem: Problem,
    ray: tuple[float, ...],
    *,
    split: Split,
    chosen: bool = False,
    cache: OutputCache,
) -> Point:
    """Evaluate one ray on a split, with intervals: those of a ray `chosen` on that split or not."""
    rays, size = torch.tensor([ray]), problem.score_batch
    # objectives may have rows of their own: a table and intervals for each share
    tables: list[Tensor] = []
    ends: dict[str, tuple[float, float]] = {}
    for objectives, samples in load_samples_for(model, problem, split):
        outputs, targets = collect_outputs(
            model, problem, samples, rays, purpose="an interval", cache=cache
        )
        scores = {objective.name: objective.score for objective in objectives}
        with evaluation_mode(model), set_precision("fp32"):
            tables.append(compute_table(objectives, outputs, targets, problem.metrics, size))
            ends |= compute_intervals(
                scores | dict(problem.metrics),
                map_tensors(lambda out: out[0], outputs),
                targets,
                score_batch=size,
                chosen=chosen,
            )
    front = build_front(
        torch.cat(tables),
        problem.objectives,
        rays,
        metrics=tuple(problem.metrics),
        reference=problem.reference,
        score_batch=size,
        split=split,
    )
    return dataclasses.replace(get_point(front, 0), intervals=ends)
