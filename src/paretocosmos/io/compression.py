"""Reading files that others packed: never more of them than they may hold.

A few kilobytes can unpack to terabytes, so that what comes out is counted while it comes.
"""

import gzip
import lzma
import math
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

from paretocosmos.errors import ConfigurationError, DataError

__all__ = [
    "LARGEST",
    "TABLE_WAY_OUT",
    "check_lines",
    "check_size",
    "in_pieces",
    "largest_table",
    "read_packed",
]

LARGEST = 1 << 28
"""Bytes that a file of images, labels or attributes unpacks to at most: five times the largest."""
TABLE_VARIABLE = "PARETOCOSMOS_TABLE_GB"
"""The variable that says how many GB a packed table may take when it is unpacked; 1 by default."""
TABLE_WAY_OUT = f"keep a part of its rows or columns, or set ${TABLE_VARIABLE} to more GB"
LONGEST_LINE = 1 << 20
"""Bytes between two line ends of a table: a column more for each would not fit into memory."""

GZIP = b"\x1f\x8b"
PIECE = 1 << 20


def largest_table() -> int:
    """Return how many bytes a packed table may take when it is unpacked."""
    text = os.environ.get(TABLE_VARIABLE) or "1"
    try:
        size = float(text) * 1e9
        if not 0 < size < math.inf:
            raise ValueError
    except ValueError as error:
        raise ConfigurationError(
            f"${TABLE_VARIABLE} must be a number of GB above 0, found {text[:40]!r}"
        ) from error
    return int(size)


def in_pieces(
    path: Path,
    *,
    most: int | None,
    packed: bool | None = None,
    way_out: str = "get it from a source you trust",
) -> Iterator[bytes]:
    """A file piece by piece, unpacked by its content or by its name.

    Args:
        path: the file; a pipe or a device, which may have no end, is refused.
        most: bytes in all; more are refused. `None` for any number.
        packed: whether it is gzipped; `None`: by the end of its name, ``.gz`` or ``.xz``.
        way_out: what to do about a file that is too large.
    """
    check_size(path, None)
    done = 0
    with _opened(path, packed) as stream:
        while part := stream.read(PIECE):
            done += len(part)
            if most is not None and done > most:
                raise DataError(
                    f"`{path}` unpacks to more than {most:,} bytes, too many for a file of its "
                    f"kind: {way_out}"
                )
            yield part


def _opened(path: Path, packed: bool | None) -> IO[bytes]:
    ending = path.suffix.lower() if packed is None else ".gz" if packed else ""
    if ending == ".xz":
        return lzma.open(path, "rb")
    return cast(IO[bytes], gzip.open(path, "rb")) if ending == ".gz" else path.open("rb")


def read_packed(path: Path, *, most: int = LARGEST) -> bytes:
    """All of a file, plain or gzipped.

    By content, not by name: browsers unpack a download and keep its .gz.
    """
    check_size(path, most)
    with path.open("rb") as stream:
        packed = stream.read(len(GZIP)) == GZIP
    return b"".join(in_pieces(path, most=most, packed=packed))


def check_size(path: Path, most: int | None = LARGEST) -> None:
    """Refuse a file that is too large, or none, before any of it is read; `None` for any size."""
    about = path.stat()
    if not stat.S_ISREG(about.st_mode):
        raise DataError(f"`{path}` is not a regular file: name one")
    if most is not None and about.st_size > most:
        raise DataError(
            f"`{path}` has {about.st_size:,} bytes, at most {most:,} are read: get it from a "
            "source you trust"
        )


def check_lines(path: Path) -> None:
    """Refuse a table that would take all memory: a line without end, or one that is packed."""
    packed = path.suffix.lower() in (".gz", ".xz")
    for part in in_pieces(path, most=largest_table() if packed else None, way_out=TABLE_WAY_OUT):
        if len(part) == PIECE and b"\n" not in part and b"\r" not in part:
            raise DataError(
                f"`{path}` has a line of more than {LONGEST_LINE:,} bytes, which cannot be a row: "
                "a table is text with a header and commas"
            )
