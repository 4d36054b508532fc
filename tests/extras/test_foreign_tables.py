"""Tables of others: Parquet files, frames of polars."""

import datetime
import decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from paretocosmos.errors import ConfigurationError, DataError
from paretocosmos.estimators import ParetoClassifier
from paretocosmos.problems.tables import TabularProblem, read_table, to_frame

polars = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
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


TEXT = "x" * 80_000
SAME = {
    "a number": [0],
    "a long text": [TEXT],
    "a long text of bytes": [TEXT.encode()],
    "bytes of one length": pa.array([TEXT.encode()], pa.binary(len(TEXT))),
}
"""Values that take much memory in every row, and only a few kilobytes of a file."""


@pytest.mark.parametrize("kind", SAME)
def test_a_table_that_would_fill_the_memory(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.parquet"
    rows = pa.array(np.zeros(2_000_000 if kind == "a number" else 1000, np.int64))
    # a name that could also be a part of the other column
    columns = {"a": pa.array(SAME[kind]).take(rows), "a.b": rows}
    parquet.write_table(pa.table(columns), path, compression="zstd")
    assert path.stat().st_size < 100_000
    monkeypatch.setenv("PARETOCOSMOS_TABLE_GB", "0.02")
    with monkeypatch.context() as patched:
        patched.setattr(pd, "read_parquet", lambda *_, **__: pytest.fail("it was read"))
        with pytest.raises(DataError, match=r"MB of memory.*PARETOCOSMOS_TABLE_GB"):
            read_table(path)
    monkeypatch.setenv("PARETOCOSMOS_TABLE_GB", "0.5")
    assert len(read_table(path)) == len(rows)


@pytest.mark.parametrize("limit", ["", "two", "-1", "nan", "inf"])
def test_a_limit_that_is_no_number(
    limit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    people().to_parquet(tmp_path / "a.parquet")
    monkeypatch.setenv("PARETOCOSMOS_TABLE_GB", limit)
    if not limit:
        assert len(read_table(tmp_path / "a.parquet")) == 300  # as if it were not set
        return
    with pytest.raises(ConfigurationError, match="PARETOCOSMOS_TABLE_GB"):
        read_table(tmp_path / "a.parquet")


def test_cells_that_hold_lists(tmp_path: Path) -> None:
    people().assign(tags=pd.Series([["a", "b"]] * 300)).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(DataError, match="`tags`: write the file without it"):
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
        np.testing.assert_array_equal(found.predict_proba(rows), plain.predict_proba(x))
