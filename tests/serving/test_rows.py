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
from starlette.exceptions import HTTPException

from paretocosmos.problems.tables import Table
from paretocosmos.runs.run import PredictsAt
from paretocosmos.serving.request_body import parse_body, shorten_json
from paretocosmos.serving.schemas import NumberRows, Numbers, Rows, TableRows, make_question_model

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


def asked(
    rows: Rows, inputs: object, *, most: int = 4, preference: object = (1, 0)
) -> tuple[Numbers, list[str], list[list[float]]]:
    """What a body says: rows, warnings, rays."""
    default = PredictsAt(None, 0.5)
    model = make_question_model(rows, names=("loss", "gap"), most=most, default=default)
    body = json.dumps({"inputs": inputs, "preference": preference}).replace("Infinity", "1e999")
    found = parse_body(model, body.encode(), columns=rows.columns)
    return *rows.to_numbers(found.inputs), found.preference


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
    reader = TableRows(TABLE)
    read, told, _ = asked(reader, given_rows, most=8)
    frame = pd.DataFrame(given_rows, dtype=object)
    for name in TABLE.numeric:
        frame[name] = pd.to_numeric(frame[name])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        expected = TABLE.transform(frame)
    np.testing.assert_array_equal(reader.to_features(read), expected)
    assert sorted(told) == sorted(str(warning.message) for warning in caught)


def test_rows_do_not_meet() -> None:
    reader = TableRows(TABLE)
    sent = json.loads(FRAME.to_json(orient="records"))
    together, _, _ = asked(reader, sent)
    alone = np.concatenate([asked(reader, row, most=1)[0] for row in sent])
    np.testing.assert_array_equal(together, alone)
    np.testing.assert_array_equal(reader.to_features(together), TABLE.transform(FRAME))


GOOD: dict[str, Any] = {"age": 1, "pay": 2, "city": "Ulm", "rooms": 1, "old": False}


@pytest.mark.parametrize(
    ("inputs", "says"),
    [
        ([], "`inputs` must be an object with the table's columns, or a list of such objects"),
        ("age", 'found "age"'),
        ([1, 2], "a list of such objects, found 1 in row 0"),
        ([GOOD, None], "found null in row 1"),
        ([GOOD, {"age": 1}], "row 1 lacks `pay`: name every column"),
        (
            {**GOOD, "age": "1"},
            'row 0 needs a finite number or null in the column `age`, found "1"',
        ),
        ({**GOOD, "age": 10**400}, "row 0 needs a finite number or null in the column `age`"),
        ({**GOOD, "age": math.inf}, "in the column `age`, found Infinity"),
        ({**GOOD, "city": ["Ulm"]}, "row 0 needs one category or null in the column `city`"),
        ([GOOD] * 5, "at most 4 rows, found 5"),
    ],
)
def test_what_is_wrong_is_named(inputs: object, says: str) -> None:
    with pytest.raises(HTTPException) as refused:
        asked(TableRows(TABLE), inputs)
    assert says in refused.value.detail
    assert 400 <= refused.value.status_code < 500


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
    with pytest.raises(HTTPException) as refused:
        asked(NumberRows((2, 3)), inputs)
    assert "2x3" in refused.value.detail


def test_numbers_of_one_row_or_several() -> None:
    row = [[1, 2, 3.5], [4, 5, 6]]
    for inputs, count in ((row, 1), ([row], 1), ([row, row], 2)):
        read, told, _ = asked(NumberRows((2, 3)), inputs, most=2)
        np.testing.assert_array_equal(read, np.array([row] * count))
        assert told == []
    with pytest.raises(HTTPException, match="at most 2 rows, found 3"):
        asked(NumberRows((2, 3)), [row] * 3, most=2)


RULE = (
    "`preference` must be one ray for all rows or one for each, 2 numbers from 0 to 1 that sum to "
    "1 "
    "(loss, gap), found "
)


@pytest.mark.parametrize(
    ("preference", "found"),
    [
        (0.5, "0.5 in row 0"),
        ("0.5,0.5", '"0.5,0.5" in row 0'),
        ([], "[] in row 0"),
        ([0.2, 0.3, 0.5], "[0.2, 0.3, 0.5] in row 0"),
        ([True, False], "true in row 0"),
        (["1", 0], '"1" in row 0'),
        ([0.5, 0.6], "[0.5, 0.6] in row 0"),
        ([-0.5, 1.5], "-0.5 in row 0"),
        ([math.inf, 0], "Infinity in row 0"),
        ([10**400, 0], f"1{'0' * 59}... in row 0"),
        ([[0.5, 0.5], [0.5, 0.6]], "[0.5, 0.6] in row 1"),
        ([[[0.5, 0.5]]], "[0.5, 0.5] in row 0"),
    ],
)
def test_a_preference_off_the_simplex(preference: object, found: str) -> None:
    with pytest.raises(HTTPException) as refused:
        asked(TableRows(TABLE), [GOOD] * 3, preference=preference)
    assert refused.value.detail == RULE + found


def test_preferences() -> None:
    for given_rays, count in (([0.3334, 0.6667], 1), ([[1, 0]] * 3, 3), ([[1, 0]], 1)):
        *_, rays = asked(TableRows(TABLE), [GOOD] * 3, preference=given_rays)
        assert np.array(rays).shape == (count, 2)


def test_what_is_shown_of_a_client_is_short() -> None:
    for value in (
        "a" * 10**6,
        [1] * 10**6,
        {str(k): 1 for k in range(10**4)},
        10**4000,
        [["a"] * 9],
    ):
        assert len(shorten_json(value)) <= 70
