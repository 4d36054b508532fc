"""Choose a point for use by the validation data, and see what it is worth on the test data."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn

from paretocosmos.errors import FrontWarning, InfeasibleError
from paretocosmos.evaluation.bounds import BoundRows, choose_with_confidence
from paretocosmos.evaluation.check import (
    BoundCheck,
    check_bound,
    evaluate_ray,
    tabulate_point,
    warn_of_constant,
)
from paretocosmos.evaluation.samples import NO_CACHE, OutputCache
from paretocosmos.evaluation.scoring import compute_score
from paretocosmos.evaluation.search import refine_choice
from paretocosmos.evaluation.threshold import MIDDLE, at_threshold, find_threshold, takes_threshold
from paretocosmos.io.formatting import Grid
from paretocosmos.pareto.front import Front, Point, get_point
from paretocosmos.pareto.selection import Criteria, find_best, find_closest, find_feasible
from paretocosmos.problems import Problem, split_of
from paretocosmos.types import first


@dataclass(frozen=True)
class Choice:
    """A point of a front, as `run.choose` chose it.

    Attributes:
        ray: the preference to predict with.
        val: the point on the validation data, on which it was chosen: it keeps the bounds there,
            and so do its `limits`, if a confidence was asked for.
        test: the same ray on the test data, which were not used to choose.
        evaluations: how many rays were evaluated, those on test included.
        threshold: the probability above which a decision between two classes is positive, for
            everybody; 0.5 unless another one is worth it.
        asked: the criteria, where they are known.
        bounds: each bound, and the chance that the true number breaks it.

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
    bounds: tuple[BoundCheck, ...] = ()

    def __repr__(self) -> str:
        return self._grid().text()

    def _repr_html_(self) -> str:
        return self._grid().html()

    def _grid(self) -> Grid:
        told = [
            f"{check.describe_reached(self.test[check.name])} {check.describe_chance()}".rstrip()
            for check in self.bounds
        ]
        points = {"on val": self.val, "on test": self.test}
        return tabulate_point("Choice", points, self.threshold, self.asked, told)

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers, ready for JSON."""
        return {
            "ray": list(self.ray),
            "val": self.val.to_dict(),
            "test": self.test.to_dict(),
            "evaluations": self.evaluations,
            "threshold": self.threshold,
            "asked": {} if self.asked is None else self.asked.to_dict(),
            "bounds": [check.to_dict() for check in self.bounds],
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
        bounds: what the validation data say of each bound.
    """

    criteria: Criteria
    point: Point
    threshold: float
    problem: Problem
    evaluations: int
    bounds: tuple[BoundCheck, ...] = ()


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

    Bounds are judged on the rows of `evaluation.bounds.BoundRows`. Under an upper bound, nothing is
    chosen that is right less often than one answer for everybody (`_require_useful`); at another
    threshold, it must be right more often than chance explains.

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
    confident = criteria.confidence is not None
    searches = threshold is None and not confident and takes_threshold(problem)
    deciding = at_threshold(problem, decided)
    rows = BoundRows(model, deciding, criteria, cache)
    front = _judge_front(front, rows, is_at_middle=deciding is problem)
    useful = _require_useful(criteria, problem, front, threshold)
    find_kept = partial(_find_kept_threshold, rows, problem, front, useful)
    other = None
    try:
        if confident:
            point = choose_with_confidence(rows, front, criteria, useful=useful)
        elif fixed:
            point = get_point(front, find_best(front, useful))
        else:
            point, _ = refine_choice(front, rows.evaluate, useful, evaluations=evaluations - 1)
    except InfeasibleError as error:
        if searches:
            # of many thresholds, one is a little better than a constant classifier by luck
            other = find_kept(beats_constant=useful is not criteria)
        if other is None and not confident:
            error = _explain_failure(error, rows, front, criteria, useful)
        if other is None:
            raise error from None
    else:
        # where gaps are pooled, 0.5 is where the formula's decisions have the most right answers
        at_best = rows.pooled and criteria.maximize == "accuracy"
        wanted = criteria.maximize is not None or isinstance(criteria.minimize, Mapping)
        if searches and wanted and not at_best:
            other = find_kept(better_than=point)
    if other is not None:
        point, decided = other
        deciding = at_threshold(problem, decided)
        rows = rows.with_problem(deciding)
    val, checks = evaluate_ray(
        model, deciding, point.ray, split="val", chosen=True, cache=cache, criteria=criteria
    )
    warn_of_constant(val)
    checks = _complete_checks(checks, point, rows)
    _warn_of_weak_choice(val, problem, checks)
    if rows.pooled:
        val = replace(val, limits=point.limits)
    else:
        # its values as they were judged: alone, a ray's numbers may differ in the last digit
        val = replace(point, intervals=val.intervals)
    return ChosenPoint(criteria, val, decided, deciding, rows.evaluations + 1, checks)


def evaluate_choice(model: nn.Module, chosen: ChosenPoint, cache: OutputCache = NO_CACHE) -> Choice:
    """Evaluate the chosen point once on the test data."""
    test, _ = evaluate_ray(model, chosen.problem, chosen.point.ray, split="test", cache=cache)
    return Choice(
        ray=chosen.point.ray,
        val=chosen.point,
        test=test,
        evaluations=chosen.evaluations + 1,
        threshold=chosen.threshold,
        asked=chosen.criteria,
        bounds=chosen.bounds,
    )


def _judge_front(front: Front, rows: BoundRows, *, is_at_middle: bool) -> Front:
    """Return the front with what keeps bounds, evaluated again if it lacks a metric."""
    if is_at_middle and front.metrics.keys() == rows.problem.metrics.keys():
        return rows.judge(front)
    judged = rows.evaluate(torch.tensor(front.rays).float())
    rows.evaluations = 0  # the rays of the front are no new ones
    return judged


def _require_useful(
    criteria: Criteria, problem: Problem, front: Front, threshold: float | None
) -> Criteria:
    """Return criteria which also ask for the accuracy of a constant classifier.

    Only under upper bounds, which a classifier that is wrong for many can keep, and where some ray
    has that accuracy: of rare positives none may. Whoever gives a lower bound, a threshold, or
    another score of decisions to maximise, may want to give up accuracy for it.
    """
    if not criteria.max or criteria.min or criteria.allow_constant or threshold is not None:
        return criteria
    constant = _compute_constant_accuracy(problem)
    weighs = isinstance(criteria.minimize, Mapping)  # such as costs of mistakes
    if constant is None or weighs or criteria.maximize not in (None, "accuracy"):
        return criteria
    # rounding may tell two equal shares apart
    useful = replace(criteria, min={"accuracy": constant - 1e-9})
    return useful if find_feasible(front, replace(useful, max={})).any() else criteria


def _explain_failure(
    error: InfeasibleError,
    rows: BoundRows,
    front: Front,
    criteria: Criteria,
    useful: Criteria,
) -> InfeasibleError:
    """Return an error with the nearest useful point, and with what so few rows can show."""
    reason, rays = str(error), front
    if useful is not criteria:
        rays = front.take(np.flatnonzero(find_feasible(front, replace(useful, max={}))))
    near = get_point(rays, find_closest(rays, criteria))
    if useful is not criteria:
        reached = " and ".join(f"`{name}` {near[name]:.4g}" for name in criteria.max)
        reason = (
            f"no ray has {criteria.describe_bounds()} on {front.split} and at least the accuracy "
            f"of a constant classifier ({useful.min['accuracy']:.1%}): at the threshold {MIDDLE}, "
            f"the closest has {reached} and an accuracy of {near['accuracy']:.1%}, at the ray "
            f"{','.join(f'{weight:.4g}' for weight in near.ray)}; allow that much, or take a "
            "constant classifier with `allow_constant`"
        )
    _, checks = evaluate_ray(
        rows.model, rows.problem, near.ray, split="val", cache=rows.cache, criteria=criteria
    )
    checks = _complete_checks(checks, near, rows)
    limits = [c.describe_smallest() for c in checks if c.smallest and c.smallest > c.bound]
    return InfeasibleError(". ".join([reason, *limits]).removesuffix("."))


def _find_kept_threshold(
    rows: BoundRows,
    problem: Problem,
    front: Front,
    criteria: Criteria,
    *,
    better_than: Point | None = None,
    beats_constant: bool = False,
) -> tuple[Point, float] | None:
    """Find a point at another threshold, whose gaps are kept on all rows that judge them."""
    found = find_threshold(
        rows.model,
        problem,
        front,
        criteria,
        better_than=better_than,
        beats_constant=beats_constant,
        cache=rows.cache,
    )
    if found is None:
        return None
    point, threshold = found
    judged = rows.with_problem(at_threshold(problem, threshold)).evaluate(
        torch.tensor([point.ray]).float()
    )
    return found if find_feasible(judged, criteria).all() else None


def _complete_checks(
    checks: Sequence[BoundCheck], point: Point, rows: BoundRows
) -> tuple[BoundCheck, ...]:
    """Return checks of bounds with the gaps on all rows, and the limits that were shown."""
    ray, completed = torch.tensor([point.ray]), list[BoundCheck]()
    for check in checks:
        pooled = None
        if check.name in rows.pooled and rows.all_held_out:
            bounded = check.name, check.bound, check.side
            check = check_bound(
                rows.problem, rows.predict(ray)[0], rows.targets, bounded, rows.names
            )
        elif check.name in rows.pooled:
            pooled = float(rows.count_gaps(ray)[check.name][0])
        limit = point.limits.get(check.name)
        completed.append(replace(check, limit=limit, pooled=pooled, held_out=rows.held_out))
    return tuple(completed)


def _warn_of_weak_choice(point: Point, problem: Problem, checks: Sequence[BoundCheck]) -> None:
    """Warn if one answer for everybody would be right more often, or rows are few for a bound."""
    reached, constant = point.metrics.get("accuracy"), _compute_constant_accuracy(problem)
    if reached is not None and constant is not None and reached < constant:
        hint = "allow more of what is bounded" if checks else "train longer"
        warnings.warn(
            f"the chosen point has an accuracy of {reached:.1%} on {point.split}, but a constant "
            f"classifier, which predicts the same for everybody, has {constant:.1%}: {hint}, or "
            "take a constant classifier with `allow_constant`",
            FrontWarning,
            stacklevel=5,
        )
    if not all(check.held_out for check in checks):
        warnings.warn(
            "bounds were judged on the rows that the network was trained on, and new rows may "
            "break them: hold rows out, as is done with tables of at least 100",
            FrontWarning,
            stacklevel=5,
        )
    for check in checks:
        if check.is_vague:
            warnings.warn(
                f"`{check.name}` is hardly known. {check.describe_smallest()}",
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
