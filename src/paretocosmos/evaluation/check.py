"""Numbers of one ray on some rows, and the chance that the true ones break the bounds there."""

import dataclasses
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import NormalDist
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from paretocosmos.errors import FrontWarning
from paretocosmos.evaluation.evaluate import collect_outputs, evaluation_mode
from paretocosmos.evaluation.intervals import (
    compute_intervals,
    draw_paired_scores,
    find_fewest,
    get_moments,
)
from paretocosmos.evaluation.rates import Pairs, compute_smallest_bound
from paretocosmos.evaluation.samples import NO_CACHE, OutputCache, load_samples_for
from paretocosmos.evaluation.scoring import build_front, compute_table, get_scores
from paretocosmos.evaluation.threshold import MIDDLE, at_threshold
from paretocosmos.io.formatting import Grid, format_number
from paretocosmos.objectives import measure_of
from paretocosmos.pareto.front import Array, Point, get_point
from paretocosmos.pareto.selection import Criteria, describe_bound, is_constant
from paretocosmos.problems import Problem, Split
from paretocosmos.runtime.device import set_precision
from paretocosmos.types import Outputs, Targets, first, map_tensors

# With fewer rows of a class in a group, a rate is hardly known.
FEW = 30
# The confidence with which the smallest bound that rows support could be shown.
CONFIDENCE = 0.9
DRAWS = 500
# Shown of a choice beside objectives and what was asked for.
SHOWN = {"accuracy"}


@dataclass(frozen=True)
class BoundCheck:
    """A bound and what some rows say of it.

    Attributes:
        name: what is bounded.
        bound: the number.
        side: 1 if it may not be above it, else -1.
        value: the number on these rows.
        rows: how many there are.
        split: which they are.
        chance: that the true number breaks the bound, by these rows; NaN where they cannot say.
        limit: how far the number may be with the confidence asked for, where one was.
        pooled: a gap on the training and validation rows together, if it had to be kept there, too.
        held_out: whether the network was trained without these rows.
        smallest: the smallest bound on a gap that such rows can show with a confidence of 90 %.
        fewest: the fewest rows that a rate of the gap is a mean of, and of whom.
    """

    name: str
    bound: float
    side: int
    value: float
    rows: int
    split: str
    chance: float
    limit: float | None = None
    pooled: float | None = None
    held_out: bool = True
    smallest: float | None = None
    fewest: tuple[int, str] | None = None

    @property
    def kept(self) -> bool:
        """True if the number keeps the bound on these rows."""
        return self.keeps(self.value)

    @property
    def is_vague(self) -> bool:
        """True if a group has too few rows for its rate to be known."""
        return self.fewest is not None and self.fewest[0] < FEW

    def keeps(self, value: float) -> bool:
        """Return True if a number keeps the bound."""
        return self.side * value <= self.side * self.bound

    def __str__(self) -> str:
        kept = "" if self.kept else ", which breaks the bound"
        pooled = "" if self.pooled is None else f" ({self.pooled:.4g} on train and val together)"
        first = (
            f"{describe_bound(self.name, self.bound, self.side)}: {self.value:.4g} on "
            f"{self.split}{pooled}{kept}."
        )
        return " ".join([first, self.describe_chance()]).rstrip()

    def describe_reached(self, test: float | None = None) -> str:
        """Describe what was asked, and what was reached on which rows, kept or not.

        Args:
            test: the number on the test rows, where there are others.

        >>> check = BoundCheck("fpr_gap", 0.02, 1, 0.017, 900, "val", 0.4)
        >>> check.describe_reached(0.054)
        '`fpr_gap`: asked at most 2.0 points; validation 1.7, kept; test 5.4, not kept.'
        """
        unit = measure_of(self.name).unit
        scale = 100 if unit else 1
        limit = f"{scale * self.bound:.6g}"
        asked = f"{limit}{'' if '.' in limit else '.0'} {unit}" if unit else limit
        # a gap may have to be kept on more rows than those of val, but on these in any case
        pools = self.pooled is not None and self.kept
        names = {"val": "validation", "train and val": "training and validation"}
        rows = names.get("train and val" if pools else self.split, self.split)
        values = {rows: self.pooled if pools else self.value}
        values |= {} if test is None else {"test": test}
        reached = "; ".join(f"{name} {self._describe(value)}" for name, value in values.items())
        side = "most" if self.side > 0 else "least"
        return f"`{self.name}`: asked at {side} {asked}; {reached}."

    def _describe(self, value: float | None) -> str:
        """Return a number in its unit, and whether it keeps the bound."""
        if value is None or np.isnan(value):
            return "not known"
        if not measure_of(self.name).unit:
            text = f"{value:.4g}"
        else:
            digits = 1
            # 2.04 points break a bound of 2, as which one digit would show them
            while not self.keeps(value) and self.keeps(float(f"{100 * value:.{digits}f}") / 100):
                digits += 1
            text = f"{100 * value:.{digits}f}"
        return f"{text}, {'kept' if self.keeps(value) else 'not kept'}"

    def describe_chance(self) -> str:
        """Describe the chance that the true number breaks the bound, and what rows can show."""
        beyond = "above" if self.side > 0 else "below"
        sentences = []
        if not self.held_out:
            sentences.append("The network was trained on these rows: new ones may break the bound.")
        elif not np.isnan(self.chance):
            sentences.append(
                f"By the {self.rows:,} rows of {self.split}, the true number is {beyond} "
                f"{self.bound:g} with a chance of {self.chance:.0%}."
            )
        if self.limit is not None:
            side = "most" if self.side > 0 else "least"
            sentences.append(f"With the confidence asked for, it is at {side} {self.limit:.4g}.")
        if self.smallest is not None and (self.is_vague or self.smallest > self.bound):
            sentences.append(self.describe_smallest())
        return " ".join(sentences)

    def describe_smallest(self) -> str:
        """Describe what such rows can show of a gap."""
        count, whose = self.fewest or (0, "")
        return (
            f"With {count} {whose}, no bound below about {self.smallest:.2g} can be shown with a "
            f"confidence of {CONFIDENCE:.0%}: give more rows, or merge groups."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and texts, with the sentences."""
        fewest = None if self.fewest is None else list(self.fewest)
        added = {"fewest": fewest, "kept": self.kept, "text": str(self)}
        return dataclasses.asdict(self) | added


def check_bound(
    problem: Problem,
    outputs: Outputs,
    targets: Targets,
    bounded: tuple[str, float, int],
    split: str,
) -> BoundCheck:
    """Return what some rows say of a bound.

    A gap between rates is compared with the bound by the score test that `confidence` uses. For
    any other number, the chance is the share of bootstrap draws that break the bound.

    Args:
        problem: whose number is bounded, deciding at the threshold in use.
        outputs: of the network at one ray.
        targets: of these rows.
        bounded: name, number and side, as `Criteria.bounds` lists them.
        split: which rows they are.
    """
    name, bound, side = bounded
    metric, size = get_scores(problem)[name], problem.score_batch
    check = partial(BoundCheck, name, bound, side, rows=len(first(targets)), split=split)
    moments = None if size is not None or side < 0 else get_moments(metric, outputs, targets)
    if moments is None:
        one_ray = map_tensors(lambda out: out.unsqueeze(0), outputs)
        drawn = draw_paired_scores([metric], one_ray, targets, score_batch=size, draws=DRAWS)
        known = drawn[~np.isnan(drawn)]
        broken = float((side * known > side * bound).mean()) if len(known) else np.nan
        return check(value=float(metric(outputs, targets)), chance=broken)
    return check(
        value=float(metric(outputs, targets)),
        chance=compute_chance(moments, bound),
        smallest=compute_smallest_bound(moments, CONFIDENCE),
        fewest=find_fewest(metric, moments, problem),
    )


def compute_chance(moments: Array, bound: float) -> float:
    """Compute the chance that the true gap is above a bound: that of the pair most likely to be.

    It is 1 minus the largest confidence with which the bound can be shown.

    >>> compute_chance(np.array([[[40, 40, 50], [40, 40, 50]]]), 0.103)  # a standard error is 0.08
    0.1021
    """
    pairs = Pairs(moments)
    errors = pairs.compute_error(np.full_like(pairs.differences, bound))
    distances = (bound - pairs.differences) / np.maximum(errors, 1e-12)
    return round(NormalDist().cdf(-float(distances.min())), 4)


@dataclass(frozen=True)
class Check:
    """Bounds and new rows, as `run.check` compared them.

    Attributes:
        point: the ray and its numbers on these rows, with 95 % intervals.
        threshold: the probability above which a decision between two classes is positive.
        asked: the bounds.
        bounds: each bound, and the chance that the true number breaks it.
        rows: the name of the rows.

    >>> from paretocosmos import load
    >>> from paretocosmos.problems.tables import read_embedded
    >>> rows = read_embedded("compas").tail(1000)
    >>> check = load("compas").check(rows, ray=[0.0, 1.0], max={"demographic_parity": 0.1})
    >>> check.kept, check.bounds[0].rows
    (True, 1000)
    """

    point: Point
    threshold: float
    asked: Criteria
    bounds: tuple[BoundCheck, ...]
    rows: str

    @property
    def kept(self) -> bool:
        """True if all bounds are kept, with the confidence asked for, if any."""
        risk = 1.0 if self.asked.confidence is None else 1 - self.asked.confidence
        # Bonferroni, as in `choose`; a chance that is not known shows nothing
        return all(
            check.kept and (risk == 1 or check.chance <= risk / len(self.bounds))
            for check in self.bounds
        )

    def __repr__(self) -> str:
        return self._grid().text()

    def _repr_html_(self) -> str:
        return self._grid().html()

    def _grid(self) -> Grid:
        told = [f"{c.describe_reached()} {c.describe_chance()}".rstrip() for c in self.bounds]
        if self.asked.confidence is not None:
            shown = "are" if self.kept else "are not"
            told.append(f"The bounds {shown} kept with a confidence of {self.asked.confidence:g}.")
        points = {f"on {self.rows}": self.point}
        return tabulate_point("Check", points, self.threshold, self.asked, told)

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers, ready for JSON."""
        return {
            "kept": self.kept,
            "point": self.point.to_dict(),
            "threshold": self.threshold,
            "asked": self.asked.to_dict(),
            "bounds": [check.to_dict() for check in self.bounds],
            "rows": self.rows,
        }


def check_point(
    model: nn.Module,
    problem: Problem,
    ray: tuple[float, ...],
    criteria: Criteria,
    *,
    threshold: float,
    rows_name: str,
) -> Check:
    """Compare bounds with the test rows of a problem.

    Args:
        model: the network.
        problem: its test rows are those to check on.
        ray: the preference.
        criteria: the bounds, and the confidence that they must be kept with.
        threshold: at which decisions are made.
        rows_name: what the rows are called.
    """
    deciding = at_threshold(problem, threshold)
    point, checks = evaluate_ray(
        model, deciding, ray, split="test", criteria=criteria, rows_name=rows_name
    )
    warn_of_constant(point)
    return Check(point, threshold, criteria, checks, rows_name)


def evaluate_ray(
    model: nn.Module,
    problem: Problem,
    ray: tuple[float, ...],
    *,
    split: Split,
    chosen: bool = False,
    cache: OutputCache = NO_CACHE,
    criteria: Criteria | None = None,
    rows_name: str | None = None,
) -> tuple[Point, tuple[BoundCheck, ...]]:
    """Evaluate one ray on a split, with intervals, and check the bounds of criteria there.

    The intervals are those of a ray `chosen` on that split or not. The checks name its rows.
    """
    rays, size = torch.tensor([ray]), problem.score_batch
    # objectives may have rows of their own: a table and intervals for each share
    tables: list[Tensor] = []
    ends: dict[str, tuple[float, float]] = {}
    checks: list[BoundCheck] = []
    bounds = [] if criteria is None else criteria.bounds()
    for objectives, samples in load_samples_for(model, problem, split):
        outputs, targets = collect_outputs(
            model, problem, samples, rays, purpose="an interval", cache=cache
        )
        scores = {objective.name: objective.score for objective in objectives}
        with evaluation_mode(model), set_precision("fp32"):
            tables.append(compute_table(objectives, outputs, targets, problem.metrics, size))
            alone: Outputs = map_tensors(lambda out: out[0], outputs)
            scores |= problem.metrics
            ends |= compute_intervals(scores, alone, targets, score_batch=size, chosen=chosen)
            checks += [
                check_bound(problem, alone, targets, bounded, rows_name or split)
                for bounded in bounds
                if bounded[0] in scores
            ]
    front = build_front(
        torch.cat(tables),
        problem.objectives,
        rays,
        metrics=tuple(problem.metrics),
        reference=problem.reference,
        score_batch=size,
        split=split,
    )
    return replace(get_point(front, 0), intervals=ends), tuple(checks)


def warn_of_constant(point: Point) -> None:
    """Warn of a point that gives everybody the same answer, or finds nobody."""
    if is_constant(point):
        warnings.warn(
            f"the chosen point is a constant classifier: it predicts the same for everybody on "
            f"{point.split}; leave `allow_constant` out, or give a `threshold`",
            FrontWarning,
            stacklevel=5,
        )
    elif {"positive_rate", "false_positives", "false_negatives"} <= point.metrics.keys():
        # the share of rows that are rightly found
        found = point["positive_rate"] - point["false_positives"]
        if found < 1e-6 < point["false_negatives"]:
            warnings.warn(
                f"the chosen point finds no positive row of {point.split} in any group, so that a "
                "gap in who is found says nothing: bound `lowest_tpr` from below, maximise "
                "`balanced_accuracy`, or give a `threshold`",
                FrontWarning,
                stacklevel=5,
            )


def tabulate_point(
    title: str,
    points: Mapping[str, Point],
    threshold: float,
    asked: Criteria | None,
    sentences: Sequence[str],
) -> Grid:
    """Tabulate what was asked of a point, and what it reaches.

    Args:
        title: of the table.
        points: the point on several rows, by the heading of a column; of the last, with intervals.
        threshold: at which decisions are made.
        asked: the criteria, where they are known.
        sentences: to print below.
    """
    *_, last = points.values()
    wishes: dict[str, str] = {}
    if asked is not None:
        for name, bound, side in asked.bounds():
            wishes[name] = f"at {'most' if side > 0 else 'least'} {bound:g}"
        for name, weight in asked.sought.items():
            wanted = "maximised" if weight < 0 else "minimised"
            wanted += "" if abs(weight) == 1 else f" (times {abs(weight):g})"
            wishes[name] = f"{wanted}, {wishes[name]}" if name in wishes else wanted
    names = dict.fromkeys([*wishes, *last.values, *(SHOWN & last.metrics.keys())])
    columns = {"": list(names), "asked": [wishes.get(name, "") for name in names]}
    for head, point in points.items():
        columns[head] = [format_number(point[name]) for name in names]
    ends = [last.intervals.get(name, ()) for name in names]
    columns["95 % interval"] = [" to ".join(map(format_number, pair)) for pair in ends]
    rows = [list(row) for row in zip(*columns.values(), strict=True)]
    note = f"at the ray ({', '.join(f'{weight:.4g}' for weight in last.ray)})"
    if threshold != MIDDLE:
        note += f" and the threshold {threshold:.4g}"
    return Grid(title, list(columns), rows, [note, *sentences])
