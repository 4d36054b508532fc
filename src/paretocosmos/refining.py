"""Choosing beyond the rays a front holds: new ones are evaluated where the best point lies."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from paretocosmos.choosing import Point, Wish, closest, cost_of, neighbours, pick, point_of, within
from paretocosmos.front import Array, Front

__all__ = ["refine"]

# Rays closer than this are one for all purposes: the next halving would change nothing one sees.
RESOLUTION = 1e-4


def refine(
    front: Front, evaluate: Callable[[Tensor], Front], wish: Wish, *, evaluations: int = 20
) -> tuple[Point, int]:
    """The point that answers a wish best, found by evaluating new rays around the best held.

    Where a better ray breaks a bound, the way there is halved until the bound is met (a bisection
    along the front); then the ways to the best point's other neighbours. Whatever is returned has
    been evaluated, so that it keeps its bounds exactly on that data. With more than two objectives
    this is a local search, which need not find the very best.

    Args:
        front: the rays evaluated so far.
        evaluate: rays ``[N, J]`` to their front, on the same data.
        wish: what is asked.
        evaluations: rays to evaluate at most.

    Returns:
        The point, and how many rays were evaluated.
    """
    wish.check(front)
    held, spent = front, 0
    while spent < evaluations:
        rays = _halfway(held, wish)[: evaluations - spent]
        if not len(rays):
            break
        held = held.join(evaluate(torch.from_numpy(rays).float()))
        spent += len(rays)
    return point_of(held, pick(held, wish)), spent


def _halfway(front: Front, wish: Wish) -> Array:
    """The next rays to evaluate, ``[n, J]``."""
    cost, kept = cost_of(front, wish), within(front, wish)
    some = bool((kept & np.isfinite(cost)).any())
    at = pick(front, wish) if some else closest(front, wish)
    around = neighbours(front.rays, at)
    beyond = [ray for ray, k in around if k is not None and not kept[k] and cost[k] < cost[at]]
    halves: Array = np.empty((0, front.objectives))
    for toward in (beyond if some else [], [ray for ray, _ in around]):
        if not len(halves) and toward:
            middle = (np.array(toward) + front.rays[at]) / 2
            halves = middle[np.abs(middle - front.rays[at]).max(axis=1) > RESOLUTION]
    return halves
