"""Reading idx files, the format of MNIST and Fashion-MNIST."""

import math
import zlib
from pathlib import Path
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from paretocosmos.errors import DataError
from paretocosmos.io.compression import read_packed

__all__ = ["CLASSES", "Bytes", "read_idx", "read_pair"]

Bytes = npt.NDArray[np.uint8]

SIZE = 28
CLASSES = 10
# The third byte of an idx file names the type of its numbers.
TYPES = {
    0x08: "unsigned bytes",
    0x09: "signed bytes",
    0x0B: "int16",
    0x0C: "int32",
    0x0D: "float32",
    0x0E: "float64",
}
WAY_OUT = "put a fresh copy in its place (in the cache: delete it, and it is downloaded anew)"


def read_pair(images: Path, labels: Path) -> tuple[Bytes, Bytes]:
    """Images ``[n, 28, 28]`` and their labels ``[n]``, from 0 to 9, both read-only."""
    pixels, classes = read_idx(images, 3), read_idx(labels, 1)
    if pixels.shape[1:] != (SIZE, SIZE):
        size = " x ".join(str(length) for length in pixels.shape[1:])
        _refuse(images, f"holds images of {SIZE} x {SIZE}", size)
    if len(pixels) == 0:
        _refuse(images, "holds images", "none")
    if len(pixels) != len(classes):
        raise DataError(
            f"every image needs a label, found {len(pixels)} images in `{images}` and "
            f"{len(classes)} labels in `{labels}`: take both files from the same source"
        )
    if int(classes.max()) >= CLASSES:
        _refuse(labels, f"holds labels from 0 to {CLASSES - 1}", str(classes.max()))
    return pixels, classes


def read_idx(path: Path, axes: int) -> Bytes:
    """An array of unsigned bytes with that many axes, from a plain file or a gzipped one."""
    content = _unpacked(path)
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] not in TYPES:
        what = content[:4].hex(" ") or "an empty file"
        _refuse(path, "is an idx file, which starts with the bytes 00 00 08", what)
    if TYPES[content[2]] != TYPES[0x08]:
        _refuse(path, "holds unsigned bytes", TYPES[content[2]])
    if content[3] != axes:
        which = {1: "labels (one axis)", 3: "images (three axes)"}
        _refuse(path, f"holds {which[axes]}", which.get(content[3], f"{content[3]} axes"))
    start = 4 + 4 * axes
    shape = tuple(int.from_bytes(content[at : at + 4], "big") for at in range(4, start, 4))
    expected = start + math.prod(shape)
    if len(content) != expected:
        size = " x ".join(str(length) for length in shape)
        _refuse(path, f"has {expected:,} bytes, as its head of {size} says", f"{len(content):,}")
    return np.frombuffer(content, dtype=np.uint8, offset=start).reshape(shape)


def _unpacked(path: Path) -> bytes:
    try:
        return read_packed(path)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"`{path}` cannot be read ({error}): {WAY_OUT}") from error


def _refuse(path: Path, rule: str, found: str) -> NoReturn:
    raise DataError(f"`{path}` {rule}, found {found}: {WAY_OUT}")
