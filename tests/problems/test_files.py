"""Tables as people have them: separators, decimal marks, encodings, Parquet."""

import gzip
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from paretocosmos.errors import ConfigurationError, DataError, DataWarning, MissingExtraError
from paretocosmos.problems import problem_name
from paretocosmos.problems.tables import read_table


def people(rows: int = 40) -> pd.DataFrame:
    draw = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "größe": draw.normal(1.7, 0.1, rows).round(3),
            "city": draw.choice(["Zürich", "Bern; Köniz", "Genf, Nord"], rows),
            "age": draw.integers(18, 90, rows),
        }
    )


WRITTEN: dict[str, tuple[dict[str, Any], str]] = {
    "semicolons.csv": ({"sep": ";"}, "`;` between columns"),
    "decimals.csv": ({"sep": ";", "decimal": ","}, "`;` between columns, `,` before decimals"),
    "windows.csv": ({"encoding": "cp1252"}, "text in cp1252"),
    "excel.csv": ({"sep": ";", "decimal": ",", "encoding": "cp1252"}, "cp1252, `;` .*, `,` before"),
    "utf16.csv": ({"encoding": "utf-16"}, "text in utf-16"),
    "pipes.csv": ({"sep": "|"}, r"`\|` between columns"),
    "tabs.csv": ({"sep": "\t"}, "tabs between columns"),
    "commas.tsv": ({}, "`,` between columns"),
    "packed.csv.gz": ({"sep": ";"}, "`;` between columns"),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_what_is_not_plain_is_found_out_and_said(name: str, tmp_path: Path) -> None:
    how, says = WRITTEN[name]
    people().to_csv(tmp_path / name, index=False, **how)
    with pytest.warns(DataWarning, match=f"`{name}` is read with .*{says}.*`separator`, `decimal`"):
        found = read_table(tmp_path / name)
    pd.testing.assert_frame_equal(found, pd.read_csv(tmp_path / name, **how))
    pd.testing.assert_frame_equal(found, people())


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_the_usual_is_read_without_a_word(encoding: str, tmp_path: Path) -> None:
    people().to_csv(tmp_path / "a.csv", index=False, encoding=encoding)
    people().to_csv(tmp_path / "a.tsv", index=False, sep="\t")
    with warnings.catch_warnings(action="error"):
        pd.testing.assert_frame_equal(read_table(tmp_path / "a.csv"), people())
        pd.testing.assert_frame_equal(read_table(tmp_path / "a.tsv"), people())


def test_what_is_given_is_not_said_again(tmp_path: Path) -> None:
    people().to_csv(tmp_path / "a.csv", index=False, sep="\t", decimal=",", encoding="latin-1")
    with warnings.catch_warnings(action="error"):
        found = read_table(tmp_path / "a.csv", separator="tab", decimal=",", encoding="latin-1")
    pd.testing.assert_frame_equal(found, people())


def test_a_separator_can_be_one_that_is_never_guessed(tmp_path: Path) -> None:
    people().to_csv(tmp_path / "a.csv", index=False, sep="~")
    pd.testing.assert_frame_equal(read_table(tmp_path / "a.csv", separator="~"), people())


def test_an_odd_letter_beyond_the_beginning_is_seen(tmp_path: Path) -> None:
    rows = ["a,b", *["1,plain"] * 300_000, "2,Zürich"]
    (tmp_path / "a.csv").write_bytes("\n".join(rows).encode("cp1252"))
    with pytest.warns(DataWarning, match="text in cp1252"):
        found = read_table(tmp_path / "a.csv")
    assert found["b"].iloc[-1] == "Zürich"


def test_bytes_that_windows_does_not_have(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"a,b\n1,\x81\n2,\xe4\n")
    with pytest.warns(DataWarning, match="text in latin-1"):
        assert read_table(tmp_path / "a.csv")["b"].tolist() == ["\x81", "ä"]


def test_points_stay_decimal_marks_between_semicolons(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a;b\n1.5;x, y\n2.5;3,5\n1.25;z\n")
    with pytest.warns(DataWarning) as told:
        assert read_table(tmp_path / "a.csv")["a"].tolist() == [1.5, 2.5, 1.25]
    assert "decimals" not in str(told[0].message)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"separator": ";;"}, "`separator` must be one character or `tab`, found ';;'"),
        ({"decimal": "'"}, "`decimal` must be `.` or `,`"),
        ({"separator": ",", "decimal": ","}, "differ, found ',' for both"),
        ({"encoding": "klingon"}, "known to Python.*'klingon'"),
        ({"encoding": "ascii"}, "cannot be read"),
    ],
)
def test_settings_that_cannot_be(given: Any, sentence: str, tmp_path: Path) -> None:
    people().to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises((ConfigurationError, DataError), match=sentence):
        read_table(tmp_path / "a.csv", **given)


def test_a_damaged_archive(tmp_path: Path) -> None:
    (tmp_path / "a.tsv.gz").write_bytes(gzip.compress(b"a\tb\n1\t2\n" * 99, mtime=0)[:-12])
    with pytest.raises(DataError, match="cannot be read"):
        read_table(tmp_path / "a.tsv.gz")


def test_names_that_are_tables() -> None:
    names = ("a.csv", "A.CSV.GZ", "a.tsv", "a.parquet", "b.pq")
    assert {problem_name(name) for name in names} == {"table"}
    assert problem_name("a.txt") == "a.txt"


def test_parquet_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"`pyarrow`.*paretocosmos\[parquet\]"):
        read_table(tmp_path / "a.parquet")


@pytest.mark.parametrize("encoding", ["hex", "base64", "rot13", "uu", "a\0b", "\ud800", "no" * 200])
def test_an_encoding_that_is_not_of_text(encoding: str, tmp_path: Path) -> None:
    people().to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(ConfigurationError, match="`encoding` must be a text encoding") as refused:
        read_table(tmp_path / "a.csv", encoding=encoding)
    assert len(str(refused.value)) < 200
