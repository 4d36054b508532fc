"""Whether a front obeys the preference: its order, and which of its points are of no use."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from paretocosmos.errors import ConfigurationError
from paretocosmos.pareto.front import Array, Front
from paretocosmos.pareto.metrics.indicators import check_same_objectives

# The share of paired draws in which a difference has one sign to be beyond noise: the two-sided
# 5 % of a bootstrap interval, and as many standard errors.
BEYOND, ERRORS = 0.975, 1.96
# Weights closer than this are one: rays are float32.
DIGITS = 6


def monotonicity(front: Front) -> Array:
    """Correlation of an objective's weight with a lower value, for each objective ``[J]``.

    Spearman's rank correlation over rays between the weight and minus the value: 1 if more weight
    always lowers it, -1 if it always raises it, 0 if it does not matter. Ties share their ranks; a
    ray whose value is NaN is left out.

    >>> rays = [[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]]
    >>> monotonicity(Front(rays, [[1, 1], [2, 2], [3, 3]], ("loss", "gap"), (4, 4)))
    array([ 1., -1.])
    """
    pairs = zip(front.rays.T.round(DIGITS), front.values.T, strict=True)
    return np.array([_compute_spearman(weight, -value) for weight, value in pairs])


@dataclass(frozen=True, eq=False)
class InvertedPairs:
    """Pairs of rays in the wrong order, for each objective."""

    count: npt.NDArray[np.int64]
    """``[J]``: pairs whose ray with more weight has the larger value, beyond noise."""
    pairs: npt.NDArray[np.int64]
    """``[J]``: pairs whose weights differ."""

    @property
    def share(self) -> Array:
        """``[J]``: 0 is best; 0 where no weights differ."""
        found: Array = self.count / np.maximum(self.pairs, 1)
        return found


def inverted_pairs(front: Front, draws: npt.ArrayLike) -> InvertedPairs:
    """Count pairs of rays that are in the wrong order by more than chance would explain.

    Args:
        front: whose rays are compared.
        draws: its values ``[draws, N, J]`` on samples drawn again, the same ones for every ray
            (`evaluation.draw_paired_scores`). A pair is wrong if the ray with more weight has
            the larger value in at least 97.5 % of them.

    >>> front = Front([[0.9, 0.1], [0.1, 0.9]], [[1, 2], [3, 4]], ("loss", "gap"), (5, 5))
    >>> found = inverted_pairs(front, [front.values] * 40)
    >>> found.count.tolist(), found.share.tolist()
    ([0, 1], [0.0, 1.0])
    """
    drawn = _check_draws(front, draws)
    weights = front.rays.round(DIGITS)
    more = weights[:, None] > weights[None]
    larger = np.zeros(more.shape, dtype=np.int64)
    for values in drawn:
        larger += values[:, None] > values[None]
    wrong = more & (larger >= BEYOND * len(drawn))
    return InvertedPairs(wrong.sum(axis=(0, 1)), more.sum(axis=(0, 1)))


def dominated_share(front: Front, noise: npt.ArrayLike | None = None) -> float:
    """The share of rays that another ray's point dominates; 0 is best.

    Args:
        front: whose points are counted; one with a NaN counts as dominated.
        noise: count only what is beyond chance: standard errors of the values ``[N, J]``, of which
            a point must be better by 1.96 of the difference in every objective, or paired draws of
            the values ``[draws, N, J]``, in 97.5 % of which it must dominate.

    >>> rays, values = [[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]], [[1, 3], [2, 4], [3, 1]]
    >>> front = Front(rays, values, ("loss", "gap"), (5, 5))
    >>> round(dominated_share(front), 2), dominated_share(front, np.full((3, 2), 0.9))
    (0.33, 0.0)
    """
    if noise is None:
        return float(1 - front.non_dominated.mean())
    given = np.asarray(noise, dtype=np.float64)
    missing = np.isnan(front.values).any(axis=1)
    if given.shape == front.values.shape:
        ahead = front.values[:, None] - front.values[None]
        least = ERRORS * np.sqrt(given[:, None] ** 2 + given[None] ** 2)
        by = np.all(ahead >= least, axis=2) & np.any(ahead > 0, axis=2)
    else:
        drawn = _check_draws(front, given)
        often = np.zeros((len(front), len(front)), dtype=np.int64)
        for values in drawn:
            often += _find_dominated(values, values)
        by = often >= BEYOND * len(drawn)
    return float(np.mean(np.any(by, axis=1) | missing))


def covered(front: Front, by: Front) -> float:
    """The share of the front's points that some point of another front dominates; 0 is best.

    Zitzler and Thiele's coverage C(by, front) (1999), with strict dominance: as good everywhere
    and better somewhere, so equal points do not count. `covered(a, b)` and `covered(b, a)` are two
    numbers and need not add up to 1; `covered(a, a)` is `dominated_share(a)`.

    Args:
        front: whose points are counted; one with a NaN is dominated by any that has none.
        by: whose points dominate, with the same objectives; one with a NaN dominates nothing.

    >>> rays, names = [[0.9, 0.1], [0.1, 0.9]], ("loss", "gap")
    >>> one = Front(rays, [[0.3, 0.2], [0.5, 0.1]], names, (2, 2))
    >>> two = Front(rays, [[0.3, 0.3], [0.4, 0.1]], names, (2, 2))
    >>> covered(one, two), covered(two, one)
    (0.5, 0.5)
    """
    check_same_objectives(front, by, "by")
    rivals = by.values[by.non_dominated]  # what a dominated point dominates, they dominate too
    values = front.values.copy()
    values[np.isnan(values).any(axis=1)] = np.inf
    return float(_find_dominated(values, rivals).any(axis=1).mean())


def _find_dominated(values: Array, rivals: Array) -> npt.NDArray[np.bool_]:
    """``[N, M]``: which of the rivals ``[M, J]`` dominate which of the values ``[N, J]``."""
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
    known = ~np.isnan(second)
    if not known.any():
        return 0.0
    one, two = (_compute_ranks(side[known]) for side in (first, second))
    one, two = one - one.mean(), two - two.mean()
    size = np.sqrt((one @ one) * (two @ two))
    return float(np.clip(one @ two / size, -1, 1)) if size > 0 else 0.0


def _compute_ranks(values: Array) -> Array:
    """Places from the smallest on; equal values share the mean of theirs."""
    _, at, counts = np.unique(values, return_inverse=True, return_counts=True)
    middle: Array = (np.cumsum(counts) - (counts - 1) / 2)[at]
    return middle
