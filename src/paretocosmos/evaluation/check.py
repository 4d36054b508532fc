"""Numbers of one ray on some rows, and the check of bounds there."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from paretocosmos.errors import FrontWarning
from paretocosmos.evaluation.bound_check import BoundCheck, check_bound
from paretocosmos.evaluation.evaluate import collect_outputs, evaluation_mode
from paretocosmos.evaluation.intervals import compute_intervals
from paretocosmos.evaluation.output_cache import NO_CACHE, OutputCache
from paretocosmos.evaluation.samples import load_samples_for
from paretocosmos.evaluation.scoring import build_front, compute_table
from paretocosmos.evaluation.threshold import MIDDLE, at_threshold
from paretocosmos.io.formatting import Grid, format_number
from paretocosmos.pareto.front import Point, get_point
from paretocosmos.pareto.selection import Criteria, is_constant
from paretocosmos.problems import Problem, Split
from paretocosmos.runtime.device import set_precision
from paretocosmos.types import Outputs, map_tensors

# Shown of a choice beside objectives and what was asked for.
SHOWN = {"accuracy"}


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
