"""Small files that unpack to large ones: refused before memory is spent."""

import gzip
import io
import lzma
import os
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from paretocosmos.errors import DataError
from paretocosmos.io.external import read_unpacked
from paretocosmos.problems.faces import files as archives
from paretocosmos.problems.faces import files as celeba_lists
from paretocosmos.problems.faces import open_pictures
from paretocosmos.problems.faces.decoding import MAX_PIXELS, decode_picture
from paretocosmos.problems.images.files import read_idx
from paretocosmos.problems.tables import read_csv


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits that a test reaches."""
    for module, name, value in (
        (archives, "MAX_PICTURE_BYTES", 1_000_000),
        (archives, "MAX_NOTE_BYTES", 10_000),
        (archives, "MAX_TAR_BYTES", 3_000_000),
        (celeba_lists, "LARGEST", 1_000_000),
    ):
        monkeypatch.setattr(module, name, value)
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


def test_a_picture_in_a_zip(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "img.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("000001.jpg", bytes(2_000_000))
    pictures = open_pictures(tmp_path / "img.zip")
    with pytest.raises(DataError, match=r"`000001\.jpg`.* 2,000,000 bytes"):
        list(pictures.contents([1]))


def test_a_picture_in_a_tar(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "img.tgz", "w:gz") as archive:
        member = tarfile.TarInfo("000001.jpg")
        member.size = 2_000_000
        archive.addfile(member, io.BytesIO(bytes(member.size)))
    pictures = open_pictures(tmp_path / "img.tgz")
    with pytest.raises(DataError, match=r"`000001\.jpg`.* 2,000,000 bytes"):
        list(pictures.contents([1]))


def test_a_tar_that_goes_on(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "img.tgz", "w:gz") as archive:
        for number in range(9):
            member = tarfile.TarInfo(f"{number}.txt")
            member.size = 1_000_000
            archive.addfile(member, io.BytesIO(bytes(member.size)))
    with pytest.raises(DataError, match=r"unpacks.* 3,000,000 bytes"):
        list(open_pictures(tmp_path / "img.tgz").contents([1]))


def test_a_tar_with_long_notes(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "img.tar", "w", format=tarfile.PAX_FORMAT) as archive:
        member = tarfile.TarInfo("000001.jpg")
        member.pax_headers = {"comment": "x" * 20_000}
        archive.addfile(member)
    with pytest.raises(DataError, match=r"note of .* bytes"):
        list(open_pictures(tmp_path / "img.tar").contents([1]))


def test_a_picture_in_a_folder(tmp_path: Path) -> None:
    (tmp_path / "000001.jpg").write_bytes(bytes(2_000_000))
    ((_, read),) = open_pictures(tmp_path).contents([1])
    with pytest.raises(DataError, match="2,000,000 bytes, at most 1,000,000"):
        read()


@pytest.mark.parametrize("size", [(1, 5000), (MAX_PIXELS // 4000 + 1, 4000)])
def test_a_picture_that_would_take_all_memory(size: tuple[int, int]) -> None:
    stream = io.BytesIO()
    Image.new("1", size).save(stream, "png")
    with pytest.raises(ValueError, match=f"{size[0]} x {size[1]}; at most"):
        decode_picture(stream.getvalue(), 64)


def test_arrays_that_unpack_to_more(tmp_path: Path) -> None:
    path = tmp_path / "celeba64_meta.npz"
    np.savez_compressed(path, image_id=np.zeros(1_000_000, dtype=np.int64))
    with pytest.raises(DataError, match=r"8,000,\d+ bytes.* 1,000,000"):
        celeba_lists._read_meta(path)
