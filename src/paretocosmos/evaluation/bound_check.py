"""What some rows say of a bound: the number there, and the chance that the true one breaks it."""

import dataclasses
from dataclasses import dataclass
from functools import partial
from statistics import NormalDist
from typing import Any

import numpy as np

from paretocosmos.evaluation.intervals import draw_paired_scores, get_moments
from paretocosmos.evaluation.rates import Pairs, compute_gap_limit
from paretocosmos.evaluation.scoring import get_scores
from paretocosmos.objectives import measure_of
from paretocosmos.pareto import Array
from paretocosmos.pareto.selection import describe_bound
from paretocosmos.problems import Problem
from paretocosmos.types import Metric, Outputs, Targets, first, map_tensors

# With fewer rows of a class in a group, a rate is hardly known.
FEW = 30
# The confidence with which the smallest bound that rows support could be shown.
CONFIDENCE = 0.9
DRAWS = 500
UNITS = {"all": "rows", "positives": "positives", "negatives": "negatives"}


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


def compute_smallest_bound(moments: Array, confidence: float) -> float:
    """Compute the bound that rows could show if every group had the mean of all, so no gap."""
    sizes = moments[..., 2]
    means: Array = moments[..., :2].sum(axis=-2) / sizes.sum(axis=-1)[..., None]
    equal = np.concatenate([means[..., None, :] * sizes[..., None], sizes[..., None]], axis=-1)
    return float(compute_gap_limit(equal, reach=NormalDist().inv_cdf(confidence)))


def find_fewest(metric: Metric, moments: Array, problem: Problem) -> tuple[int, str]:
    """Return the fewest rows that one of a gap's rates is a mean of, and whose they are."""
    sizes = moments[..., 2]
    rate, group = np.unravel_index(sizes.argmin(), sizes.shape)
    names = getattr(problem, "groups", ())
    over = getattr(getattr(metric, "__self__", None), "over", None) or ("all",)
    where = f"in `{names[group]}`" if len(names) == sizes.shape[1] else "in one group"
    count, unit = int(sizes.min()), UNITS[over[int(rate) % len(over)]]
    return count, f"{unit.removesuffix('s') if count == 1 else unit} {where}"
