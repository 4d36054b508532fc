"""Order of a front: does it obey the preference, and which of its points are dominated."""

import numpy as np
import numpy.typing as npt

from paretocosmos.errors import ConfigurationError
from paretocosmos.pareto.front import Array, Front
from paretocosmos.pareto.metrics.indicators import check_same_objectives

# The share of paired draws in which a difference has one sign to be beyond noise: the two-sided
# 5 % of a bootstrap interval.
BEYOND = 0.975
# Weights closer than this are one: rays are float32.
DIGITS = 6


def monotonicity(front: Front) -> Array:
    """Compute how an objective's weight correlates with a lower value, for each ``[J]``.

    Spearman's rank correlation over rays between the weight and minus the value: 1 if more weight
    always lowers it, -1 if it always raises it, 0 if it does not matter. Ties share their ranks; a
    ray whose value is NaN is left out.

    >>> rays = [[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]]
    >>> monotonicity(Front(rays, [[1, 1], [2, 2], [3, 3]], ("loss", "gap"), (4, 4)))
    array([ 1., -1.])
    """
    pairs = zip(front.rays.T.round(DIGITS), front.values.T, strict=True)
    return np.array([_compute_spearman(weight, -value) for weight, value in pairs])


def inverted_share(front: Front, draws: npt.ArrayLike) -> Array:
    """Compute the share of pairs of rays in the wrong order, for each objective ``[J]``; 0 is best.

    Args:
        front: whose rays are compared, where their weights differ.
        draws: its values ``[draws, N, J]`` on samples drawn again, the same ones for every ray
            (`evaluation.draw_paired_scores`). A pair is wrong if the ray with more weight has
            the larger value in at least 97.5 % of them: by more than chance would explain.

    >>> front = Front([[0.9, 0.1], [0.1, 0.9]], [[1, 2], [3, 4]], ("loss", "gap"), (5, 5))
    >>> inverted_share(front, [front.values] * 40)
    array([0., 1.])
    """
    drawn = _check_draws(front, draws)
    weights = front.rays.round(DIGITS)
    more = weights[:, None] > weights[None]
    larger = np.zeros(more.shape, dtype=np.int64)
    # draw by draw: [draws, N, N, J] at once would take gigabytes for a large front
    for values in drawn:
        larger += values[:, None] > values[None]
    wrong = more & (larger >= BEYOND * len(drawn))
    share: Array = wrong.sum(axis=(0, 1)) / np.maximum(more.sum(axis=(0, 1)), 1)
    return share


def dominated_share(front: Front, draws: npt.ArrayLike | None = None) -> float:
    """Compute the share of rays that another ray's point dominates; 0 is best.

    Args:
        front: whose points are counted; one with a NaN counts as dominated.
        draws: count only what is beyond chance: paired draws of the values ``[draws, N, J]``, in
            97.5 % of which another point must dominate.

    >>> rays, values = [[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]], [[1, 3], [2, 4], [3, 1]]
    >>> round(dominated_share(Front(rays, values, ("loss", "gap"), (5, 5))), 2)
    0.33
    """
    if draws is None:
        return float(1 - front.non_dominated.mean())
    drawn = _check_draws(front, draws)
    counts = np.zeros((len(front), len(front)), dtype=np.int64)
    for values in drawn:
        counts += _find_dominated(values, values)
    missing = np.isnan(front.values).any(axis=1)
    return float(np.mean((counts >= BEYOND * len(drawn)).any(axis=1) | missing))


def coverage(front: Front, rivals: Front) -> float:
    """Compute the share of the front's points that another front dominates; 0 is best.

    Zitzler and Thiele's coverage C(rivals, front) (1999), with strict dominance: as good
    everywhere and better somewhere, so equal points do not count. `coverage(a, b)` and
    `coverage(b, a)` are two numbers and need not add up to 1; `coverage(a, a)` is
    `dominated_share(a)`.

    Args:
        front: whose points are counted; one with a NaN is dominated by any that has none.
        rivals: their points dominate, with the same objectives; one with a NaN dominates nothing.

    >>> rays, names = [[0.9, 0.1], [0.1, 0.9]], ("loss", "gap")
    >>> first = Front(rays, [[0.3, 0.2], [0.5, 0.1]], names, (2, 2))
    >>> second = Front(rays, [[0.3, 0.3], [0.4, 0.1]], names, (2, 2))
    >>> coverage(first, second), coverage(second, first)
    (0.5, 0.5)
    """
    check_same_objectives(front, rivals, "rivals")
    # what a dominated point dominates, the one that dominates it dominates, too
    best = rivals.values[rivals.non_dominated]
    values = front.values.copy()
    values[np.isnan(values).any(axis=1)] = np.inf
    return float(_find_dominated(values, best).any(axis=1).mean())


def _find_dominated(values: Array, rivals: Array) -> npt.NDArray[np.bool_]:
    """Return ``[N, M]``: which rivals ``[M, J]`` dominate which of the values ``[N, J]``."""
    no_worse = np.all(rivals[None] <= values[:, None], axis=2)
    better = np.any(rivals[None] < values[:, None], axis=2)
    return np.asarray(no_worse & better)


def _check_draws(front: Front, draws: npt.ArrayLike) -> Array:
    drawn = np.asarray(draws, dtype=np.float64)
    if drawn.ndim != 3 or drawn.shape[1:] != front.values.shape or not len(drawn):
        raise ConfigurationError(
            f"draws of a front's values need the shape [draws, {len(front)}, {front.objectives}], "
            f"found {drawn.shape}: use `evaluation.draw_paired_scores`"
        )
    return drawn


def _compute_spearman(first: Array, second: Array) -> float:
    finite = ~np.isnan(second)
    if not finite.any():
        return 0.0
    a, b = (_compute_ranks(values[finite]) for values in (first, second))
    a, b = a - a.mean(), b - b.mean()
    size = np.sqrt((a @ a) * (b @ b))
    # equal weights or equal values have no order: 0, where numpy's corrcoef gives NaN
    return float(np.clip(a @ b / size, -1, 1)) if size > 0 else 0.0


def _compute_ranks(values: Array) -> Array:
    """Return ranks from the smallest on; equal values share the mean of theirs."""
    _, index, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Array = (np.cumsum(counts) - (counts - 1) / 2)[index]
    return ranks
