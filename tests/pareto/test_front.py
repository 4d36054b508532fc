import copy
import dataclasses
import json
import pickle
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from paretocosmos.errors import ConfigurationError, DataError
from paretocosmos.pareto import Front

RAYS = [[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]]
VALUES = [[0.1, 0.8], [0.3, 0.4], [0.6, 0.2]]


def _front(**changes: Any) -> Front:
    given: dict[str, Any] = {
        "rays": RAYS,
        "values": VALUES,
        "names": ("loss", "gap"),
        "reference": (2, 2),
        "metrics": {"accuracy": [0.9, 0.8, 0.7]},
        "split": "val",
        "provenance": {"seed": 1, "method": "cosmos"},
    }
    return Front(**{**given, **changes})


def test_arrays_come_as_float64_from_lists_tensors_and_arrays() -> None:
    for kind in (list, np.array, torch.tensor):
        front = _front(rays=kind(RAYS), values=kind(VALUES), reference=kind([2, 2]))
        assert front.values.dtype == front.rays.dtype == front.reference.dtype == np.float64
        np.testing.assert_allclose(front.values, VALUES, rtol=1e-7)
    assert len(front) == 3
    assert front.objectives == 2
    assert front.names == ("loss", "gap")


def test_nothing_in_a_front_can_be_changed() -> None:
    front = _front()
    for array in (front.rays, front.values, front.reference, front.metrics["accuracy"]):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    for field in dataclasses.fields(front):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(front, field.name, None)
    for mapping in (front.metrics, front.provenance):
        with pytest.raises(TypeError):
            mapping["new"] = 1


def test_what_was_handed_over_is_copied_and_left_writeable() -> None:
    values, metrics, provenance = np.array(VALUES), {"m": np.ones(3)}, {"seed": 1}
    front = _front(values=values, metrics=metrics, provenance=provenance)
    values[:] = 0
    metrics["m"][:] = 0
    metrics["other"] = np.ones(3)
    provenance["seed"] = 2
    np.testing.assert_array_equal(front.values, VALUES)
    assert front.metrics["m"].tolist() == [1, 1, 1]
    assert list(front.metrics) == ["m"]
    assert front.provenance["seed"] == 1


floats = st.floats(allow_nan=False, allow_infinity=False)


@given(data=st.data(), count=st.integers(1, 6), objectives=st.integers(1, 4))
def test_json_comes_back_bit_for_bit(data: st.DataObject, count: int, objectives: int) -> None:
    shape = (count, objectives)
    values = data.draw(arrays(np.float64, shape, elements=floats | st.just(float("nan"))))
    metric = data.draw(arrays(np.float64, count, elements=floats | st.just(float("nan"))))
    front = Front(
        rays=data.draw(arrays(np.float64, shape, elements=floats)),
        values=values,
        names=tuple(f"o{j}" for j in range(objectives)),
        reference=data.draw(arrays(np.float64, objectives, elements=floats)),
        metrics={"m": metric},
        provenance={"note": data.draw(st.text())},
    )
    back = Front.from_json(front.to_json())
    for one, two in (
        (back.rays, front.rays),
        (back.values, values),
        (back.reference, front.reference),
        (back.metrics["m"], metric),
    ):
        # as integers: every bit, so that -0.0 differs from 0.0; NaN by place
        exists = ~np.isnan(two)
        np.testing.assert_array_equal(np.isnan(one), ~exists)
        np.testing.assert_array_equal(one[exists].view(np.int64), two[exists].view(np.int64))
    assert back == front
    assert (back.names, back.split) == (front.names, front.split)
    assert dict(back.provenance) == dict(front.provenance)


def test_json_has_the_documented_keys_and_no_nan() -> None:
    content = json.loads(_front(metrics={"gap": [float("nan"), 1, 2]}).to_json())
    assert set(content) == {
        *("rays", "values", "names", "reference", "metrics", "split", "provenance")
    }
    assert content["metrics"]["gap"] == [None, 1.0, 2.0]
    assert content["values"] == VALUES


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda f: pickle.loads(pickle.dumps(f))]
)
def test_a_front_can_be_copied_and_pickled(copied: Any) -> None:
    front = _front(metrics={"m": [float("nan"), float("inf"), 1.0]})
    again = copied(front)
    assert again == front
    np.testing.assert_array_equal(again.metrics["m"], front.metrics["m"])
    assert not again.values.flags.writeable


@pytest.mark.parametrize(
    "change",
    [
        {"values": [[0.1, 0.8], [0.3, 0.4], [0.6, np.nextafter(0.2, 1)]]},
        {"rays": [[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]]},
        {"names": ("loss", "other")},
        {"reference": (2, 3)},
        {"metrics": {}},
        {"split": "test"},
        {"provenance": {}},
    ],
)
def test_equality_sees_every_field(change: dict[str, Any]) -> None:
    assert _front() == _front()
    assert _front(**change) != _front()


def test_a_front_equals_nothing_else_and_has_no_hash() -> None:
    assert _front() != _front().to_dict()
    with pytest.raises(TypeError, match="unhashable"):
        hash(_front())


# Domination


def _dominated(values: np.ndarray, index: int) -> bool:
    """By the definition: some point is nowhere worse and somewhere better."""
    return any(
        all(a <= b for a, b in zip(other, values[index], strict=True))
        and any(a < b for a, b in zip(other, values[index], strict=True))
        for other in values
    )


# few distinct numbers: ties and duplicates in most examples
coarse = st.integers(0, 4).map(float)


@given(data=st.data(), count=st.integers(1, 14), objectives=st.integers(1, 4))
def test_non_dominated_is_the_definition(data: st.DataObject, count: int, objectives: int) -> None:
    values = data.draw(arrays(np.float64, (count, objectives), elements=coarse))
    front = Front(
        rays=np.arange(float(count * objectives)).reshape(count, objectives),
        values=values,
        names=tuple("abcd"[:objectives]),
        reference=np.full(objectives, 9.0),
        metrics={"index": np.arange(float(count))},
    )
    expected = [not _dominated(values, i) for i in range(count)]
    assert front.non_dominated.tolist() == expected
    kept = front.filter()
    assert kept.metrics["index"].tolist() == [i for i in range(count) if expected[i]]
    np.testing.assert_array_equal(kept.values, values[expected])
    np.testing.assert_array_equal(kept.rays, front.rays[expected])
    assert kept.filter() == kept


def test_duplicates_all_count() -> None:
    front = _front(values=[[1, 1], [1, 1], [1, 2]])
    assert front.non_dominated.tolist() == [True, True, False]


def test_filter_keeps_what_is_not_per_ray() -> None:
    kept = _front(values=[[1, 1], [2, 2], [0, 3]]).filter()
    assert len(kept) == 2
    assert (kept.names, kept.split, dict(kept.provenance)) == (
        ("loss", "gap"),
        "val",
        {"seed": 1, "method": "cosmos"},
    )
    assert kept.metrics["accuracy"].tolist() == [0.9, 0.7]


def test_a_value_that_does_not_exist_dominates_nothing() -> None:
    nan = float("nan")
    front = _front(values=[[nan, 0.0], [0.3, 0.4], [0.2, 0.5]])
    assert front.non_dominated.tolist() == [False, True, True]


@pytest.mark.parametrize(
    ("which", "rows"),
    [
        ([2], [2]),
        ([2, 0], [2, 0]),
        ([-1], [2]),
        ([True, False, True], [0, 2]),
        (range(3), [0, 1, 2]),
    ],
    ids=["one", "two", "last", "mask", "all"],
)
def test_some_points_are_taken_with_all_that_is_theirs(which: Any, rows: list[int]) -> None:
    front = _front()
    part = front.take(which)
    assert part.rays.tolist() == [RAYS[row] for row in rows]
    assert part.values.tolist() == [VALUES[row] for row in rows]
    assert part.metrics["accuracy"].tolist() == [[0.9, 0.8, 0.7][row] for row in rows]
    rest = ("names", "split", "provenance")
    assert all(getattr(part, name) == getattr(front, name) for name in rest)
    assert part.reference.tolist() == [2, 2]
    assert len(front) == 3


@pytest.mark.parametrize("which", [0, [False] * 3], ids=["no list", "nothing"])
def test_at_least_one_is_taken(which: Any) -> None:
    with pytest.raises(ConfigurationError, match="with N >= 1"):
        _front().take(which)


def test_joined_points_follow_each_other() -> None:
    front = _front()
    parts = [front.take([row]) for row in range(3)]
    assert parts[0].join(*parts[1:]) == front
    assert front.join() == front
    assert parts[2].join(parts[0], parts[2]) == front.take([2, 0, 2])
    others = _front(provenance={"seed": 2})
    assert dict(front.join(others).provenance) == {"seed": 1, "method": "cosmos"}  # the first's


@pytest.mark.parametrize(
    "change",
    [
        {"names": ("loss", "bias")},
        {"split": "test"},
        {"metrics": {}},
        {"metrics": {"error": [0.1, 0.2, 0.3]}},
        {"reference": (2, 3)},
    ],
    ids=["names", "split", "no metrics", "other metrics", "reference"],
)
def test_what_does_not_belong_together_is_not_joined(change: dict[str, Any]) -> None:
    for one, two in ((_front(), _front(**change)), (_front(**change), _front())):
        with pytest.raises(ConfigurationError, match="same objectives, reference"):
            one.join(two)


# Mistakes


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"values": VALUES[:2]}, r"found \(3, 2\) and \(2, 2\)"),
        ({"rays": [], "values": []}, "with N >= 1"),
        ({"rays": np.zeros((0, 2)), "values": np.zeros((0, 2))}, "with N >= 1"),
        ({"rays": [1, 2], "values": [1, 2]}, r"one shape \[N, J\]"),
        ({"names": ("loss",)}, "here 2; found 1"),
        ({"reference": 2}, r"found 2 and shape \(\)"),
        ({"reference": (2, 2, 2)}, r"shape \(3,\)"),
        ({"metrics": {"good": [1, 2, 3], "bad": [1, 2]}}, r"`bad` .* here 3; found shape \(2,\)"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(change: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        _front(**change)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "not JSON"),
        ("[]", "not a front"),
        ("{}", "`rays` is missing.*values"),
        (json.dumps({**_front().to_dict(), "values": [[1, 2]]}), "not a front"),
        (json.dumps({**_front().to_dict(), "values": "text"}), "not a front"),
        (json.dumps({**_front().to_dict(), "names": None}), "not a front"),
        (json.dumps({**_front().to_dict(), "metrics": [1]}), "not a front"),
    ],
)
def test_what_is_no_front_is_one_sentence(text: str, says: str) -> None:
    with pytest.raises(DataError, match=says):
        Front.from_json(text)
