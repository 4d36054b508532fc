"""Intervals of a gap between rates, and of a share, from the rows at hand.

Two groups: the difference d of two rates has the score interval of Miettinen and Nurminen (1985),
which inverts a test whose standard error is that of the hypothesis. A gap is |d|, and what is
observed of it spreads as the absolute value of a normal number does, so that the test's critical
value is that distribution's (`compute_critical_value`). Near 0 an interval of d that is merely
folded holds |d| in 97.5 % of the cases instead of 95 %, and a bootstrap cannot see a gap that the
sample lacks.

Several groups, or several rates: the gap is the largest |d| over all pairs. Its upper end is the
largest upper end of a pair: it misses only if that of the pair with the largest true gap does. Its
lower end is the largest lower end, each at a level that the pairs share (Bonferroni).
"""

from collections.abc import Callable
from functools import cache, partial
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
import torch

from paretocosmos.pareto.front import Array

Reach = Callable[[Array], Array]

# The standard error is itself estimated: the critical value is the largest within this of it.
# Without it a cell of benchmarks/intervals.py covers 93.0 % (1,500 rows, 90/10, gap 0.1).
SLACK = 0.1
# Halvings of [0, 1]: ends are right to nine digits.
STEPS = 30
TINY = 1e-12


def compute_gap_interval(
    moments: Array, *, level: float = 0.95, chosen: bool = False
) -> tuple[Array, Array]:
    """Compute the ends of intervals of the largest gap between rates, or between means.

    Args:
        moments: of each rate and group the sum of what is averaged, the sum of its squares, and
            how many rows there are (not 0), ``[..., rates, groups, 3]``, as `Objective.moments`
            gives them. Where every sum is that of its squares, 0 or 1 is averaged.
        level: how often an interval is to hold the true gap.
        chosen: whether the gap was found by looking for one below a bound in these very rows. Then
            it lies close to the bound and the true one around it, as a plain normal number does.

    Returns:
        Two arrays ``[...]``.

    >>> low, high = compute_gap_interval(np.array([[[40, 40, 50], [40, 40, 50]]]))
    >>> float(low), round(float(high), 3)
    (0.0, 0.152)
    """
    pairs = Pairs(moments)
    shared_level = 1 - (1 - level) / pairs.differences.shape[-1]  # Bonferroni
    reach = partial(_compute_reach, chosen=chosen)
    low = pairs.find_end(partial(reach, level=shared_level), below=True).max(axis=-1)
    return low, pairs.find_end(partial(reach, level=level), below=False).max(axis=-1)


def compute_gap_limit(moments: Array, *, reach: float | Array) -> Array:
    """Compute the upper limits of the largest gap between rates that a one-sided test keeps.

    Args:
        moments: as `compute_gap_interval` takes them.
        reach: standard errors, such as 1.28 for a confidence of 90 %; one for all, or ``[...]``.
    """
    constant = np.asarray(reach, dtype=np.float64)[..., None]
    limits: Array = Pairs(moments).find_end(lambda _: constant, below=False).max(axis=-1)
    return limits


def compute_smallest_bound(moments: Array, confidence: float) -> float:
    """Compute the bound that rows could show if every group had the mean of all, so no gap."""
    sizes = moments[..., 2]
    means: Array = moments[..., :2].sum(axis=-2) / sizes.sum(axis=-1)[..., None]
    equal = np.concatenate([means[..., None, :] * sizes[..., None], sizes[..., None]], axis=-1)
    return float(compute_gap_limit(equal, reach=NormalDist().inv_cdf(confidence)))


def compute_share_interval(
    share: Array, size: Array, *, level: float = 0.95
) -> tuple[Array, Array]:
    """Compute the score interval of a share of rows (Wilson 1927).

    >>> low, high = compute_share_interval(np.array(1.0), np.array(50.0))
    >>> round(float(low), 4), float(high)
    (0.9287, 1.0)
    """
    squared = NormalDist().inv_cdf((1 + level) / 2) ** 2
    middle = (share + squared / (2 * size)) / (1 + squared / size)
    spread = np.sqrt(share * (1 - share) / size + squared / (4 * size**2))
    # never beyond 0 and 1, unlike the normal interval at shares close to them
    half = np.sqrt(squared) * spread / (1 + squared / size)
    return np.clip(middle - half, 0, share), np.clip(middle + half, share, 1)


def compute_critical_value(distance: Array, *, level: float) -> Array:
    """Return k such that | |X| - m | <= k with probability `level`, for X of N(m, 1).

    1.96 at 0 and far from it, 1.64 between, for 95 %: close to 0 all that is too far is above.

    >>> compute_critical_value(np.array([0.0, 1.0, 9.0]), level=0.95).round(2)
    array([1.96, 1.65, 1.96])
    """
    distances, values = _tabulate_critical_values(level)
    return np.asarray(np.interp(distance, distances, values))


@cache
def _tabulate_critical_values(level: float) -> tuple[Array, Array]:
    """Return distances and their critical values, by bisection; the last stands for all beyond."""
    m = torch.linspace(0, 8, 1601, dtype=torch.float64)
    low, high, cdf = torch.zeros_like(m), torch.full_like(m, 8), torch.special.ndtr
    for _ in range(60):
        k = (low + high) / 2
        below = torch.where(m > k, cdf(-k) - cdf(k - 2 * m), 0.0)
        # P(| |X| - m | <= k): both signs of X, without what would be below 0
        covered = cdf(k) - cdf(-2 * m - k) - below
        low, high = torch.where(covered < level, k, low), torch.where(covered < level, high, k)
    return m.numpy(), high.numpy()


def _compute_reach(distance: Array, *, level: float, chosen: bool) -> Array:
    """Return the critical value of a test of |d|, or of d, where it is the same for every gap."""
    if chosen:
        return np.asarray(NormalDist().inv_cdf((1 + level) / 2))
    nearby = [distance * (1 + slack) for slack in (-SLACK, 0, SLACK)]
    values = [compute_critical_value(d, level=level) for d in nearby]
    return np.asarray(np.maximum.reduce(values))


class Pairs:
    """All pairs of groups, the higher mean first.

    Args:
        moments: sums, sums of squares and sizes, ``[..., rates, groups, 3]``.

    Attributes:
        differences: of the means, not negative, ``[..., pairs]``.
    """

    def __init__(self, moments: Array) -> None:
        first, second = np.triu_indices(moments.shape[-2], k=1)
        both = np.stack([moments[..., first, :], moments[..., second, :]], axis=-2)
        both = both.reshape(*moments.shape[:-3], -1, 2, 3).astype(np.float64)
        mean = both[..., 0] / both[..., 2]
        # d is then never negative, and its sign needs no cases below
        reversed_pairs = (mean[..., 0] < mean[..., 1])[..., None, None]
        both = np.where(reversed_pairs, both[..., ::-1, :], both)
        self._sums, squares, self._sizes = np.moveaxis(both, -1, 0)
        means = self._sums / self._sizes
        self.differences: Array = means[..., 0] - means[..., 1]
        # an average of 0 or 1 has a variance that follows from its mean; others have their own
        self._shares = bool(np.allclose(self._sums, squares))
        spread = np.maximum(squares / self._sizes - means**2, 0)
        self._constant: Array = np.sqrt((spread / np.maximum(self._sizes - 1, 1)).sum(axis=-1))

    def compute_error(self, gap: Array) -> Array:
        """Compute the standard errors of the differences if they were `gap` in truth.

        For rates, with the likeliest ones that differ by it, the root of a cubic in closed form
        (Farrington and Manning 1990), and Miettinen and Nurminen's N / (N - 1).
        """
        if not self._shares:
            return self._constant
        count_1, count_2 = np.moveaxis(self._sums, -1, 0)
        size_1, size_2 = np.moveaxis(self._sizes, -1, 0)
        rate_1, rate_2, ratio = count_1 / size_1, count_2 / size_2, size_2 / size_1
        # the likelihood equation of the higher rate: a x^3 + b x^2 + c x + d = 0
        a = 1 + ratio
        b = -(a + rate_1 + ratio * rate_2 + gap * (ratio + 2))
        c = gap**2 + gap * (2 * rate_1 + a) + rate_1 + ratio * rate_2
        d = -rate_1 * gap * (1 + gap)
        v = (b / (3 * a)) ** 3 - b * c / (6 * a**2) + d / (2 * a)
        u = np.sqrt(np.maximum((b / (3 * a)) ** 2 - c / (3 * a), 0)) * np.where(v < 0, -1, 1)
        # rounding puts it beyond 1 where the root is double
        cosine = np.clip(v / np.where(u == 0, 1, u**3), -1, 1)
        higher = 2 * u * np.cos((np.pi + np.arccos(cosine)) / 3) - b / (3 * a)
        higher = np.clip(higher, gap, 1)
        lower = higher - gap
        total = size_1 + size_2
        variance = higher * (1 - higher) / size_1 + lower * (1 - lower) / size_2
        return np.asarray(np.sqrt(np.maximum(variance, 0) * total / np.maximum(total - 1, 1)))

    def find_end(self, reach: Reach, *, below: bool) -> Array:
        """Find one end of every interval, by bisection between the difference and the furthest end.

        Args:
            reach: standard errors to the end, by how many standard errors the gap there is.
            below: the lower end instead of the upper.
        """
        # a rate differs by 1 at most; a mean by anything, so ten standard errors stand for infinity
        largest = 1.0 if self._shares else self.differences + 10 * self._constant
        inner = self.differences
        furthest = outer = np.zeros_like(inner) + (0.0 if below else largest)

        def is_rejected(gap: Array) -> npt.NDArray[np.bool_]:
            error = np.maximum(self.compute_error(gap), TINY)
            return np.asarray(np.abs(self.differences - gap) > reach(gap / error) * error)

        # where even the furthest value is not rejected, it is the end
        unbounded = ~is_rejected(outer)
        for _ in range(STEPS):
            middle = (inner + outer) / 2
            rejected = is_rejected(middle)
            inner, outer = np.where(rejected, inner, middle), np.where(rejected, middle, outer)
        return np.where(unbounded, furthest, inner)
