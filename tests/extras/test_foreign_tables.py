"""Tables of others: Parquet files, frames of polars."""

import datetime
import decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from paretocosmos.errors import DataError
from paretocosmos.estimators import ParetoClassifier
from paretocosmos.problems.tables import TabularProblem, read_table, to_frame

polars = pytest.importorskip("polars")
pytest.importorskip("pyarrow")
few: dict[str, Any] = {"epochs": 2, "random_state": 0}


def people() -> pd.DataFrame:
    draw = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": draw.integers(18, 90, 300),
            "pay": draw.normal(3000, 500, 300),
            "city": draw.choice(["Zürich", "Bern"], 300),
            "sex": draw.choice(["f", "m"], 300),
            "paid": draw.choice([False, True], 300),
        }
    )


def test_parquet_is_the_same_table(tmp_path: Path) -> None:
    people().to_parquet(tmp_path / "a.parquet")
    pd.testing.assert_frame_equal(read_table(tmp_path / "a.parquet"), people())


def test_a_named_index_is_a_column(tmp_path: Path) -> None:
    people().set_index("age").to_parquet(tmp_path / "a.pq")
    pd.testing.assert_frame_equal(read_table(tmp_path / "a.pq"), people())


def test_no_parquet(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"age,pay\n1,2\n")
    with pytest.raises(DataError, match=r"cannot be read .*write it again as Parquet"):
        read_table(tmp_path / "a.parquet")


def test_other_types_are_read_as_pandas_does(tmp_path: Path) -> None:
    mixed = people().assign(
        when=pd.Timestamp("2024-02-03"),
        kind=pd.Categorical(people()["city"]),
        exact=pd.Series([decimal.Decimal("1.5")] * 300),
        nothing=None,
    )
    mixed.to_parquet(tmp_path / "a.parquet")
    expected = pd.read_parquet(tmp_path / "a.parquet")
    pd.testing.assert_frame_equal(read_table(tmp_path / "a.parquet"), expected)


def test_polars_frames_are_read_as_pandas_ones() -> None:
    columns = {"target": "paid", "sensitive": "sex"}
    plain = TabularProblem.from_frame(people(), **columns)  # type: ignore[arg-type]
    foreign = polars.from_pandas(people())
    found = TabularProblem.from_frame(foreign, **columns)  # type: ignore[arg-type]
    assert found.table == plain.table
    text = TabularProblem.from_frame(
        foreign.cast(polars.String),
        positive="true",
        **columns,  # type: ignore[arg-type]
    )
    assert text.table.columns == plain.table.columns


def test_types_of_polars() -> None:
    day = datetime.date(2020, 1, 1)
    frame = polars.DataFrame({"n": [1, None], "t": ["a", None], "d": [day, None]})
    found = to_frame(frame)
    assert found["n"].tolist()[0] == 1.0
    assert found.isna().sum().tolist() == [1, 1, 1]
    assert found["d"][0] == day


def test_an_estimator_takes_them() -> None:
    frame = people()
    x, y, sex = frame[["age", "pay", "city"]], frame["paid"], frame["sex"]
    plain = ParetoClassifier(**few).fit(x, y, sensitive=sex)
    foreign = polars.from_pandas(x)
    text = foreign.with_columns(polars.col("age").cast(polars.String))
    for rows in (foreign, text):
        found = ParetoClassifier(**few).fit(
            rows, polars.Series(y.tolist()), sensitive=polars.Series(sex.tolist())
        )
        assert found.feature_names_in_.tolist() == ["age", "pay", "city"]
        answers = found.predict_proba(rows, preference=[0.5, 0.5])
        np.testing.assert_array_equal(answers, plain.predict_proba(x, preference=[0.5, 0.5]))
