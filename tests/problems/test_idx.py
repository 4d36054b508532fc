"""Reading idx files: what is read, and every way they can be wrong."""

import gzip
import re
import struct
from pathlib import Path

import numpy as np
import pytest

from paretocosmos.errors import DataError
from paretocosmos.problems.images.pairs import read_pair

DRAW = np.random.default_rng(0)
IMAGES = DRAW.integers(0, 256, (12, 28, 28), dtype=np.uint8)
LABELS = DRAW.integers(0, 10, 12, dtype=np.uint8)


def idx(array: np.ndarray, code: int = 0x08) -> bytes:
    """The format, written from its description."""
    return struct.pack(f">HBB{array.ndim}I", 0, code, array.ndim, *array.shape) + array.tobytes()


def write(folder: Path, images: bytes, labels: bytes) -> tuple[Path, Path]:
    paths = folder / "train-images-idx3-ubyte", folder / "train-labels-idx1-ubyte"
    for path, content in zip(paths, (images, labels), strict=True):
        path.write_bytes(content)
    return paths


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_what_was_written_is_read(tmp_path: Path, pack: type[bytes]) -> None:
    images, labels = read_pair(*write(tmp_path, pack(idx(IMAGES)), pack(idx(LABELS))))
    np.testing.assert_array_equal(images, IMAGES)
    np.testing.assert_array_equal(labels, LABELS)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "idx file .* empty file"),
        (b"<html>", "00 00 08 03, found 3c 68 74 6d"),
        (idx(IMAGES)[:9], "found 9"),
        (idx(IMAGES)[:-1], "9,424 bytes, .* 12 x 28 x 28 .* 9,423"),
        (idx(IMAGES) + b"\0", "has 9,424 bytes, .* found 9,425"),
        (idx(IMAGES.astype(">i4"), 0x0C), "found 00 00 0c 03"),
        (idx(LABELS), "file of images, .* found 00 00 08 01"),
        (idx(IMAGES[:, :27]), "holds images of 28 x 28, found 27 x 28"),
        (idx(IMAGES[:0]), "holds images, found none"),
        (gzip.compress(idx(IMAGES), mtime=0)[:-20], "cannot be read"),
        (gzip.compress(idx(IMAGES), mtime=0)[:12], "cannot be read"),
        (gzip.compress(idx(IMAGES), mtime=0)[:10] + b"\xff" * 40, "cannot be read"),
    ],
)
def test_images_that_are_refused(content: bytes, sentence: str, tmp_path: Path) -> None:
    paths = write(tmp_path, content, idx(LABELS))
    with pytest.raises(DataError, match=sentence) as refused:
        read_pair(*paths)
    assert str(refused.value).startswith(f"`{paths[0]}` ")
    assert "a fresh copy" in str(refused.value)


def test_labels_out_of_range(tmp_path: Path) -> None:
    paths = write(tmp_path, idx(IMAGES), idx(LABELS // 9 * 10))
    assert LABELS.max() == 9
    sentence = f"`{re.escape(str(paths[1]))}` holds labels from 0 to 9, found 10"
    with pytest.raises(DataError, match=sentence):
        read_pair(*paths)


def test_as_many_labels_as_images(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"12 images .* 11 labels"):
        read_pair(*write(tmp_path, idx(IMAGES), idx(LABELS[1:])))


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nothing` .*No such file"):
        read_pair(tmp_path / "nothing", tmp_path / "nothing")


def test_a_small_file_that_unpacks_to_a_large_one(tmp_path: Path) -> None:
    packed = gzip.compress(bytes(1 << 24), 1) * 17
    with pytest.raises(DataError, match="more than 268,435,456 bytes, unpacked"):
        read_pair(*write(tmp_path, packed, idx(LABELS)))
