"""Which point of a front is chosen: literal definitions, and what is refused."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paretocosmos import Front
from paretocosmos.errors import ConfigurationError, InfeasibleError
from paretocosmos.pareto import Criteria, CriteriaOptions, find_neighbours

RAYS = [[0.9, 0.1], [0.7, 0.3], [0.5, 0.5], [0.3, 0.7], [0.1, 0.9]]
# convex, and its fourth point is dominated by the third
VALUES = [[0.10, 0.90], [0.20, 0.50], [0.40, 0.20], [0.50, 0.30], [0.90, 0.10]]
ACCURACY = [0.90, 0.80, 0.85, 0.70, 0.50]


def front(metrics: Mapping[str, Any] | None = None, values: Any = VALUES) -> Front:
    given = {"accuracy": ACCURACY} if metrics is None else metrics
    return Front(RAYS, values, ("loss", "gap"), (2, 2), given, split="val")


@pytest.mark.parametrize(
    ("criteria", "place"),
    [
        ({"max": {"gap": 0.5}}, 1),  # the smallest loss that keeps it, on the edge
        ({"max": {"gap": 0.49}}, 2),
        ({"max": {"loss": 0.45}}, 2),  # the loss is bounded, so the gap is minimised
        ({"max": {"gap": 0.5}, "maximize": "accuracy"}, 2),
        ({"max": {"gap": 0.5}, "min": {"accuracy": 0.82}}, 2),
        ({"min": {"accuracy": 0.75}, "minimize": "gap"}, 2),
        ({"max": {"gap": 0.5, "loss": 0.45}}, 1),  # both are bounded: the first is minimised
        ({"maximize": "accuracy"}, 0),
        ({"near": {"accuracy": 0.71}}, 3),
        ({"near": [0.85, 0.1]}, 4),
        ({"near": {"loss": 0.22, "gap": 0.5}, "max": {"gap": 0.4}}, 3),
        ({"weights": [1, 0]}, 0),
        ({"weights": [0, 1]}, 4),
        ({"knee": True}, 2),
        ({"knee": True, "max": {"loss": 0.3}}, 1),
    ],
)
def test_by_hand(criteria: dict[str, Any], place: int) -> None:
    point = front().choose(**criteria)
    assert point.ray == tuple(RAYS[place])
    assert list(point.values.values()) == VALUES[place]
    assert point["accuracy"] == ACCURACY[place]
    assert point.split == "val"


@given(
    st.lists(
        st.tuples(*[st.floats(0.01, 1).map(lambda v: round(v, 3))] * 2), min_size=2, max_size=12
    ),
    st.floats(0.05, 1),
    st.tuples(*[st.floats(0.01, 1)] * 2),
)
def test_the_definitions_literally(
    values: list[tuple[float, float]], bound: float, weights: tuple[float, float]
) -> None:
    rays = [[0.5, 0.5]] * len(values)
    some = Front(rays, values, ("loss", "gap"), (2, 2))
    kept = [v for v in values if v[1] <= bound]
    if kept:
        assert some.choose(max={"gap": bound})["loss"] == min(kept)[0]
    else:
        with pytest.raises(
            InfeasibleError, match=f"the closest has `gap` {min(values, key=lambda v: v[1])[1]:.4g}"
        ):
            some.choose(max={"gap": bound})

    best = [v for v in values if not any(o[0] <= v[0] and o[1] <= v[1] and o != v for o in values)]
    low = [min(v[j] for v in best) for j in range(2)]
    high = [max(v[j] for v in best) for j in range(2)]
    wide = [(h - b) or 1 for h, b in zip(high, low, strict=True)]

    def scaled(v: Any) -> list[float]:
        return [(v[j] - low[j]) / wide[j] for j in range(2)]

    knee = tuple(some.choose(knee=True).values.values())
    assert knee in best
    assert sum(scaled(knee)) == pytest.approx(min(sum(scaled(v)) for v in best))

    def off(v: Any) -> float:  # of Deb's pseudo-weights, from those wished for
        parts = [1 - part for part in scaled(v)]
        shares = [part / (sum(parts) or 1) for part in parts]
        return math.dist(shares, [w / sum(weights) for w in weights])

    found = tuple(some.choose(weights=weights).values.values())
    assert found in best
    assert off(found) == pytest.approx(min(off(v) for v in best))


def test_the_knee_of_a_quarter_circle_is_in_its_middle() -> None:
    angle = np.linspace(0, np.pi / 2, 101)
    values = 1 - np.stack([np.sin(angle), np.cos(angle)], axis=1)
    rays = np.stack([np.cos(angle) ** 2, np.sin(angle) ** 2], axis=1)
    point = Front(rays, values, ("a", "b"), np.array([2, 2])).choose(knee=True)
    assert point["a"] == pytest.approx(1 - math.sqrt(0.5))


@pytest.mark.parametrize(
    ("name", "numbers"),
    [("positive_rate", [0.3, 0.2, 0, 0.1, 1]), ("largest_share", [0.8, 0.5, 1, 0.6, 1])],
)
def test_a_constant_classifier_is_never_chosen_silently(name: str, numbers: list[float]) -> None:
    some = front({name: numbers})
    assert some.choose(max={"gap": 0.3}).ray == (0.3, 0.7)  # the better one gives all the same
    assert some.choose(max={"gap": 0.3}, allow_constant=True).ray == (0.5, 0.5)
    says = r"only a constant classifier has `gap` at most 0\.25 .* the others has `gap` 0\.3,"
    with pytest.raises(InfeasibleError, match=says):
        some.choose(max={"gap": 0.25})
    assert some.choose(max={"gap": 0.25}, allow_constant=True).ray == (0.5, 0.5)
    with pytest.raises(InfeasibleError, match=r"constant classifier.*val"):
        front({name: [1.0] * 5}).choose(knee=True)


def test_how_close_one_can_get() -> None:
    says = (
        r"no ray has `gap` at most 0\.05 on val: the closest has `gap` 0\.1, at the ray 0\.1,0\.9;"
    )
    with pytest.raises(InfeasibleError, match=says) as told:
        front().choose(max={"gap": 0.05})
    assert "\n" not in str(told.value)
    both = (
        r"`gap` at most 0\.15 and `accuracy` at least 0\.8 on val: the closest has `gap` 0\.2 and"
    )
    with pytest.raises(InfeasibleError, match=both):
        front().choose(max={"gap": 0.15}, min={"accuracy": 0.8})


def test_one_constant_target_of_several_is_enough() -> None:
    some = front({"largest_share_a": [0.8, 0.5, 1, 0.6, 0.7], "largest_share_b": [0.5] * 5})
    assert some.choose(max={"gap": 0.3}).ray == (0.3, 0.7)


def test_dominated_points_have_no_knee() -> None:
    # the one dominated point alone keeps it
    with pytest.raises(InfeasibleError, match=r"dominated.*knee"):
        front({"m": [0, 0, 0, 1, 0]}).choose(knee=True, min={"m": 1})
    assert front({"m": [0, 0, 0, 1, 0]}).choose(min={"m": 1}).ray == (0.3, 0.7)


def test_what_is_not_a_number_is_not_chosen() -> None:
    some = front({"auc": [math.nan, math.nan, 0.7, math.nan, 0.6]})
    assert some.choose(maximize="auc").ray == (0.5, 0.5)
    assert some.choose(min={"auc": 0}).ray == (0.5, 0.5)
    with pytest.raises(InfeasibleError, match=r"no ray has a number.*val"):
        front({"auc": [math.nan] * 5}).choose(maximize="auc")
    values = np.array(VALUES)
    values[2, 0] = math.nan
    assert front(values=values).choose(knee=True).ray == (0.7, 0.3)


@pytest.mark.parametrize(
    ("criteria", "says"),
    [
        ({}, "what to choose by"),
        ({"knee": True, "weights": [1, 1]}, "`knee` and `weights`"),
        ({"minimize": "loss", "maximize": "accuracy"}, "`minimize` and `maximize`"),
        ({"max": {"gpa": 1}}, "`gpa`.*`gap`"),
        ({"near": {"precision": 1}}, "unknown .*`precision`"),
        ({"minimize": "los"}, "did you mean `loss`"),
        ({"max": {"gap": "2%"}}, "`max` of `gap`.*'2%'"),
        ({"max": {"gap": math.nan}}, "`max` of `gap`.*nan"),
        ({"weights": [1, 2, 3]}, r"here 2 \(loss, gap\)"),
        ({"weights": [1, -1]}, "not all 0"),
        ({"weights": [0, 0]}, "not be negative"),
        ({"near": [1]}, "`near`.*per objective"),
        ({"near": {}}, "`near`.*at least one"),
        ({"weights": 0.5}, r"`weights`.*found 0\.5"),
        ({"weights": ["a", "b"]}, "`weights`.*per objective"),
        ({"weights": [None, 1]}, "`weights`.*per objective"),
        ({"max": "gap"}, "`max`.*by name"),
    ],
)
def test_a_wish_that_cannot_be_is_one_sentence(criteria: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says) as told:
        front().choose(**criteria)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("name", ["tpr_gap", "accuracy", "misclassification", "recall_no"])
def test_a_share_above_1_was_meant_in_percent(name: str) -> None:
    some = front({name: np.linspace(0.1, 0.9, len(VALUES))})
    for role in ("max", "min", "near"):
        with pytest.raises(ConfigurationError, match=rf"`{role}` of `{name}`.*did you mean 0\.025"):
            some.choose(**{role: {name: 2.5}})  # type: ignore[arg-type]
    assert some.choose(max={name: 1}).ray == some.choose(max={name: math.inf}).ray


def test_a_loss_may_be_bounded_by_any_number() -> None:
    some = front({"rmse": np.linspace(100, 900, len(VALUES))})
    assert some.choose(max={"rmse": 350.0}, maximize="rmse")["rmse"] == 300
    assert some.choose(max={"loss": 2}).ray == some.choose(max={"loss": math.inf}).ray


def test_arrays_are_numbers_too() -> None:
    assert front().choose(max={"gap": np.float32(0.5)}).ray == (0.7, 0.3)  # type: ignore[dict-item]
    assert front().choose(weights=np.array([1.0, 0.0])).ray == (0.9, 0.1)  # type: ignore[arg-type]
    assert front().choose(near=np.array([0.85, 0.1])).ray == (0.1, 0.9)  # type: ignore[arg-type]


def test_neighbours_lie_on_every_side() -> None:
    rays = np.array(RAYS)
    assert [place for _, place in find_neighbours(rays, 2)] == [1, 3]
    assert [place for _, place in find_neighbours(rays, 0)] == [
        None,
        1,
    ]  # the corner comes before it
    assert find_neighbours(rays, 0)[0][0].tolist() == [1, 0]
    three = np.array([[1, 1, 1], [2, 1, 1], [1, 2, 1], [1, 1, 2], [8, 1, 1]]) / [
        [3],
        [4],
        [4],
        [4],
        [10],
    ]
    assert {place for _, place in find_neighbours(three, 0)} >= {1, 2, 3}
    assert len(find_neighbours(three, 0)) == 4


def test_a_point_is_plain_when_asked() -> None:
    point = front().choose(knee=True)
    point = dataclasses.replace(point, intervals={"gap": (0.1, math.nan)})
    plain = point.to_dict()
    assert plain["values"] == {"loss": 0.4, "gap": 0.2}
    assert plain["intervals"] == {"gap": [0.1, None]}
    with pytest.raises(ConfigurationError, match="did you mean `gap`"):
        point["gab"]


def test_every_criterion_is_a_keyword_of_choose_and_no_other() -> None:
    keywords = {one.name for one in dataclasses.fields(Criteria)}
    assert keywords == CriteriaOptions.__annotations__.keys()
    with pytest.raises(ConfigurationError, match="minimise"):
        front().choose(minimise="loss")  # type: ignore[call-arg]
    with pytest.raises(ConfigurationError, match=r"`confidence`.*`Run\.choose`"):
        front().choose(max={"gap": 0.5}, confidence=0.9)
    assert front().choose(max={"gap": 0.5}, min=None) == front().choose(max={"gap": 0.5})


def test_a_wish_does_not_change_afterwards() -> None:
    bounds = {"gap": 0.5}
    criteria = Criteria(max=bounds)
    bounds["gap"] = 0
    assert criteria.max == {"gap": 0.5}
