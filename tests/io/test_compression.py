"""Small files that unpack to large ones: refused before memory is spent."""

import gzip
from pathlib import Path

import pytest

from paretocosmos.errors import DataError
from paretocosmos.io.external import read_unpacked
from paretocosmos.problems.images import read_idx


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
