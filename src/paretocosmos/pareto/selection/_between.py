"""What lies between the rays of a front."""

import math
from collections.abc import Mapping

import numpy as np

from paretocosmos.errors import ConfigurationError
from paretocosmos.pareto.front import Array, Front
from paretocosmos.pareto.selection._criteria import Criteria
from paretocosmos.pareto.selection._pick import cost_of
from paretocosmos.pareto.selection._point import Point, columns, point_of

__all__ = ["interpolated", "neighbours"]


def neighbours(rays: Array, at: int) -> list[tuple[Array, int | None]]:
    """Rays around one, and their places; `None` for a corner of the simplex, which has none.

    Two objectives: the next on either side. More: as many of the nearest as the simplex has
    directions, twice. The corners count as rays, so that one can go on beyond the outermost.
    """
    objectives = rays.shape[1]
    every = np.concatenate([rays, np.eye(objectives)])
    apart = np.abs(every - rays[at]).max(axis=1)
    found: list[tuple[Array, int | None]] = []
    if objectives == 2:
        along = every[:, 0] - rays[at, 0]
        sides = [np.flatnonzero(side * along > 1e-9) for side in (1, -1)]
        chosen = [int(s[apart[s].argmin()]) for s in sides if len(s)]
    else:
        others = np.flatnonzero(apart > 1e-9)
        order = np.linalg.norm(every[others] - rays[at], axis=1).argsort(kind="stable")
        chosen = others[order][: 2 * (objectives - 1)].tolist()
    for place in chosen:
        found.append((every[place], place if place < len(rays) else None))
    return found


def interpolated(front: Front, criteria: Criteria, at: int) -> Point:
    """From the best point towards a better one beyond the bounds, as far as straight lines allow.

    Args:
        front: its points are the ends of the lines.
        criteria: has bounds, and something to minimise or maximise.
        at: the best point that keeps them.
    """
    if (
        criteria.knee
        or criteria.weights is not None
        or criteria.near is not None
        or not criteria.bounds()
    ):
        raise ConfigurationError(
            "`interpolate` needs a bound: give one, such as "
            "max={'tpr_gap': 0.02}, with or without `minimize` or `maximize`"
        )
    cost, best, share, toward = cost_of(front, criteria), math.inf, 0.0, at
    for _, place in neighbours(front.rays, at):
        if place is None or not cost[place] < cost[at]:
            continue
        part = 1.0
        for name, bound, side in criteria.bounds():
            here, there = columns(front)[name][at], columns(front)[name][place]
            if side * there > side * bound:
                part = min(part, (bound - here) / (there - here))
        reached = cost[at] + part * (cost[place] - cost[at])
        if part < 1 and reached < best:
            best, share, toward = reached, float(part), place
    ends = point_of(front, at), point_of(front, toward)

    def mixed(one: Mapping[str, float], two: Mapping[str, float]) -> dict[str, float]:
        return {name: (1 - share) * value + share * two[name] for name, value in one.items()}

    rays = (1 - share) * front.rays[at] + share * front.rays[toward]
    values = mixed(ends[0].values, ends[1].values)
    metrics = mixed(ends[0].metrics, ends[1].metrics)
    return Point(tuple(rays.tolist()), values, metrics, front.split, interpolated=share > 0)
