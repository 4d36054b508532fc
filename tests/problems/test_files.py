"""Tables in files: separators, decimal marks, encodings, packed text, Parquet, and refusals."""

import gzip
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from paretocosmos.errors import ConfigurationError, DataError, MissingExtraError
from paretocosmos.problems import SPLITS, load_problem
from paretocosmos.problems.tables import TabularProblem, files, read_table, rows


def people(rows: int = 40) -> pd.DataFrame:
    draw = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "größe": draw.normal(1.7, 0.1, rows).round(3),
            "city": draw.choice(["Zürich", "Bern; Köniz", "Genf, Nord"], rows),
            "age": draw.integers(18, 90, rows),
        }
    )


def load(path: Path, **settings: Any) -> TabularProblem:
    columns = {"target": "paid", "sensitive": "sex", "drop": ("id",)}
    problem = load_problem("table", data=str(path), settings=columns | settings)
    assert isinstance(problem, TabularProblem)
    return problem


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("a.csv", {"encoding": "utf-8-sig"}),
        ("a.tsv", {"sep": "\t"}),
        ("a.csv", {"sep": ";", "decimal": ","}),
        ("a.csv.gz", {"sep": "|"}),
        ("a.csv.xz", {"sep": "\t"}),
        ("a.tsv", {}),
    ],
)
def test_the_separator_is_the_headers(name: str, options: Any, tmp_path: Path) -> None:
    people().to_csv(tmp_path / name, index=False, **options)
    with warnings.catch_warnings(action="error"):
        pd.testing.assert_frame_equal(read_table(tmp_path / name), people())


def test_settings(tmp_path: Path) -> None:
    people().to_csv(tmp_path / "a.csv", index=False, sep="~", decimal=",", encoding="cp1252")
    frame = read_table(tmp_path / "a.csv", separator="~", decimal=",", encoding="cp1252")
    pd.testing.assert_frame_equal(frame, people())
    with pytest.raises(DataError, match=r"cannot be read \(.*text in utf-8 .*such as `cp1252`"):
        read_table(tmp_path / "a.csv")


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"separator": ";;"}, "`separator` must be one character or `tab`, found ';;'"),
        ({"decimal": "'"}, "`decimal` must be `.` or `,`"),
        ({"separator": ",", "decimal": ","}, "not the separator, found ','"),
        ({"encoding": "klingon"}, "unknown encoding: klingon.*such as `cp1252`"),
        ({"encoding": "hex"}, "cannot be read .*text encoding"),
        ({"encoding": "\ud800"}, "cannot be read"),
        ({"encoding": "ascii"}, "cannot be read"),
    ],
)
def test_settings_that_cannot_be(settings: Any, sentence: str, tmp_path: Path) -> None:
    people().to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises((ConfigurationError, DataError), match=sentence):
        read_table(tmp_path / "a.csv", **settings)


def test_parquet_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"`pyarrow`.*paretocosmos\[parquet\]"):
        read_table(tmp_path / "a.parquet")


def test_like_the_frame(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(0)
    frame = pd.DataFrame({"id": range(300), "code": draw.integers(0, 3, 300)})
    frame["sex"], frame["paid"] = draw.choice(["f", "m"], 300), draw.choice(["no", "yes"], 300)
    frame.to_csv(tmp_path / "loans.csv.gz", index=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    problem = load(Path("~/loans.csv.gz"), split_seed=3, categorical="code")
    expected = TabularProblem.from_frame(
        frame, target="paid", sensitive="sex", drop=("id",), categorical=("code",), seed=3
    )
    assert problem.table == expected.table
    assert problem.table.features == ("code=0", "code=1", "code=2")
    label = problem.split("val").targets["label"]
    assert torch.equal(label, expected.split("val").targets["label"])


@pytest.mark.filterwarnings("ignore:`born` holds dates")
def test_a_table_larger_than_memory_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    draw = np.random.default_rng(0)
    frame = people(200).assign(
        sex=draw.choice(["f", "m"], 200), paid=draw.choice(["no", "yes"], 200)
    )
    frame["gaps"] = frame["age"].where(frame["age"] > 30)
    frame["text"] = frame["city"].where(frame["age"] > 30)
    frame["owner"], frame["kind"] = frame["age"] > 50, frame["city"].astype("category")
    frame["born"] = pd.Timestamp("1980-01-01") + pd.to_timedelta(frame["age"], "D")
    frame.set_index("age").to_parquet(tmp_path / "a.parquet")
    frame.set_axis(draw.permutation(200)).to_parquet(tmp_path / "b.parquet")
    expected = [read_table(tmp_path / name) for name in ("a.parquet", "b.parquet")]
    known = load(tmp_path / "a.parquet", drop=())
    # far fewer cells and bytes than 256 MB and 1 GB
    monkeypatch.setattr(files, "MAPPED_CELLS", 0)
    monkeypatch.setattr(rows, "HELD", 0)
    monkeypatch.setattr(rows, "BLOCK_ROWS", 30)
    for name, whole in zip(("a.parquet", "b.parquet"), expected, strict=True):
        allocated = pyarrow.total_allocated_bytes()
        mapped = read_table(tmp_path / name)
        # less than a single column of numbers
        assert pyarrow.total_allocated_bytes() - allocated < 8 * len(mapped)
        pd.testing.assert_frame_equal(mapped, whole.reset_index(drop=True))
    problem = load(tmp_path / "a.parquet", drop=())
    assert problem.table == known.table
    for split in SPLITS:
        batch, same = problem.split(split), known.split(split)
        assert torch.equal(torch.as_tensor(batch.inputs), torch.as_tensor(same.inputs))
        assert all(torch.equal(batch.targets[key], same.targets[key]) for key in same.targets)


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.csv", b"", "No columns to parse"),
        ("a.csv", b"only\n1\n2\n", "only `only` in .*separator"),
        ("a.csv", b"x" * 100_000 + b"\n1\n", r"found only `x{60}` in"),
        ("a.csv", b"a,b\n1,2\n1,2,3\n", "text in utf-8 with a header"),
        ("a.csv", b"a,b,a\n1,2,3\n", "found `a` twice in the header"),
        ("a.csv", b"a,b\n0,2,3\n1,5,6\n", "more fields .*name every column"),
        ("a.csv", b"a,b\nx,2,3\ny,5,6\n", "more fields"),
        ("a.csv", b"a,b\n0,2,\n1,5,\n", "`paid`; known: a, b"),
        ("a.csv.gz", b"a,b\n1,2\n", "cannot be read"),
        ("a.tsv.gz", gzip.compress(b"a\tb\n1\t2\n" * 99, mtime=0)[:-12], "cannot be read"),
        ("a.csv.gz", gzip.compress(b"a,b\n1,2\n", mtime=0)[:10] + b"\xff" * 30, "cannot be read"),
        ("a.csv.xz", b"a,b\n1,2\n", "cannot be read"),
        ("a.csv", b"a,b\n", "unknown target column `paid`"),
        ("a.csv", b"id,paid,sex,x\n", "at least 10 rows .*found 0"),
        ("a.txt", b"a,b\n", r"\.csv, \.csv\.gz, .*\.parquet, \.pq file, found"),
    ],
)
def test_refused_files(name: str, content: bytes, sentence: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises((DataError, ConfigurationError), match=sentence) as refused:
        load(tmp_path / name)
    assert len(str(refused.value)) < 500
