"""Choosing beyond the rays a front holds: new ones are evaluated where the best point lies."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from paretocosmos.pareto.front import Array, Front, Point, get_point
from paretocosmos.pareto.rays import sample_rays
from paretocosmos.pareto.selection import (
    Criteria,
    compute_cost,
    find_best,
    find_closest,
    find_feasible,
    find_neighbours,
)

__all__ = ["refine"]

# Rays closer than this are one for all purposes: the next halving would change nothing one sees.
RESOLUTION = 1e-4
# Rays to guess among, with more than two objectives.
GUESSES = 500

Evaluate = Callable[[Tensor], Front]


def refine(
    front: Front, evaluate: Evaluate, criteria: Criteria, *, evaluations: int = 20
) -> tuple[Point, int]:
    """The point that meets the criteria best, found by evaluating new rays around the best held.

    Two objectives: where a better ray breaks a bound, the way there is halved until the bound is
    met (a bisection along the front); then the way to the other neighbour. More: what lies around
    is guessed from the nearest rays by a plane, the best guess is evaluated, and one looks closer
    where it was wrong; this need not find the very best. Whatever is returned has been evaluated,
    so that it keeps its bounds exactly on that data.

    Args:
        front: the rays evaluated so far.
        evaluate: rays ``[N, J]`` to their front, on the same data.
        criteria: what is asked.
        evaluations: rays to evaluate at most.

    Returns:
        The point, and how many rays were evaluated.
    """
    criteria.check(front)
    search = _halved if front.objectives == 2 else _guessed
    held = search(front, evaluate, criteria, evaluations)
    return get_point(held, find_best(held, criteria)), len(held) - len(front)


def _halved(front: Front, evaluate: Evaluate, criteria: Criteria, evaluations: int) -> Front:
    """The front with rays halfway to the best point's neighbours, again and again."""
    held, most = front, len(front) + evaluations
    while len(held) < most:
        rays = _halfway(held, criteria)[: most - len(held)]
        if not len(rays):
            break
        held = held.join(evaluate(torch.from_numpy(rays).float()))
    return held


def _halfway(front: Front, criteria: Criteria) -> Array:
    """The next rays to evaluate, ``[n, J]``."""
    cost, kept, at = (
        compute_cost(front, criteria),
        find_feasible(front, criteria),
        _best(front, criteria),
    )
    around = find_neighbours(front.rays, at)
    beyond = [ray for ray, k in around if k is not None and not kept[k] and cost[k] < cost[at]]
    halves: Array = np.empty((0, front.objectives))
    for toward in (beyond if kept[at] else [], [ray for ray, _ in around]):
        if not len(halves) and toward:
            middle = (np.array(toward) + front.rays[at]) / 2
            halves = middle[np.abs(middle - front.rays[at]).max(axis=1) > RESOLUTION]
    return halves


def _guessed(front: Front, evaluate: Evaluate, criteria: Criteria, evaluations: int) -> Front:
    """The front with rays that a plane through the best point's neighbours promises most of."""
    held, radius, draw = front, 0.5, torch.Generator().manual_seed(0)
    while len(held) < len(front) + evaluations and radius > RESOLUTION:
        at = _best(held, criteria)
        toward = sample_rays(GUESSES, front.objectives, generator=draw).double().numpy()
        rays = held.rays[at] + radius * (toward - held.rays[at])
        # among those held, since a knee or a weight is measured by the whole front
        ray = rays[_best(held.join(_plane(held, at, rays)), criteria, first=len(held)) - len(held)]
        held = held.join(evaluate(torch.from_numpy(ray[None]).float()))
        if _best(held, criteria) != len(held) - 1:
            radius /= 2
    return held


def _plane(front: Front, at: int, rays: Array) -> Front:
    """What rays would give if every number were a plane through those of the nearest rays held."""
    apart = np.linalg.norm(front.rays - front.rays[at], axis=1)
    near = apart.argsort(kind="stable")[: 2 * front.objectives]
    columns = [*front.values.T, *front.metrics.values()]
    known = np.stack([column[near] for column in columns], axis=1)
    # the nearest count most: far ones would tilt the plane
    weight = 1 / (apart[near, None] + apart[near].max() / 10 + RESOLUTION)
    # a ray sums to 1, so that the plane's height is in the slopes
    guess = rays @ np.linalg.pinv(weight * front.rays[near]) @ (weight * known)
    count = front.objectives
    return Front(
        rays=rays,
        values=guess[:, :count],
        names=front.names,
        reference=front.reference,
        metrics=dict(zip(front.metrics, guess[:, count:].T, strict=True)),
        split=front.split,
    )


def _best(front: Front, criteria: Criteria, *, first: int = 0) -> int:
    """The place of the best point from a place on, or of the one nearest to being allowed."""
    cost = np.where(find_feasible(front, criteria), compute_cost(front, criteria), np.inf)[first:]
    if np.isfinite(cost).any():
        return first + int(np.lexsort((front.values[first:, 0], cost))[0])
    return first + find_closest(front.take(np.arange(first, len(front))), criteria)
