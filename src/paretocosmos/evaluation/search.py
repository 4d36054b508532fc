"""Search for the best ray beyond those of a front, by evaluating new rays around the best one."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from paretocosmos.pareto import (
    Array,
    Criteria,
    Front,
    Point,
    find_best,
    find_closest,
    find_feasible,
    find_neighbours,
    get_point,
    sample_rays,
)
from paretocosmos.pareto.selection import compute_cost

# Rays closer than this are one for all purposes: another bisection would change nothing visible.
RESOLUTION = 1e-4
# Candidate rays of a step, with more than two objectives.
CANDIDATES = 500

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
    """Return the next rays to evaluate, ``[n, J]``.

    Halfway to cheaper neighbours that break a bound, which brackets the place where it is met; when
    there are none, or they are too near, halfway to all neighbours.
    """
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
        # uniform on the simplex, then shrunk towards the best ray
        toward = sample_rays(CANDIDATES, front.objectives, generator=generator).double().numpy()
        rays = front.rays[best] + radius * (toward - front.rays[best])
        # among those evaluated, since a knee or a weight is measured by the whole front
        predicted = front.join(_predict_by_plane(front, best, rays))
        promising = _find_best_or_closest(predicted, criteria, first=len(front)) - len(front)
        ray = torch.from_numpy(rays[promising][None]).float()
        front = front.join(evaluate(ray))
        if _find_best_or_closest(front, criteria) != len(front) - 1:
            radius /= 2  # a trust region: the plane was wrong at this distance
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
    # costs are compared only among points that keep the bounds
    cost = np.where(find_feasible(front, criteria), compute_cost(front, criteria), np.inf)[first:]
    if np.isfinite(cost).any():
        return first + int(np.lexsort((front.values[first:, 0], cost))[0])
    return first + find_closest(front.take(np.arange(first, len(front))), criteria)
