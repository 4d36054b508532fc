"""Order, range and distance of fronts, against scipy, moocore and plain loops."""

import itertools
import math
from pathlib import Path

import moocore
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.integrate import quad
from scipy.stats import spearmanr
from tests.pareto.conftest import Array, make_front

from paretocosmos.errors import ConfigurationError
from paretocosmos.pareto import Front
from paretocosmos.pareto.metrics import (
    MEANINGS,
    box_of,
    dominated_share,
    expected_utility,
    front_report,
    hypervolume,
    igd_plus,
    inverted_share,
    monotonicity,
    normalised_hypervolume,
    range_covered,
    span,
)

NAN = float("nan")
RAYS = np.array([[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]])


# Order


@given(data=st.data(), count=st.integers(2, 12), objectives=st.integers(2, 4))
def test_monotonicity_is_scipys_spearman(data: st.DataObject, count: int, objectives: int) -> None:
    coarse = arrays(np.float64, (count, objectives), elements=st.integers(0, 5).map(float))
    rays, values = data.draw(coarse), data.draw(coarse)
    expected = []
    for ray, value in zip(rays.T, values.T, strict=True):
        constant = np.ptp(ray) == 0 or np.ptp(value) == 0  # scipy: NaN; here: does not matter, 0
        expected.append(0.0 if constant else float(spearmanr(ray, -value).statistic))
    found = monotonicity(make_front(values, rays))
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_monotonicity_reads_the_preference_of_each_objective() -> None:
    assert monotonicity(make_front(1 - RAYS, RAYS)).tolist() == [1, 1]
    assert monotonicity(make_front(RAYS, RAYS)).tolist() == [-1, -1]
    assert monotonicity(make_front(np.ones((3, 2)), RAYS)).tolist() == [0, 0]
    mixed = np.stack([1 - RAYS[:, 0], RAYS[:, 1]], axis=1)
    assert monotonicity(make_front(mixed, RAYS)).tolist() == [1, -1]


def test_monotonicity_leaves_out_what_is_no_number() -> None:
    rays = np.vstack([RAYS, [0.3, 0.7]])
    values = np.vstack([1 - RAYS, [NAN, 9.0]])
    found = monotonicity(make_front(values, rays))
    assert found[0] == 1
    assert found[1] < 1
    assert monotonicity(make_front([[NAN, 1.0], [NAN, 2.0]], RAYS[:2])).tolist() == [0, -1]


def test_weights_that_differ_by_a_rounding_are_one() -> None:
    third = np.array([[1 / 3, 2 / 3], [np.float32(1 / 3), 2 / 3], [0.1, 0.9]])
    assert monotonicity(make_front([[1.0, 1.0], [2.0, 1.0], [3.0, 0.5]], third))[1] == 1


def _draws(values: npt.ArrayLike, noise: float, count: int = 400) -> Array:
    """Draws that move every point by itself."""
    values = np.asarray(values, dtype=np.float64)
    random = np.random.default_rng(1)
    return values + noise * random.normal(size=(count, *values.shape))


@given(seed=st.integers(0, 2**31), count=st.integers(1, 6), objectives=st.integers(2, 3))
def test_inverted_pairs_are_counted_by_hand(seed: int, count: int, objectives: int) -> None:
    random = np.random.default_rng(seed)
    rays = random.integers(0, 4, (count, objectives)).astype(float)
    front = make_front(random.integers(0, 4, (count, objectives)), rays)
    draws = _draws(front.values, 0.3, 40)
    wrong, every = [0] * objectives, [0] * objectives
    for (a, b), j in itertools.product(itertools.combinations(range(count), 2), range(objectives)):
        if rays[a, j] == rays[b, j]:
            continue
        more, less = (a, b) if rays[a, j] > rays[b, j] else (b, a)
        every[j] += 1
        wrong[j] += sum(one[more, j] > one[less, j] for one in draws) >= 39
    expected = [w / max(e, 1) for w, e in zip(wrong, every, strict=True)]
    assert inverted_share(front, draws).tolist() == expected


def test_draws_need_the_shape_of_themake_front() -> None:
    says = r"need the shape \[draws, 3, 2\], found \(4, 2, 2\): use `evaluation"
    for measure in (inverted_share, dominated_share):
        with pytest.raises(ConfigurationError, match=says):
            measure(make_front(RAYS, RAYS), np.ones((4, 2, 2)))


def test_dominated_share_counts() -> None:
    assert dominated_share(make_front([[0, 1], [1, 0], [1, 1], [2, 2]])) == 0.5
    assert dominated_share(make_front([[0, 1], [1, 0], [0, 1]])) == 0


@given(
    values=arrays(
        np.float64,
        st.tuples(st.integers(1, 8), st.integers(1, 3)),
        elements=st.sampled_from([0.0, 0.25, 0.5, 1.0, NAN]),
    )
)
def test_draws_without_noise_count_the_same(values: Array) -> None:
    front = make_front(values)
    assert dominated_share(front, np.stack([values] * 3)) == pytest.approx(dominated_share(front))


def test_a_point_dominated_within_noise_is_not_counted() -> None:
    values = [[1.0, 3.0], [1.1, 3.1], [2.0, 4.0], [3.0, 1.0]]
    front = make_front(values)
    assert dominated_share(front) == 0.5
    assert dominated_share(front, _draws(values, 0.2)) == 0.25  # the third only
    assert dominated_share(front, _draws(values, 9.0)) == 0


# Range


def test_the_range_is_that_of_the_non_dominated_points() -> None:
    front = make_front([[0, 4], [1, 2], [3, 0], [50, 50]])
    assert range_covered(front).tolist() == [3, 4]
    assert math.hypot(*range_covered(front)) == span(front)
    wide = make_front([[0, 8], [6, 0]])
    assert range_covered(front, wide).tolist() == [0.5, 0.5]
    assert range_covered(wide, front).tolist() == [2, 2]


def test_the_range_of_a_point_is_nothing_and_no_share_of_nothing() -> None:
    point, front = make_front([[1.0, 1.0]]), make_front([[0, 4], [3, 0]])
    assert range_covered(point, front).tolist() == [0, 0]
    assert np.isnan(range_covered(front, point)).all()
    assert np.isnan(range_covered(make_front([[NAN, 1.0]]))).all()


# In a box


def test_the_box_of_the_toy_front_is_dominated_but_for_its_integral() -> None:
    t = np.linspace(0, 1, 4001)  # (t^2, (1 - t)^2): below it lies 1/6 of the unit box
    toy = make_front(np.stack([t**2, (1 - t) ** 2], axis=1))
    for box in (None, box_of(toy), ((0, 0), (1, 1))):
        assert normalised_hypervolume(toy, box) == pytest.approx(5 / 6, abs=1e-3)


@given(data=st.data(), objectives=st.integers(2, 4))
def test_the_box_hides_nothing_that_units_change(data: st.DataObject, objectives: int) -> None:
    values = data.draw(arrays(np.float64, (5, objectives), elements=st.floats(0, 1)))
    found = normalised_hypervolume(make_front(values), (np.zeros(objectives), np.ones(objectives)))
    below = values[(values < 1).all(axis=1)]
    assert found == pytest.approx(hypervolume(below, 1) if len(below) else 0)
    units = np.arange(1, objectives + 1.0)
    other = normalised_hypervolume(make_front(values * units + 3), (3 + 0 * units, 3 + units))
    assert found == pytest.approx(other, abs=1e-9)


def test_points_beyond_the_ideal_count_on_the_edge_and_those_beyond_the_nadir_not() -> None:
    box = ((0.0, 0.0), (1.0, 1.0))
    assert normalised_hypervolume(make_front([[-1.0, 0.5]]), box) == 0.5
    assert normalised_hypervolume(make_front([[-9.0, -9.0]]), box) == 1
    assert normalised_hypervolume(make_front([[0.0, 1.5], [NAN, 0.0]]), box) == 0
    assert math.isnan(normalised_hypervolume(make_front([[1.0, 1.0]])))
    with pytest.raises(ConfigurationError, match=r"found shapes \(3,\) and \(2,\): use `box_of"):
        normalised_hypervolume(make_front([[1.0, 1.0]]), ((0, 0, 0), (1, 1)))


# Utility and distance


def test_expected_utility_of_two_objectives_is_an_integral() -> None:
    values = np.array([[0.1, 1.9], [0.4, 0.6], [1.5, 0.2], [NAN, 0.0]])
    found = expected_utility(make_front(values))
    exact, _ = quad(lambda w: min(w * a + (1 - w) * b for a, b in values[:3]), 0, 1)
    assert found == pytest.approx(exact, rel=1e-3)


@pytest.mark.parametrize("objectives", [1, 2, 3, 5])
def test_expected_utility_of_one_point_is_the_mean_of_its_values(objectives: int) -> None:
    """E w = 1/J whatever the point, so a single one costs its mean."""
    point = np.linspace(0.5, 1.5, objectives)
    assert expected_utility(make_front([point])) == pytest.approx(point.mean(), rel=0.02)
    assert expected_utility(make_front([point]), scale=point) == pytest.approx(1)


def test_expected_utility_of_corners_is_the_mean_of_the_smallest_weight() -> None:
    """min_j w_j of the flat Dirichlet has mean 1/J^2."""
    assert expected_utility(make_front(np.eye(3))) == pytest.approx(1 / 9, rel=0.05)
    assert math.isnan(expected_utility(make_front([[NAN, 0.0]])))


def test_igd_plus_is_moocores() -> None:
    random = np.random.default_rng(3)
    points, goal = random.random((9, 3)), random.random((7, 3)) / 2
    best = goal[moocore.is_nondominated(goal)]
    front, of = make_front(points), make_front(goal)
    assert igd_plus(front, of) == pytest.approx(moocore.igd_plus(front.filter().values, ref=best))
    scale = np.array([1.0, 2.0, 0.5])
    scaled = igd_plus(make_front(points / scale), make_front(goal / scale))
    assert igd_plus(front, of, scale=scale) == pytest.approx(scaled)


def test_igd_plus_counts_nothing_where_the_front_is_better() -> None:
    of = make_front([[0.5, 1.0], [1.0, 0.5]])
    assert igd_plus(make_front([[0.1, 0.1]]), of) == 0
    assert igd_plus(of, of) == 0
    assert math.isnan(igd_plus(make_front([[NAN, 0.1]]), of))


@pytest.mark.parametrize("scale", [(1.0,), (1.0, 0.0), (1.0, NAN)])
def test_a_scale_that_does_not_fit_is_refused(scale: tuple[float, ...]) -> None:
    with pytest.raises(ConfigurationError, match="`scale` needs 2 positive numbers"):
        expected_utility(make_front([[1.0, 1.0]]), scale=scale)


def test_two_fronts_need_the_same_objectives() -> None:
    front = make_front([[1.0, 1.0]])
    other = Front(front.rays, front.values, ("loss", "gap"), front.reference)
    for measure in (range_covered, igd_plus):
        with pytest.raises(ConfigurationError, match="`reference` needs the objectives of `front`"):
            measure(front, other)


# All of them


def test_a_report_has_every_measure_and_each_a_meaning() -> None:
    front = make_front(1.1 - RAYS, RAYS)
    alone, beside = front_report(front), front_report(front, make_front(1 - RAYS, RAYS))
    noisy = front_report(front, draws=_draws(front.values, 0.01))
    every = [*alone.numbers, *beside.numbers, *noisy.numbers]
    every += [*alone.by_objective, *beside.by_objective, *noisy.by_objective]
    assert {*every} == {*MEANINGS}
    order = list(MEANINGS)
    for report in (alone, beside, noisy):  # order and range before hypervolume
        assert list(report.numbers) == sorted(report.numbers, key=order.index)


def test_a_report_is_made_of_the_measures() -> None:
    front, separate = make_front(1.1 - RAYS, RAYS), make_front(1 - 2 * RAYS, RAYS)
    draws = _draws(front.values, 0.5)
    report = front_report(front, separate, draws=draws)
    assert report.numbers["range_covered"] == range_covered(front, separate).min() < 0.51
    assert report.numbers["dominated_share"] == dominated_share(front, draws)
    assert report.numbers["hypervolume"] == hypervolume(front)
    scale = range_covered(separate)
    assert report.numbers["igd_plus"] == igd_plus(front, separate, scale=scale)
    inside = normalised_hypervolume(front, box_of(separate))
    assert report.numbers["hypervolume_in_separate_box"] == inside
    assert report.by_objective["inverted_share"].tolist() == [0, 0]
    assert "hypervolume_in_own_box" not in report.numbers


def test_a_report_as_json_has_names_and_none_for_what_does_not_exist() -> None:
    found = front_report(make_front([[0.0, 0.0]])).to_dict()
    assert found["numbers"]["angle"] is None
    assert found["numbers"]["hypervolume_in_own_box"] is None
    assert found["numbers"]["hypervolume"] == 4
    assert found["by_objective"]["monotonicity"] == {"o0": 0, "o1": 0}


def test_the_docs_say_how_to_read_each_measure() -> None:
    page = (Path(__file__).parents[2] / "docs" / "concepts.md").read_text(encoding="utf-8")
    section = page.partition("## How to read a front")[2].partition("\n## ")[0]
    assert [name for name in MEANINGS if f"`{name}`" not in section] == []
    places = [section.index(f"`{name}`") for name in ("monotonicity", "range", "hypervolume")]
    assert places == sorted(places)
