"""Rows in JSON become the features that pandas and `Table.transform` give, without pandas."""

import json
import math
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paretocosmos.problems.tables.table import Table
from paretocosmos.serving._preference import read_preference
from paretocosmos.serving._refusal import RefusedError, shown
from paretocosmos.serving._rows import NumberRows
from paretocosmos.serving._table_rows import TableRows

FRAME = pd.DataFrame(
    {
        "age": [20.0, 31.5, None, 64.0],
        "pay": [1, 2, 3, 4],
        "city": ["Ulm", "Bonn", None, "Ulm"],
        "rooms": pd.Categorical([1, 2, 2, 10]),
        "old": [True, False, True, True],
    }
)
TABLE = Table.fit(FRAME)

numbers = st.none() | st.integers(-(10**6), 10**6) | st.floats(-1e6, 1e6)
rows = st.fixed_dictionaries(
    {
        "age": numbers,
        "pay": numbers,
        "city": st.none() | st.sampled_from(["Ulm", "Bonn", "Rom", "(missing)", ""]),
        "rooms": st.none() | st.sampled_from([1, 2, 2.0, 10, 7, "10", "2"]),
        "old": st.none() | st.sampled_from([True, False, "True", "no"]),
    }
)


@given(st.lists(rows, min_size=1, max_size=8))
def test_features_are_those_of_the_table(given_rows: list[dict[str, Any]]) -> None:
    sent = json.loads(json.dumps(given_rows))
    reader = TableRows(TABLE)
    read, told = reader.read(sent, most=8)
    frame = pd.DataFrame(given_rows, dtype=object)
    for name in TABLE.numeric:
        frame[name] = pd.to_numeric(frame[name])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        expected = TABLE.transform(frame)
    np.testing.assert_array_equal(reader.features(read), expected)
    assert sorted(told) == sorted(str(warning.message) for warning in caught)


def test_rows_do_not_meet() -> None:
    reader = TableRows(TABLE)
    sent = json.loads(FRAME.to_json(orient="records"))
    together, _ = reader.read(sent, most=4)
    alone = np.concatenate([reader.read(row, most=1)[0] for row in sent])
    np.testing.assert_array_equal(together, alone)
    np.testing.assert_array_equal(reader.features(together), TABLE.transform(FRAME))


GOOD: dict[str, Any] = {"age": 1, "pay": 2, "city": "Ulm", "rooms": 1, "old": False}


@pytest.mark.parametrize(
    ("inputs", "says"),
    [
        ([], "`inputs` is an object with the table's columns, or a list of such objects, found []"),
        (None, "found null"),
        ("age", "found 'age'"),
        (7, "found 7"),
        ([1, 2], "row 0 is an object with the table's columns, found 1"),
        ([GOOD, None], "row 1 is an object"),
        ([GOOD, {"age": 1}], "row 1 lacks `pay`, `city`, `rooms`, `old`: name every column"),
        ({**GOOD, "age": "1"}, "row 0 has a number or null in the column `age`, found '1'"),
        ({**GOOD, "age": [1]}, "found [1]"),
        ({**GOOD, "age": 10**400}, "fit into float64"),
        ({**GOOD, "age": math.inf}, "row 0 has no finite number in the column `age`"),
        ({**GOOD, "city": ["Ulm"]}, "row 0 has one category or null in the column `city`"),
        ({**GOOD, "city": {}}, "found {}"),
        ([GOOD] * 5, "at most 4 rows, found 5"),
    ],
)
def test_what_is_wrong_is_named(inputs: object, says: str) -> None:
    with pytest.raises(RefusedError) as refused:
        TableRows(TABLE).read(inputs, most=4)
    assert says in str(refused.value)
    assert 400 <= refused.value.status < 500


def test_a_misspelt_column_is_told() -> None:
    wrong = {key: value for key, value in GOOD.items() if key != "pay"} | {"payy": 1}
    with pytest.raises(RefusedError, match=r"row 0 lacks `pay`: .*; not known here: 'payy'"):
        TableRows(TABLE).read(wrong, most=4)


@pytest.mark.parametrize(
    "inputs",
    [
        *([], None, "a", 1, [[1, 2]], [1, 2, 3, 4, 5, 6, 7], [[[1, 2, 3]]], {"a": 1}),
        *([[[1, 2, 3], [1, 2]]], [[[1, 2, 3], [1, 2, True]]], [[[1, 2, 3], [1, 2, None]]]),
        *([[[1, 2, 3], [1, 2, "4"]]], [[[1, 2, 3], [1, 2, 10**400]]], [[[1, 2, 3], [1, 2, 1e999]]]),
        [[[1, 2, 3], [1, 2, []]]],
        [[[[1], [2], [3]], [[1], [2], [3]]]],
        [[], []],
    ],
    ids=range(17),
)
def test_numbers_have_the_shape(inputs: object) -> None:
    with pytest.raises(RefusedError) as refused:
        NumberRows((2, 3)).read(inputs, most=4)
    assert "2x3" in str(refused.value)


def test_numbers_of_one_row_or_several() -> None:
    row = [[1, 2, 3.5], [4, 5, 6]]
    for inputs, count in ((row, 1), ([row], 1), ([row, row], 2)):
        read, told = NumberRows((2, 3)).read(inputs, most=2)
        np.testing.assert_array_equal(read, np.array([row] * count))
        assert told == []
    with pytest.raises(RefusedError, match="at most 2 rows, found 3"):
        NumberRows((2, 3)).read([row] * 3, most=2)


@pytest.mark.parametrize(
    ("preference", "says"),
    [
        (None, "`preference` is a list of 2 numbers that sum to 1, found null"),
        (0.5, "found 0.5"),
        ("0.5,0.5", "found '0.5,0.5'"),
        ({"a": 1}, "is a list of 2 numbers"),
        ([], "one entry per objective, here 2 (loss, gap); found 0"),
        ([1], "one entry per objective"),
        ([0.2, 0.3, 0.5], "found 3"),
        ([True, False], "is a list of 2 numbers"),
        ([None, 1], "is a list of 2 numbers"),
        (["1", 0], "is a list of 2 numbers"),
        ([0.5, 0.6], "sums to 1, found a sum of 1.1: divide the ray by its sum"),
        ([0, 0], "found a sum of 0"),
        ([-0.5, 1.5], "entries from 0 to 1"),
        ([3, 7], "entries from 0 to 1, found [3, 7]: divide the ray by its sum"),
        ([math.inf, 0], "entries from 0 to 1"),
        ([10**400, 0], "entries from 0 to 1"),
        ([[0.5, 0.5], [0.5, 0.6]], "`preference` of row 1 sums to 1"),
        ([[0.5, 0.5], 3], "`preference` of row 1 is a list"),
        ([[0.5, 0.5], [0.5, 0.5]], "one ray for all rows or one for each, here 3; found 2"),
        ([[[0.5, 0.5]]], "is a list of 2 numbers"),
    ],
)
def test_a_preference_off_the_simplex(preference: object, says: str) -> None:
    with pytest.raises(RefusedError) as refused:
        read_preference(preference, rows=3, names=("loss", "gap"))
    assert says in str(refused.value)


def test_preferences() -> None:
    assert read_preference([0.3334, 0.6667], rows=3, names=("a", "b")).shape == (1, 2)
    assert read_preference([[1, 0]] * 3, rows=3, names=("a", "b")).shape == (3, 2)
    assert read_preference([[1, 0]], rows=3, names=("a", "b")).shape == (1, 2)


def test_what_is_shown_of_a_client_is_short() -> None:
    for value in (
        "a" * 10**6,
        [1] * 10**6,
        {str(k): 1 for k in range(10**4)},
        10**4000,
        [["a"] * 9],
    ):
        assert len(shown(value)) <= 70
