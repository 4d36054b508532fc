"""How far the panels of a comparison reach: around the fronts, whatever lies elsewhere."""

import numpy as np

from paretocosmos.pareto.front import Array

# A tail of the fronts is left out if it is at most a third of them, each method counting as one,
# and lies further away than twice the width of all the rest: one method of three that failed.
TAIL = 1 / 3
GAP = 2.0
# Points beside the fronts are shown if they lie within half the width of the fronts.
REACH = 0.5


def limits(fronts: list[Array], beside: list[Array], always: list[Array]) -> tuple[Array, Array]:
    """The smallest and the largest value of every objective that is shown, ``[J]`` each.

    Nothing is left out because it is too good. What is much worse than the fronts would squash
    them, so the picture may say of it only that it lies outside.

    Args:
        fronts: the non-dominated points ``[N, J]`` of each method that gives a front.
        beside: other points: dominated ones, those of networks for one objective.
        always: points that must be seen.
    """
    weights = np.concatenate([np.full(len(points), 1 / len(points)) for points in fronts])
    core = np.concatenate(fronts)
    every = np.concatenate([core, *beside])
    high = np.array([_without_tail(column, weights / len(fronts)) for column in core.T])
    if not (core <= high).all(axis=1).any():  # every point is in the tail of some objective
        high = core.max(axis=0)
    low = np.concatenate([every[(every <= high).all(axis=1)], *always]).min(axis=0)
    reach = high + REACH * (high - low)
    near = every[(every <= reach).all(axis=1)]
    return low, np.concatenate([near, [high], *always]).max(axis=0)


def _without_tail(values: Array, weights: Array) -> float:
    """The largest value before a gap behind which only a light and distant tail follows."""
    order = np.argsort(values)
    values, weights = values[order], weights[order]
    rest = np.cumsum(weights[::-1])[::-1][1:]  # what lies behind each gap
    width = values[:-1] - values[0]
    lone = (rest <= TAIL + 1e-9) & (width > 0) & (np.diff(values) > GAP * width)
    return float(values[:-1][lone][0] if lone.any() else values[-1])
