"""Rays that keep their bounds with confidence, for more people than were looked at."""

import dataclasses
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import torch
from torch import nn

from paretocosmos.errors import InfeasibleError
from paretocosmos.evaluation.evaluate import collect_outputs
from paretocosmos.evaluation.intervals import compute_intervals, get_moments
from paretocosmos.evaluation.output_cache import NO_CACHE, OutputCache
from paretocosmos.evaluation.rates import gap_limit
from paretocosmos.evaluation.samples import load_samples_for
from paretocosmos.pareto.front import Array, Front, Point, get_point
from paretocosmos.pareto.selection import Criteria, find_best, find_constant
from paretocosmos.problems import Problem
from paretocosmos.types import Metric, Outputs, Targets, map_tensors

__all__ = ["proven"]

ROWS = {"all": "rows", "positives": "positives", "negatives": "negatives"}


def proven(
    model: nn.Module,
    problem: Problem,
    front: Front,
    criteria: Criteria,
    cache: OutputCache = NO_CACHE,
) -> Point:
    """The best point whose bounds can be shown on the validation data with a confidence.

    A ray passes if the limit of the bounded number, one-sided, keeps the bound. The rays are tested
    in an order that the data has no say in, those first that were trained for the bound most, up
    to the first that fails (fixed-sequence testing, as in Angelopoulos et al. 2021, "Learn then
    Test"). So the chance that any of those that pass breaks the bound is at most one minus the
    confidence, though the best of them is taken: the first that breaks it would have to pass its
    own test. Several bounds share what may go wrong.

    Args:
        model: the network.
        problem: what it was trained on.
        front: its validation front, whose rays are tested.
        criteria: what is asked, with a confidence.
        cache: outputs of this network that are known already.
    """
    criteria.check(front)
    if find_constant(front).all() and not criteria.allow_constant:
        find_best(front, criteria)  # which refuses, with the way out
    rays = torch.tensor(front.rays).float()
    seen: dict[str, tuple[Outputs, Targets]] = {}  # by what is bounded; a metric is of all
    for objectives, samples in load_samples_for(model, problem, "val"):
        found = collect_outputs(model, problem, samples, rays, purpose="a confidence", cache=cache)
        seen |= dict.fromkeys([*(one.name for one in objectives), *problem.metrics], found)
    share = (1 - (criteria.confidence or 0.95)) / len(criteria.bounds())
    tests = [
        BoundTest(
            problem, front, *seen[name], criteria.allow_constant, 1 - share, name, bound, side
        )
        for name, bound, side in criteria.bounds()
    ]
    passed = [test.passed() for test in tests]
    both = [at for at in range(len(front)) if all(at in limits for limits in passed)]
    if not both:
        failed = [test for test, limits in zip(tests, passed, strict=True) if not limits]
        why = "; ".join(test.why() for test in failed) or "no ray keeps them all"
        raise InfeasibleError(
            f"no ray can be shown to keep {criteria.describe_bounds()} with a confidence of "
            f"{criteria.confidence:g} on {front.split}: {why}; allow more, ask for less "
            "confidence, or hold out more rows"
        )
    place = both[find_best(front.take(both), criteria)]
    limits = {test.name: found[place] for test, found in zip(tests, passed, strict=True)}
    return dataclasses.replace(get_point(front, place), limits=limits)


@dataclass(frozen=True)
class BoundTest:
    """A bound and the rays to test it with.

    Attributes:
        problem: whose number is bounded.
        front: the validation front.
        outputs: of the network at every ray of it, on the validation data.
        targets: that data's.
        allow_constant: test classifiers that give everybody the same answer, too.
        confidence: of one test.
        name: what is bounded.
        bound: the number.
        side: 1 if it may not be above it, else -1.
    """

    problem: Problem
    front: Front
    outputs: Outputs
    targets: Targets
    allow_constant: bool
    confidence: float
    name: str
    bound: float
    side: int

    def passed(self) -> dict[int, float]:
        """The places of the rays that pass, and their limits."""
        found: dict[int, float] = {}
        for at in self.order():
            limit = self.limit(at)
            if not self.side * limit <= self.side * self.bound:  # NaN neither
                break
            found[at] = limit
        return found

    def order(self) -> list[int]:
        """The places of the rays, those that weigh the bounded objective most first.

        A metric is taken to follow the first objective, a gap to run against it.
        """
        if self.name in self.front.names:
            weight = self.front.rays[:, self.front.names.index(self.name)]
        else:
            gap = self.moments(0) is not None and self.side > 0
            weight = (-1 if gap else 1) * self.front.rays[:, 0]
        passed_over = find_constant(self.front) & (not self.allow_constant)
        order = np.argsort(-weight, kind="stable")
        return [int(at) for at in order if not passed_over[at]]

    def limit(self, at: int) -> float:
        """How far the number may be towards its bound; NaN where it has no value."""
        moments = self.moments(at)
        if moments is not None and self.side > 0 and self.problem.score_batch is None:
            return float(gap_limit(moments, reach=NormalDist().inv_cdf(self.confidence)))
        ends = compute_intervals(
            {self.name: self.metric},
            self.outputs_at(at),
            self.targets,
            score_batch=self.problem.score_batch,
            level=2 * self.confidence - 1,
            chosen=True,
        )
        return ends[self.name][1 if self.side > 0 else 0]

    def why(self) -> str:
        """What the first ray has and may have, and what the rows can support."""
        first = self.order()[0]
        point, limit = get_point(self.front, first), self.limit(first)
        ray = ",".join(f"{part:.4g}" for part in point.ray)
        direction = "up" if self.side > 0 else "down"
        return (
            f"the ray {ray}, tested first, has `{self.name}` {point[self.name]:.3g} there, in "
            f"truth {direction} to {limit:.3g}{self.supported(first)}"
        )

    def supported(self, at: int) -> str:
        """Which bound could be shown if no gap at all were found, where that is above the bound."""
        moments = self.moments(at)
        if moments is None or self.side < 0:
            return ""
        sizes = moments[..., 2]
        means: Array = moments[..., :2].sum(axis=-2) / sizes.sum(axis=-1)[..., None]
        alike = np.concatenate([means[..., None, :] * sizes[..., None], sizes[..., None]], axis=-1)
        least = float(gap_limit(alike, reach=NormalDist().inv_cdf(self.confidence)))
        if least <= self.bound:
            return ""
        rate, group = np.unravel_index(sizes.argmin(), sizes.shape)
        owner, names = getattr(self.metric, "__self__", None), getattr(self.problem, "groups", ())
        over = getattr(owner, "over", None) or ("all",)
        where = f"in `{names[group]}`" if len(names) == sizes.shape[1] else "in one group"
        return (
            f"; with {sizes.min():.0f} {ROWS[over[int(rate) % len(over)]]} {where}, the smallest "
            f"bound that such rates can be shown to keep is about {least:.2g}"
        )

    def moments(self, at: int) -> Array | None:
        """What a gap's limit follows from; `None` for anything else."""
        return get_moments(self.metric, self.outputs_at(at), self.targets)

    def outputs_at(self, at: int) -> Outputs:
        """The network's at one ray."""
        found: Outputs = map_tensors(lambda out: out[at], self.outputs)
        return found

    @property
    def metric(self) -> Metric:
        """What is bounded."""
        scores: dict[str, Metric] = {o.name: o.score for o in self.problem.objectives}
        return (dict(self.problem.metrics) | scores)[self.name]
