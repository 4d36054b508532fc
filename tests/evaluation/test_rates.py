"""Intervals of gaps and shares: textbook values, brute force, and how often they hold the truth."""

from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats

from paretocosmos.evaluation import (
    Pairs,
    compute_critical_value,
    compute_gap_interval,
    compute_gap_limit,
    compute_share_interval,
)
from paretocosmos.pareto import Array


def counts(*groups: tuple[float, float]) -> Array:
    """Moments of one rate: hits and sizes of each group."""
    return np.array([[[hits, hits, size] for hits, size in groups]], dtype=float)


def test_the_published_interval_of_two_proportions() -> None:
    # Newcombe (1998), method 6: 56 of 70 against 48 of 80 gives 0.0528 to 0.3382
    assert float(compute_gap_limit(counts((56, 70), (48, 80)), reach=1.959964)) == pytest.approx(
        0.3382, abs=5e-5
    )
    low, high = compute_gap_interval(counts((56, 70), (48, 80)), chosen=True)
    assert (float(low), float(high)) == pytest.approx((0.0528, 0.3382), abs=5e-5)
    # 9 of 10 against 3 of 10: 0.1700 to 0.8406
    low, high = compute_gap_interval(counts((3, 10), (9, 10)), chosen=True)
    assert (float(low), float(high)) == pytest.approx((0.1700, 0.8406), abs=5e-5)


def test_a_share_is_scipys_wilson() -> None:
    for hits, size in ((0, 20), (7, 20), (249, 250), (250, 250)):
        theirs = stats.binomtest(hits, size).proportion_ci(0.9, method="wilson")
        low, high = compute_share_interval(np.array(hits / size), np.array(float(size)), level=0.9)
        assert (float(low), float(high)) == pytest.approx((theirs.low, theirs.high))


def test_the_standard_error_is_that_of_the_likeliest_rates() -> None:
    draw = np.random.default_rng(1)
    for _ in range(20):
        sizes = draw.integers(5, 60, 2)
        hits = np.sort(draw.uniform(0.05, 0.95, 2))[::-1] * sizes
        gap = float(draw.uniform(0, 0.8))

        def unlikely(rate: float, hits: Array = hits, sizes: Any = sizes, g: float = gap) -> float:
            rates = np.array([rate, rate - g])
            return -float((hits * np.log(rates) + (sizes - hits) * np.log1p(-rates)).sum())

        best = optimize.minimize_scalar(
            unlikely, bounds=(gap + 1e-9, 1 - 1e-9), method="bounded", options={"xatol": 1e-10}
        ).x
        variance = best * (1 - best) / sizes[0] + (best - gap) * (1 - best + gap) / sizes[1]
        expected = np.sqrt(variance * sizes.sum() / (sizes.sum() - 1))
        found = Pairs(counts(*zip(hits, sizes, strict=True))).compute_error(np.array([gap]))
        assert found[0] == pytest.approx(expected, rel=1e-5)


def test_the_critical_value_holds_an_absolute_normal_number() -> None:
    for level in (0.8, 0.95, 0.99):
        for middle in (0.0, 0.3, 1.0, 1.8, 2.5, 6.0):
            k = float(compute_critical_value(np.array(middle), level=level))
            folded = stats.foldnorm(middle)
            held = folded.cdf(middle + k) - folded.cdf(max(middle - k, 0))
            assert held == pytest.approx(level, abs=2e-4)


def test_equal_shares_do_not_prove_equal_chances() -> None:
    low, high = compute_gap_interval(counts((40, 50), (40, 50)))
    assert low == 0
    assert 0.1 < high < 0.16
    low, high = compute_gap_interval(counts((0, 31), (0, 90)))
    assert low == 0
    assert 0.02 < high < 0.12


@pytest.mark.parametrize(("rows", "gap"), [(30, 0.0), (30, 0.2), (200, 0.0), (200, 0.1)])
def test_the_truth_is_held_as_often_as_is_said(rows: int, gap: float) -> None:
    draw = np.random.default_rng(rows)
    hits = draw.binomial([rows, 3 * rows], [0.7 - gap, 0.7], (4000, 2))
    sizes = np.broadcast_to([rows, 3 * rows], hits.shape)
    many = np.stack([hits, hits, sizes], axis=-1)[:, None].astype(float)
    low, high = compute_gap_interval(many)
    assert 0.935 < np.mean((low <= gap) & (gap <= high)) < 0.97
    estimate = np.abs(hits[:, 0] / rows - hits[:, 1] / (3 * rows))
    assert (low <= estimate).all()
    assert (estimate <= high).all()
    assert np.mean(compute_gap_limit(many, reach=1.2816) < gap) < 0.115


def test_several_groups_hold_the_largest_gap() -> None:
    draw, rates = np.random.default_rng(5), np.array([0.6, 0.65, 0.65, 0.75])
    hits = draw.binomial(150, rates, (2000, 4))
    many = np.stack([hits, hits, np.full_like(hits, 150)], axis=-1)[:, None].astype(float)
    low, high = compute_gap_interval(many)
    assert np.mean((low <= 0.15) & (high >= 0.15)) > 0.945
    assert np.mean(high < 0.15) < 0.025
    pair = compute_gap_interval(many[:, :, [0, 3]])
    assert (high >= pair[1] - 1e-9).all()


def test_means_spread_as_their_rows_do() -> None:
    draw = np.random.default_rng(2)
    first, second = draw.normal(3, 2, 400), draw.normal(1, 1, 900)
    moments = np.array([[[v.sum(), (v**2).sum(), len(v)] for v in (first, second)]])
    low, high = compute_gap_interval(moments)
    error = np.hypot(first.std(ddof=1) / 20, second.std(ddof=1) / 30)
    apart = first.mean() - second.mean()
    assert (float(low), float(high)) == pytest.approx(
        (apart - 1.959964 * error, apart + 1.959964 * error), rel=1e-4
    )
