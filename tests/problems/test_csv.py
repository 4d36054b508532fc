"""The problem `table`: a CSV file of one's own."""

import gzip
import lzma
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from paretocosmos.errors import ConfigurationError, DataError
from paretocosmos.problems.table import table
from paretocosmos.problems.tables import TabularProblem


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    draw = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "id": range(300),
            "code": draw.integers(0, 3, 300),
            "sex": draw.choice(["f", "m"], 300),
            "paid": draw.choice(["no", "yes"], 300),
        }
    )
    frame.to_csv(tmp_path / "loans.csv", index=False)
    return tmp_path / "loans.csv"


def test_like_the_frame(csv: Path) -> None:
    options = {"target": "paid", "sensitive": "sex", "drop": ("id",), "categorical": ("code",)}
    found = table(data=str(csv), split_seed=3, **options)  # type: ignore[arg-type]
    expected = TabularProblem.from_frame(pd.read_csv(csv), seed=3, **options)  # type: ignore[arg-type]
    assert found.table == expected.table
    assert found.table.features == ("code=0", "code=1", "code=2")
    label = found.split("val").targets["label"]
    assert torch.equal(label, expected.split("val").targets["label"])


@pytest.mark.parametrize("end", [".gz", ".xz"])
def test_packed(csv: Path, end: str) -> None:
    pack = gzip.compress if end == ".gz" else lzma.compress
    packed = csv.with_name(csv.name + end)
    packed.write_bytes(pack(csv.read_bytes()))
    columns = {"target": "paid", "sensitive": "sex", "drop": ("id",)}
    problem = table(data=str(packed), **columns)  # type: ignore[arg-type]
    assert problem.table == table(data=str(csv), **columns).table  # type: ignore[arg-type]


def test_the_home_folder(csv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(csv.parent))
    found = table(data="~/loans.csv", target="paid", sensitive="sex", drop=("id",))
    assert found.about["positive"] == "yes"


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.csv", b"", "No columns to parse"),
        ("a.csv", b"only\n1\n2\n", "only `only` in .*separator"),
        ("a.csv", b"a,b\n1,2\n1,2,3\n", "text in utf-8 with a header and `,` between"),
        ("a.csv", b"a,b,a\n1,2,3\n", "found `a` twice in the header"),
        ("a.csv", b"a,b\n1,\x002\n", "null bytes"),
        ("a.csv", b"a,b\n0,2,3\n1,5,6\n", "more fields .*name every column"),
        ("a.csv", b"a,b\nx,2,3\ny,5,6\n", "more fields"),
        ("a.csv", b"a,b\n0,2,\n1,5,\n", "`paid`; known: a, b"),
        ("a.csv", b"PK\x03\x04\x14\x00\x06\x00", "cannot be read .*null bytes"),
        ("a.csv.gz", b"a,b\n1,2\n", "cannot be read"),
        ("a.csv.gz", gzip.compress(b"a,b\n1,2\n" * 99, mtime=0)[:-12], "cannot be read"),
        ("a.csv.gz", gzip.compress(b"a,b\n1,2\n", mtime=0)[:10] + b"\xff" * 30, "cannot be read"),
        ("a.csv.xz", b"a,b\n1,2\n", "cannot be read"),
        ("a.csv", b"a,b\n", "unknown target column `paid`"),
        ("a.csv", b"paid,sex,x\n", "at least 10 rows .*found 0"),
        ("a.txt", b"a,b\n", r"\.csv, \.csv\.gz, .*\.parquet, \.pq file, found"),
    ],
)
def test_refused_files(name: str, content: bytes, sentence: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises((DataError, ConfigurationError), match=sentence):
        table(data=str(tmp_path / name), target="paid", sensitive="sex")


@pytest.mark.parametrize(
    ("name", "says"), [("nowhere.csv", "does not exist"), ("folder.csv", "is not a file")]
)
def test_no_file(name: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(DataError, match=says):
        table(data=str(tmp_path / name), target="paid", sensitive="sex")


def test_a_header_of_one_endless_word_is_repeated_in_part(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("x" * 100_000 + "\n1\n")
    with pytest.raises(DataError, match=r"found only `x{60}` in") as refused:
        table(data=str(path), target="y", sensitive="z")
    assert len(str(refused.value)) < 400
