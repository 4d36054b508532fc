"""Small files that unpack to large ones: refused before memory is spent."""

import gzip
import lzma
import os
from pathlib import Path
from typing import Any

import pytest

from paretocosmos.errors import DataError
from paretocosmos.io.external import read_unpacked
from paretocosmos.problems.images.files import read_idx
from paretocosmos.problems.tables import read_csv


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit that a test reaches."""
    monkeypatch.setenv("PARETOCOSMOS_TABLE_GB", "0.003")


def test_a_file_is_read_up_to_its_limit(tmp_path: Path) -> None:
    for name, content in (("plain", bytes(1000)), ("packed", gzip.compress(bytes(1000)))):
        path = tmp_path / name
        path.write_bytes(content)
        assert read_unpacked(path, most=1000) == bytes(1000)
        with pytest.raises(DataError, match=r"unpacks to more than 999|at most 999"):
            read_unpacked(path, most=999)


def test_an_idx_file(tmp_path: Path) -> None:
    path = tmp_path / "labels.gz"
    piece = gzip.compress(bytes(1 << 24), 1)
    path.write_bytes(piece * 17)
    with pytest.raises(DataError, match="unpacks to more than 268,435,456 bytes"):
        read_idx(path, 1)


@pytest.mark.parametrize("ending", [".csv.gz", ".csv.xz"])
def test_a_packed_table(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"table{ending}"
    pack: Any = gzip if ending.endswith("gz") else lzma
    path.write_bytes(pack.compress(b"a,b\n" + b"1,2\n" * 1000))
    assert len(read_csv(path, "")) == 1000
    path.write_bytes(pack.compress(b"a,b\n" + b"1,2\n" * 1_000_000))
    with pytest.raises(DataError, match="unpacks to more than 3,000,000 bytes"):
        read_csv(path, "")


def test_a_line_without_end(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(b"a,b\n" + b"1" * (3 << 20))
    with pytest.raises(DataError, match=r"line.* 1,048,576 bytes"):
        read_csv(path, "")
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(DataError, match="is not a regular file"):
        read_csv(tmp_path / "pipe.csv", "")
