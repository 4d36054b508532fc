import numpy as np
import pytest

from paretocosmos.pareto import Array
from paretocosmos.plotting import select_limits


def curve(shift: float = 0.0, points: int = 25) -> Array:
    t = np.linspace(0, 1, points)
    return np.stack([0.3 + 0.2 * t, 0.3 + 0.2 * (1 - t) ** 2], axis=1) + shift


def found(fronts: list[Array], beside: list[Array] | None = None) -> list[list[float]]:
    low, high = select_limits(fronts, beside or [], [])
    return [low.round(6).tolist(), high.round(6).tolist()]


def test_the_box_is_that_of_the_fronts() -> None:
    assert found([curve(), curve(0.1), curve(0.05, 5)]) == [[0.3, 0.3], [0.6, 0.6]]


def test_points_close_by_widen_it_and_others_do_not() -> None:
    beside = np.array([[0.25, 0.35], [0.59, 0.4], [0.63, 0.4], [2.3, 0.1], [0.1, 2.3]])
    assert found([curve()], [beside]) == [[0.25, 0.3], [0.59, 0.5]]


def test_a_method_that_failed_among_three_is_left_out_but_not_among_two() -> None:
    assert found([curve(), curve(0.01), curve(1.0)])[1] == [0.51, 0.51]
    assert found([curve(), curve(1.0)])[1] == [1.5, 1.5]


def test_a_lone_end_is_left_out_and_a_wide_front_among_narrow_ones_is_not() -> None:
    end = np.concatenate([curve(), [[2.3, 0.29]]])
    assert found([end, curve()])[1] == [0.5, 0.5]
    narrow = [0.35 + 0.05 * curve(shift) for shift in (0.0, 0.01, 0.02, 0.03)]
    assert found([curve(), *narrow])[1] == [0.5, 0.5]


def test_nothing_is_left_out_for_being_good() -> None:
    assert found([curve(), curve(0.01), curve(0.02), curve(-0.25)])[0] == [0.05, 0.05]


def test_what_must_be_seen_is_seen() -> None:
    low, high = select_limits([curve()], [], [np.array([[0.1, 0.9]]), np.empty((0, 2))])
    np.testing.assert_allclose(low, [0.1, 0.3])
    np.testing.assert_allclose(high, [0.5, 0.9])


@pytest.mark.parametrize(
    "points",
    [
        [[0.3, 0.2]],
        [[0.3, 0.2]] * 9 + [[0.3, 0.9]],
        [[0.1, 0.11, 9.0], [0.11, 9.0, 0.1], [9.0, 0.1, 0.11]],
        [[-1.0, 1.0], [1.0, -1.0]],
    ],
    ids=["one", "equal", "each far in one", "negative"],
)
def test_odd_fronts_have_limits(points: list[list[float]]) -> None:
    values = np.asarray(points)
    low, high = select_limits([values], [], [])
    np.testing.assert_array_equal(low, values.min(axis=0))
    np.testing.assert_array_equal(high, values.max(axis=0))
