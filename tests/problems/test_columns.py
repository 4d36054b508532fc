"""What columns hold: numbers and dates that arrive as text, cells that are neither, identifiers."""

import datetime
import warnings
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

from paretocosmos.errors import DataWarning
from paretocosmos.problems.tables import (
    TabularProblem,
    drop_identifiers,
    find_identifiers,
    read_columns,
)


def read(values: Any, **given: Any) -> "pd.Series[Any]":
    return read_columns(pd.DataFrame({"a": values}), as_they_are=(), **given)["a"]


class TestNumbers:
    @pytest.mark.parametrize(
        "values",
        [
            ["1", "2.5", " 3e2 ", "-4"],
            pd.Series(["1", "2.5", "300", "-4"], dtype="string"),
            pd.Series([1, 2.5, 300.0, -4], dtype=object),
            pd.Series([Decimal(1), Decimal("2.5"), 300, -4], dtype=object),
            pd.Series(["1", 2.5, "300", -4], dtype=object),
        ],
    )
    def test_text_and_objects_that_are_numbers(self, values: Any) -> None:
        with warnings.catch_warnings(action="error"):
            assert read(values).tolist() == [1.0, 2.5, 300.0, -4.0]

    def test_wrong_cells_are_counted_and_missing(self) -> None:
        values = [str(k) for k in range(100)]
        values[16], values[40], values[41] = "twelve", "12k", "?"
        told = r"`a` has 2 cells without a number, counted as missing, such as `twelve` in row 17"
        with pytest.warns(DataWarning, match=told):
            found = read(values)
        expected = pd.to_numeric(pd.Series(values), errors="coerce")
        np.testing.assert_array_equal(found, expected)

    @pytest.mark.parametrize(
        "values",
        [
            ["red", "green", "3"],
            ["1"] * 90 + ["many"] * 10,
            ["01234", "09999", "10115"],
            [True, False, None],
            pd.Categorical(["1", "2", "1"]),
            [None, None, None],
            ["3/4/2024", "12/11/2023"],
        ],
    )
    def test_what_stays_as_it_is(self, values: Any) -> None:
        frame = pd.DataFrame({"a": values})
        with warnings.catch_warnings(action="error"):
            pd.testing.assert_frame_equal(read_columns(frame, as_they_are=()), frame)

    def test_a_column_can_be_left_alone(self) -> None:
        frame = pd.DataFrame({"a": ["1", "2"], "b": ["1", "2"]})
        found = read_columns(frame, as_they_are=["a"])
        assert found["a"].tolist() == ["1", "2"]
        assert found["b"].tolist() == [1.0, 2.0]
        assert frame["b"].tolist() == ["1", "2"]


class TestDates:
    @pytest.mark.parametrize(
        "values",
        [
            ["1970-01-02", "1971-01-01", "1969-12-31"],
            ["1970-01-02T00:00:00Z", "1971-01-01 00:00", "1969-12-31"],
            pd.to_datetime(["1970-01-02", "1971-01-01", "1969-12-31"]),
            pd.to_datetime(["1970-01-02", "1971-01-01", "1969-12-31"], utc=True),
            [datetime.date(1970, 1, 2), datetime.date(1971, 1, 1), datetime.date(1969, 12, 31)],
            pd.PeriodIndex(["1970-01-02", "1971-01-01", "1969-12-31"], freq="D"),
            pd.to_timedelta([1, 365, -1], unit="D"),
        ],
    )
    def test_days(self, values: Any) -> None:
        with pytest.warns(DataWarning, match="`a` holds dates, read as days since 1970-01-01"):
            assert read(values).tolist() == [1.0, 365.0, -1.0]


class TestIdentifiers:
    def test_what_names_rows(self) -> None:
        draw = np.random.default_rng(0)
        frame = pd.DataFrame(
            {
                "Unnamed: 0": draw.permutation(200),
                "customer_id": draw.choice(10**6, 200, replace=False),
                "when": np.cumsum(draw.integers(1, 50, 200)),
                "name": [f"n{k}" for k in range(200)],
                "remark": [f"n{k % 120}" for k in range(200)],
            }
        )
        assert list(find_identifiers(frame)) == list(frame.columns)

    def test_what_describes_them(self) -> None:
        draw = np.random.default_rng(0)
        frame = pd.DataFrame(
            {
                "income": draw.choice(10**6, 200, replace=False),  # all differ, and in no order
                "age": draw.integers(18, 90, 200),
                "score": draw.normal(size=200),
                "city": draw.choice(list("abcdefgh"), 200),
                "paid": [1, 2] * 100,
            }
        )
        assert find_identifiers(frame) == {}

    def test_left_out_and_said(self) -> None:
        frame = pd.DataFrame({"id": range(100), "x": [1.0, 2.0] * 50})
        with pytest.warns(DataWarning, match=r"`id` \(a whole number .*\) names rows .*`keep`"):
            assert list(drop_identifiers(frame, keep=())) == ["x"]
        with warnings.catch_warnings(action="error"):
            assert list(drop_identifiers(frame, keep=["id"])) == ["id", "x"]


def loans() -> pd.DataFrame:
    draw = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "id": range(300),
            "income": draw.integers(1000, 9000, 300).astype(str),
            "joined": ["2020-01-01", "2021-06-30", "1999-12-31"] * 100,
            "sex": draw.choice(["f", "m"], 300),
            "paid": draw.choice(["no", "yes"], 300),
        }
    )


class TestProblem:
    def test_the_whole_way(self) -> None:
        frame = loans()
        frame.loc[7, "income"] = "a lot"
        with pytest.warns(DataWarning) as told:
            problem = TabularProblem.from_frame(frame, target="paid", sensitive="sex")
        assert problem.table.columns == ("income", "joined")
        said = " ".join(str(one.message) for one in told)
        assert all(part in said for part in ("`a lot` in row 8", "`joined` holds dates", "`id` (a"))

    def test_new_rows_may_arrive_as_text(self) -> None:
        with pytest.warns(DataWarning):
            problem = TabularProblem.from_frame(loans(), target="paid", sensitive="sex")
        rows = pd.DataFrame({"income": ["4000", 4000], "joined": ["2020-01-01"] * 2}, dtype=object)
        same = pd.DataFrame({"income": [4000.0] * 2, "joined": pd.to_datetime(["2020-01-01"] * 2)})
        np.testing.assert_array_equal(problem.inputs_for(rows), problem.inputs_for(same))

    def test_the_paper_s_protocol_reads_as_the_paper_does(self) -> None:
        frame = loans().drop(columns=["income", "joined"])
        problem = TabularProblem.from_frame(frame, target="paid", sensitive="sex", protocol="paper")
        assert problem.table.columns == ("id",)
