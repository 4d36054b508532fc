"""Search for the best ray, beyond those of a front or with a confidence.

`refine_choice` evaluates new rays around the best one. `choose_with_confidence` controls the risk
that a bound is broken for more people than were looked at, by fixed-sequence testing as in "Learn
then Test" (Angelopoulos et al. 2021).
"""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import torch
from torch import Tensor, nn

from paretocosmos.errors import InfeasibleError
from paretocosmos.evaluation.evaluate import collect_outputs
from paretocosmos.evaluation.intervals import compute_intervals, get_moments
from paretocosmos.evaluation.output_cache import NO_CACHE, OutputCache
from paretocosmos.evaluation.rates import compute_gap_limit
from paretocosmos.evaluation.samples import load_samples_for
from paretocosmos.pareto.front import Array, Front, Point, get_point
from paretocosmos.pareto.rays import sample_rays
from paretocosmos.pareto.selection import (
    Criteria,
    compute_cost,
    find_best,
    find_closest,
    find_constant,
    find_feasible,
    find_neighbours,
)
from paretocosmos.problems import Problem
from paretocosmos.types import Metric, Outputs, Targets, map_tensors

# Rays closer than this are one for all purposes: another bisection would change nothing visible.
RESOLUTION = 1e-4
# Candidate rays of a step, with more than two objectives.
CANDIDATES = 500

ROWS = {"all": "rows", "positives": "positives", "negatives": "negatives"}

Evaluate = Callable[[Tensor], Front]


def refine_choice(
    front: Front, evaluate: Evaluate, criteria: Criteria, *, evaluations: int = 20
) -> tuple[Point, int]:
    """Find the point that meets the criteria best, evaluating new rays around the best so far.

    Two objectives: where a better ray breaks a bound, the way there is bisected until the bound is
    met; then the way to the other neighbour. More: a plane through the nearest rays predicts what
    lies around, the best prediction is evaluated, and the search narrows where it was wrong; this
    need not find the very best. Whatever is returned has been evaluated, so that it keeps its
    bounds exactly on that data.

    Args:
        front: the rays evaluated so far.
        evaluate: rays ``[N, J]`` to their front, on the same data.
        criteria: what is asked.
        evaluations: rays to evaluate at most.

    Returns:
        The point, and how many rays were evaluated.
    """
    criteria.check(front)
    search = _add_by_bisection if front.objectives == 2 else _add_by_planes
    extended = search(front, evaluate, criteria, evaluations)
    return get_point(extended, find_best(extended, criteria)), len(extended) - len(front)


def _add_by_bisection(
    front: Front, evaluate: Evaluate, criteria: Criteria, evaluations: int
) -> Front:
    """Add rays halfway to the best point's neighbours, again and again."""
    limit = len(front) + evaluations
    while len(front) < limit:
        rays = _compute_midpoints(front, criteria)[: limit - len(front)]
        if not len(rays):
            break
        front = front.join(evaluate(torch.from_numpy(rays).float()))
    return front


def _compute_midpoints(front: Front, criteria: Criteria) -> Array:
    """Return the next rays to evaluate, ``[n, J]``."""
    cost, feasible = compute_cost(front, criteria), find_feasible(front, criteria)
    best = _find_best_or_closest(front, criteria)
    neighbours = find_neighbours(front.rays, best)
    cheaper = [
        ray for ray, k in neighbours if k is not None and not feasible[k] and cost[k] < cost[best]
    ]
    midpoints: Array = np.empty((0, front.objectives))
    for toward in (cheaper if feasible[best] else [], [ray for ray, _ in neighbours]):
        if not len(midpoints) and toward:
            middle = (np.array(toward) + front.rays[best]) / 2
            midpoints = middle[np.abs(middle - front.rays[best]).max(axis=1) > RESOLUTION]
    return midpoints


def _add_by_planes(front: Front, evaluate: Evaluate, criteria: Criteria, evaluations: int) -> Front:
    """Add the rays of which a plane through the best point's neighbours promises most."""
    radius, generator = 0.5, torch.Generator().manual_seed(0)
    limit = len(front) + evaluations
    while len(front) < limit and radius > RESOLUTION:
        best = _find_best_or_closest(front, criteria)
        toward = sample_rays(CANDIDATES, front.objectives, generator=generator).double().numpy()
        rays = front.rays[best] + radius * (toward - front.rays[best])
        # among those evaluated, since a knee or a weight is measured by the whole front
        predicted = front.join(_predict_by_plane(front, best, rays))
        promising = _find_best_or_closest(predicted, criteria, first=len(front)) - len(front)
        ray = torch.from_numpy(rays[promising][None]).float()
        front = front.join(evaluate(ray))
        if _find_best_or_closest(front, criteria) != len(front) - 1:
            radius /= 2
    return front


def _predict_by_plane(front: Front, best: int, rays: Array) -> Front:
    """Predict the front of rays by a plane through the values of the nearest rays evaluated."""
    distances = np.linalg.norm(front.rays - front.rays[best], axis=1)
    nearest = distances.argsort(kind="stable")[: 2 * front.objectives]
    columns = [*front.values.T, *front.metrics.values()]
    values = np.stack([column[nearest] for column in columns], axis=1)
    # the nearest count most: far ones would turn the plane
    weight = 1 / (distances[nearest, None] + distances[nearest].max() / 10 + RESOLUTION)
    # a ray sums to 1, so the plane's height is in the slopes
    predicted = rays @ np.linalg.pinv(weight * front.rays[nearest]) @ (weight * values)
    count = front.objectives
    return Front(
        rays=rays,
        values=predicted[:, :count],
        names=front.names,
        reference=front.reference,
        metrics=dict(zip(front.metrics, predicted[:, count:].T, strict=True)),
        split=front.split,
    )


def _find_best_or_closest(front: Front, criteria: Criteria, *, first: int = 0) -> int:
    """Return the best point from an index on, or the one closest to the bounds."""
    cost = np.where(find_feasible(front, criteria), compute_cost(front, criteria), np.inf)[first:]
    if np.isfinite(cost).any():
        return first + int(np.lexsort((front.values[first:, 0], cost))[0])
    return first + find_closest(front.take(np.arange(first, len(front))), criteria)


def choose_with_confidence(
    model: nn.Module,
    problem: Problem,
    front: Front,
    criteria: Criteria,
    cache: OutputCache = NO_CACHE,
) -> Point:
    """Choose the best point whose bounds can be shown on the validation data with a confidence.

    A ray passes if the one-sided limit of the bounded number keeps the bound. The rays are tested
    in an order that does not depend on the data, those first that were trained for the bound most,
    up to the first that fails (fixed-sequence testing). So the chance that any of those that pass
    breaks the bound is at most one minus the confidence, though the best of them is taken: the
    first that breaks it would have to pass its own test. Several bounds share the risk
    (Bonferroni).

    Args:
        model: the network.
        problem: what it was trained on.
        front: its validation front, whose rays are tested.
        criteria: what is asked, with a confidence.
        cache: outputs of this network that are known already.
    """
    criteria.check(front)
    if find_constant(front).all() and not criteria.allow_constant:
        find_best(front, criteria)  # which raises, with the way out
    rays = torch.tensor(front.rays).float()
    predicted: dict[str, tuple[Outputs, Targets]] = {}  # by what is bounded
    for objectives, samples in load_samples_for(model, problem, "val"):
        both = collect_outputs(model, problem, samples, rays, purpose="a confidence", cache=cache)
        predicted |= dict.fromkeys([*(o.name for o in objectives), *problem.metrics], both)
    risk = (1 - (criteria.confidence or 0.95)) / len(criteria.bounds())
    tests = [
        BoundTest(
            problem, front, *predicted[name], criteria.allow_constant, 1 - risk, name, bound, side
        )
        for name, bound, side in criteria.bounds()
    ]
    passing = [test.find_passing() for test in tests]
    common = [k for k in range(len(front)) if all(k in limits for limits in passing)]
    if not common:
        failed = [test for test, limits in zip(tests, passing, strict=True) if not limits]
        why = "; ".join(test.explain() for test in failed) or "no ray keeps them all"
        raise InfeasibleError(
            f"no ray can be shown to keep {criteria.describe_bounds()} with a confidence of "
            f"{criteria.confidence:g} on {front.split}: {why}; allow more, ask for less "
            "confidence, or hold out more rows"
        )
    best = common[find_best(front.take(common), criteria)]
    limits = {test.name: passed[best] for test, passed in zip(tests, passing, strict=True)}
    return dataclasses.replace(get_point(front, best), limits=limits)


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

    def find_passing(self) -> dict[int, float]:
        """Return the indices of the rays that pass, and their limits."""
        limits: dict[int, float] = {}
        for k in self.order_rays():
            limit = self.compute_limit(k)
            if not self.side * limit <= self.side * self.bound:  # fails, or is NaN
                break
            limits[k] = limit
        return limits

    def order_rays(self) -> list[int]:
        """Return the indices of the rays, those that weigh the bounded objective most first.

        A metric is taken to follow the first objective, a gap to run against it.
        """
        if self.name in self.front.names:
            weight = self.front.rays[:, self.front.names.index(self.name)]
        else:
            is_gap = self.moments_at(0) is not None and self.side > 0
            weight = (-1 if is_gap else 1) * self.front.rays[:, 0]
        skipped = find_constant(self.front) & (not self.allow_constant)
        order = np.argsort(-weight, kind="stable")
        return [int(k) for k in order if not skipped[k]]

    def compute_limit(self, k: int) -> float:
        """Return how far the number of a ray may be towards its bound; NaN if it has no value."""
        moments = self.moments_at(k)
        if moments is not None and self.side > 0 and self.problem.score_batch is None:
            return self._limit_gap(moments)
        ends = compute_intervals(
            {self.name: self.metric},
            self.outputs_at(k),
            self.targets,
            score_batch=self.problem.score_batch,
            level=2 * self.confidence - 1,
            chosen=True,
        )
        return ends[self.name][1 if self.side > 0 else 0]

    def explain(self) -> str:
        """Describe the first ray's number and its limit, and what the rows can support."""
        first = self.order_rays()[0]
        point, limit = get_point(self.front, first), self.compute_limit(first)
        ray = ",".join(f"{weight:.4g}" for weight in point.ray)
        direction = "up" if self.side > 0 else "down"
        return (
            f"the ray {ray}, tested first, has `{self.name}` {point[self.name]:.3g} there, in "
            f"truth {direction} to {limit:.3g}{self.describe_smallest_bound(first)}"
        )

    def describe_smallest_bound(self, k: int) -> str:
        """Name the bound that could be shown without any gap, if it is above the bound asked."""
        moments = self.moments_at(k)
        if moments is None or self.side < 0:
            return ""
        sizes = moments[..., 2]
        means: Array = moments[..., :2].sum(axis=-2) / sizes.sum(axis=-1)[..., None]
        equal = np.concatenate([means[..., None, :] * sizes[..., None], sizes[..., None]], axis=-1)
        smallest = self._limit_gap(equal)
        if smallest <= self.bound:
            return ""
        rate, group = np.unravel_index(sizes.argmin(), sizes.shape)
        owner, names = getattr(self.metric, "__self__", None), getattr(self.problem, "groups", ())
        over = getattr(owner, "over", None) or ("all",)
        where = f"in `{names[group]}`" if len(names) == sizes.shape[1] else "in one group"
        return (
            f"; with {sizes.min():.0f} {ROWS[over[int(rate) % len(over)]]} {where}, the smallest "
            f"bound that such rates can be shown to keep is about {smallest:.2g}"
        )

    def moments_at(self, k: int) -> Array | None:
        """Return what a gap's limit at a ray follows from; `None` for anything else."""
        return get_moments(self.metric, self.outputs_at(k), self.targets)

    def outputs_at(self, k: int) -> Outputs:
        """Return the network's outputs at one ray."""
        outputs: Outputs = map_tensors(lambda out: out[k], self.outputs)
        return outputs

    @property
    def metric(self) -> Metric:
        """The score that is bounded."""
        scores: dict[str, Metric] = {o.name: o.score for o in self.problem.objectives}
        return (dict(self.problem.metrics) | scores)[self.name]

    def _limit_gap(self, moments: Array) -> float:
        return float(compute_gap_limit(moments, reach=NormalDist().inv_cdf(self.confidence)))
