import itertools
import math
import warnings

import moocore
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from tests.pareto.conftest import Array, make_front

from paretocosmos.errors import ConfigurationError, FrontWarning
from paretocosmos.pareto import Front
from paretocosmos.pareto.metrics import (
    angle,
    coverage,
    dominated_share,
    hypervolume,
    ideal,
    ideal_hypervolume,
    spacing,
    span,
)

# Hypervolume


@pytest.mark.parametrize("how", ["auto", "exact", "approximate"])
@pytest.mark.parametrize("objectives", [2, 3, 6, 8])
def test_one_point_is_a_box(objectives: int, how: str) -> None:
    point = np.linspace(0.1, 1.5, objectives)
    found = hypervolume([point], 2, how=how)  # type: ignore[arg-type]
    exact = how == "exact" or (how == "auto" and objectives <= 6)
    assert found == pytest.approx(math.prod(2 - point), rel=1e-12 if exact else 0.01)


QUARTER = np.linspace(0, math.pi / 2, 4001)


@pytest.mark.parametrize(
    ("x", "y", "above"),
    [
        # below L = (t^2, (1 - t)^2) lies the integral of (1 - sqrt(x))^2, which is 1/6
        (np.linspace(0, 1, 4001) ** 2, np.linspace(1, 0, 4001) ** 2, 1 / 6),
        (np.sin(QUARTER), np.cos(QUARTER), math.pi / 4),
    ],
    ids=["convex", "concave"],
)
def test_the_volume_of_a_curve_is_an_integral(x: Array, y: Array, above: float) -> None:
    found = hypervolume(np.stack([x, y], axis=1), (2, 2))
    assert 4 - above - 1e-3 < found < 4 - above  # steps miss at most the mesh


def _inclusion_exclusion(values: Array, reference: float) -> float:
    """The volume of a union of boxes, by every one of its intersections."""
    total = 0.0
    for size in range(1, len(values) + 1):
        for chosen in itertools.combinations(values, size):
            sides = np.maximum(reference - np.max(chosen, axis=0), 0)
            total += (-1) ** (size + 1) * float(np.prod(sides))
    return total


@given(data=st.data(), objectives=st.integers(1, 4), count=st.integers(1, 6))
def test_exact_hypervolume_is_inclusion_and_exclusion(
    data: st.DataObject, objectives: int, count: int
) -> None:
    values = data.draw(arrays(np.float64, (count, objectives), elements=st.floats(0, 1.9)))
    expected = _inclusion_exclusion(values, 2.0)
    assert hypervolume(values, 2.0) == pytest.approx(expected, rel=1e-9)
    assert hypervolume(make_front(values)) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("objectives", "error"), [(7, 1e-3), (8, 1e-3), (12, 2e-3), (20, 1e-2)])
def test_the_approximation_is_as_good_as_said_and_repeatable(objectives: int, error: float) -> None:
    points = np.abs(np.random.default_rng(objectives).normal(size=(12, objectives)))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    exact = hypervolume(points, 2, how="exact")
    assert exact == pytest.approx(_inclusion_exclusion(points, 2.0), rel=1e-9)
    approximate = hypervolume(points, 2, how="approximate")
    assert approximate == pytest.approx(exact, rel=error)
    assert approximate != exact
    assert approximate == hypervolume(points, 2) == hypervolume(points, 2, how="approximate")


def test_points_outside_the_reference_are_ignored() -> None:
    inside = [[1.0, 1.0], [0.5, 1.5]]
    outside = [[2.5, 0.1], [0.1, 2.0], [3.0, 3.0], [float("nan"), 0.0]]
    assert hypervolume(inside + outside, 2) == hypervolume(inside, 2) == 1.25


@pytest.mark.parametrize("values", [[[3.0, 3.0]], [[2.0, 0.0]], [[0.0, 2.5], [2.5, 0.0]]])
def test_a_reference_nobody_dominates_is_zero_with_a_warning(values: list[list[float]]) -> None:
    with pytest.warns(FrontWarning, match=r"reference point \[2\.0, 2\.0\]") as caught:
        assert hypervolume(values, 2) == 0
    assert caught[0].filename == __file__  # points at the caller


def test_a_front_brings_its_reference_which_can_be_overruled() -> None:
    front = make_front([[1.0, 1.0]])
    assert hypervolume(front) == 1
    assert hypervolume(front, (3, 2)) == 2


@pytest.mark.parametrize(
    ("values", "reference", "says"),
    [
        ([[1.0, 1.0]], None, "`reference` is needed"),
        ([1.0, 1.0], 2, r"found shapes \(2,\) and \(\)"),
        ([[1.0, 1.0]], (2, 2, 2), r"found shapes \(1, 2\) and \(3,\)"),
        ([[1.0, 1.0]], (2,), r"\(1, 2\) and \(1,\)"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(
    values: list[float], reference: float | None, says: str
) -> None:
    with pytest.raises(ConfigurationError, match=says):
        hypervolume(values, reference)


def test_an_unknown_way_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"`how` must be .* found `exakt`"):
        hypervolume([[1.0, 1.0]], 2, how="exakt")  # type: ignore[arg-type]


# The others


def test_span_is_the_diagonal_of_the_box_around_the_non_dominated_points() -> None:
    assert span(make_front([[0, 4], [1, 2], [3, 0]])) == 5
    assert span(make_front([[0, 4], [1, 2], [3, 0], [50, 50]])) == 5  # dominated: no part of it
    assert span(make_front([[0, 0, 1], [1, 0, 0], [0, 2, 0]])) == pytest.approx(math.sqrt(6))
    assert span(make_front([[1, 1]])) == 0
    nan = float("nan")
    assert span(make_front([[0.0, 4.0], [3.0, 0.0], [nan, -9.0]])) == 5
    assert math.isnan(span(make_front([[nan, 0.0], [0.0, nan]])))  # there is no such point
    assert spacing(make_front([[nan, 0.0], [0.0, nan]])) == 0


@pytest.mark.parametrize("objectives", [2, 3])
def test_spacing_of_evenly_spaced_points_is_zero(objectives: int) -> None:
    t = np.arange(6.0)
    values = np.stack([t, 5 - t, np.zeros(6)], axis=1)[:, :objectives]
    assert spacing(make_front(values)) == 0
    values[5, 0] += 1
    assert spacing(make_front(values)) > 0


def test_spacing_is_schotts_by_hand() -> None:
    # nearest distances |dx| + |dy|: 2, 2, 6; mean 10/3; deviation with N - 1
    expected = math.sqrt(((2 - 10 / 3) ** 2 * 2 + (6 - 10 / 3) ** 2) / 2)
    assert spacing(make_front([[0, 4], [1, 3], [4, 0], [9, 9]])) == pytest.approx(expected)
    assert spacing(make_front([[0, 4], [4, 0]])) == 0


def test_angle_of_values_along_their_rays_is_zero() -> None:
    rays = np.array([[0.2, 0.8], [0.5, 0.5], [0.9, 0.1]])
    lengths = np.array([[3.0], [0.1], [7.0]])
    assert angle(make_front(rays * lengths, rays)) == pytest.approx(0, abs=1e-5)
    assert angle(make_front(lengths / rays, rays), alignment="inverse") == pytest.approx(
        0, abs=1e-5
    )
    assert angle(make_front(lengths / rays, rays)) > 10


def test_angle_is_in_degrees_and_averaged() -> None:
    rays = np.array([[1, 0], [1, 0], [0.5, 0.5]])
    assert angle(make_front([[0, 3], [2, 0], [0, 5]], rays)) == pytest.approx((90 + 0 + 45) / 3)
    assert angle(make_front([[0, 0], [2, 2]], [[1, 0], [1, 0]])) == pytest.approx(45)  # 0 has none
    assert math.isnan(angle(make_front([[0, 0]])))


# The ideal point


def test_the_ideal_point_is_the_best_of_every_objective() -> None:
    nan = float("nan")
    assert ideal(make_front([[0.3, 0.2], [0.5, 0.1]])).tolist() == [0.3, 0.1]
    # a value that is no number says nothing against the others of its point
    assert ideal(make_front([[0.3, 0.2], [0.5, 0.1], [nan, 0.0], [9.0, 9.0]])).tolist() == [
        0.3,
        0.0,
    ]
    assert ideal(make_front([[nan, 0.2], [0.3, nan]])).tolist() == [0.3, 0.2]
    found = ideal(make_front([[nan, 0.2], [nan, 0.1]])).tolist()
    assert found == pytest.approx([nan, 0.1], nan_ok=True)


@given(data=st.data(), objectives=st.integers(1, 8), count=st.integers(1, 6))
def test_the_volume_of_the_ideal_point_is_a_bound(
    data: st.DataObject, objectives: int, count: int
) -> None:
    values = data.draw(arrays(np.float64, (count, objectives), elements=st.floats(0, 1.9)))
    front = make_front(values)
    best = [[min(column) for column in zip(*values, strict=True)]]
    found = ideal_hypervolume(front)
    assert found == pytest.approx(moocore.hypervolume(np.array(best), ref=[2.0] * objectives))
    assert found >= hypervolume(front, how="exact") * (1 - 1e-12)


def test_single_task_networks_outside_the_reference_have_an_ideal_point_inside() -> None:
    front = make_front([[0.3, 2.3], [2.3, 0.4]])
    with pytest.warns(FrontWarning):
        assert hypervolume(front) == 0
    assert ideal_hypervolume(front) == pytest.approx(1.7 * 1.6)


@pytest.mark.parametrize("values", [[[0.0, 2.0]], [[3.0, 3.0]], [[float("nan"), 0.0]]])
def test_an_ideal_point_outside_the_reference_is_zero_in_silence(values: list[list[float]]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ideal_hypervolume(make_front(values)) == 0


# Coverage


def _dominates(one: Array, other: Array) -> bool:
    if any(math.isnan(value) for value in one):
        return False
    if any(math.isnan(value) for value in other):
        return True
    pairs = list(zip(one, other, strict=True))
    return all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)


coarse = st.sampled_from([0.0, 0.25, 0.5, 1.0, float("nan")])


@given(data=st.data(), objectives=st.integers(1, 4), counts=st.tuples(*[st.integers(1, 8)] * 2))
def test_coverage_is_counted_by_hand_and_by_moocore(
    data: st.DataObject, objectives: int, counts: tuple[int, int]
) -> None:
    one, two = (
        data.draw(arrays(np.float64, (count, objectives), elements=coarse)) for count in counts
    )
    found = coverage(make_front(one), make_front(two))
    by_hand = [any(_dominates(rival, point) for rival in two) for point in one]
    assert found == pytest.approx(sum(by_hand) / len(by_hand))
    if not (np.isnan(one).any() or np.isnan(two).any()):
        kept = [moocore.is_nondominated(np.vstack([p, two]), keep_weakly=True)[0] for p in one]
        assert found == pytest.approx(1 - np.mean(kept))


@given(values=arrays(np.float64, st.tuples(st.integers(1, 8), st.just(2)), elements=coarse))
def test_what_a_front_covers_of_itself_is_its_dominated_share(values: Array) -> None:
    values[0] = 0.5  # one point at least has no NaN
    front = make_front(values)
    assert coverage(front, front) == pytest.approx(dominated_share(front))


def test_coverage_needs_the_same_objectives() -> None:
    other = Front(np.ones((1, 2)) / 2, np.ones((1, 2)), ("loss", "gap"), np.full(2, 2.0))
    says = "`rivals` .*`front`, o0, o1, found loss, gap"
    with pytest.raises(ConfigurationError, match=says):
        coverage(make_front([[1.0, 1.0]]), other)
