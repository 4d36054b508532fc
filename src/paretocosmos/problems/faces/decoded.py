"""Decoded pictures, kept as one mapped file in the cache: decoding takes minutes, mapping none."""

import hashlib
import json
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from paretocosmos.errors import DataError
from paretocosmos.io.files import cache_folder, replacing, write_bytes
from paretocosmos.io.progress import get_console
from paretocosmos.problems.faces.archives import Pictures
from paretocosmos.problems.faces.decode import TRANSFORM, decode_all
from paretocosmos.problems.images.idx import Bytes

__all__ = ["Decoded", "decoded"]

CHANNELS = 3
CHUNK = 1 << 20
ABANDONED = 24 * 3600  # seconds after which a temporary file is not in use any more


@dataclass(frozen=True, eq=False)
class Decoded:
    """Pictures of one size, in the order that was asked for.

    Attributes:
        pixels: ``[n, 3, size, size]``, mapped from the cache where there is one; changes made to
            it stay in memory.
        numbers: ``[n]``, the pictures'.
        damaged: what is wrong with those that cannot be decoded, by number.
        sha256: of the picture files: decoders may differ by a grey level.
    """

    pixels: Bytes
    numbers: npt.NDArray[np.int64]
    damaged: Mapping[int, str]
    sha256: str


def decoded(pictures: Pictures, wanted: Sequence[int], size: int) -> Decoded:
    """The wanted pictures that are there, from the cache, or decoded and put there.

    Args:
        pictures: a folder or an archive.
        wanted: numbers, each once; the rows come in this order.
        size: the side of a picture.
    """
    inputs = [TRANSFORM, size, pictures.fingerprint, *wanted]
    key = hashlib.sha256(json.dumps(inputs).encode()).hexdigest()[:16]
    path = cache_folder() / "celeba" / f"faces-{size}-{key}.npy"
    found = _read(path, size)
    if found is None:
        _announce(pictures, wanted, size, path.parent)
        try:
            _write(path, pictures, wanted, size)
            found = _read(path, size)
        except OSError as error:  # of the cache: a source that fails raises a DataError
            why = error.__cause__ or error
            warnings.warn(
                f"the decoded pictures cannot be stored in `{path.parent}` ({why}), so they stay "
                "in memory and are decoded again next time: make room, or set XDG_CACHE_HOME to a "
                "writable folder",
                UserWarning,
                stacklevel=2,
            )
    return _in_memory(pictures, wanted, size) if found is None else found


def _announce(pictures: Pictures, wanted: Sequence[int], size: int, folder: Path) -> None:
    """One line for a log that decoding begins; a terminal has a bar."""
    if not get_console().is_terminal:
        count = len(wanted if pictures.numbers is None else pictures.numbers.intersection(wanted))
        said = f"decoding {count:,} pictures to {size} x {size} into `{folder}`, this once"
        get_console().print(said, markup=False, soft_wrap=True)


def _read(path: Path, size: int) -> Decoded | None:
    """What was kept, or `None` if it is not whole.

    The checksum of the pixels is written beside them, to be compared by hand. It is not computed
    here: that would read 2.5 GB at each start. A torn file has another length, and the record is
    written last, when the pixels are on the disk.
    """
    try:
        record = json.loads(path.with_suffix(".json").read_text("utf-8"))
        numbers = np.array(record["numbers"], dtype=np.int64)
        damaged = {int(number): str(what) for number, what in record["damaged"].items()}
        sha256 = str(record["files_sha256"])
        pixels = np.load(path, mmap_mode="c", allow_pickle=False)  # nothing is copied
        shape = (len(numbers), CHANNELS, size, size)
        length = pixels.offset + pixels.nbytes
        whole = pixels.shape == shape and pixels.dtype == np.uint8 and len(numbers) > 0
        if not whole or path.stat().st_size != length:
            return None
    except Exception:  # a damaged file can raise anything, and is made anew whatever it was
        return None
    return Decoded(pixels, numbers, damaged, sha256)


def _write(path: Path, pictures: Pictures, wanted: Sequence[int], size: int) -> None:
    """Decode into a temporary file, bring its rows together, then rename; the record comes last."""
    path.parent.mkdir(parents=True, exist_ok=True)
    row = CHANNELS * size * size
    # flushed to the disk: the checksum of the pixels is not computed again
    with replacing(path) as temporary, temporary.open("w+b") as stream:
        start = _head(stream, 0, size)

        def put(at: int, pixels: Bytes) -> None:
            # not mapped: where a disk is full, writing raises, but a mapping kills the process
            stream.seek(start + at * row)
            stream.write(pixels.data)

        met = _decode(pictures, wanted, size, put)
        good = met.good
        for to, origin in enumerate(met.row[number] for number in good):
            if to != origin:  # some before it are missing or damaged
                stream.seek(start + origin * row)
                content = stream.read(row)
                stream.seek(start + to * row)
                stream.write(content)
        stream.truncate(start + len(good) * row)
        _head(stream, len(good), size)
        digest = hashlib.sha256()
        stream.seek(start)
        while part := stream.read(CHUNK):
            digest.update(part)
    record = {
        "source": str(pictures.path.absolute()),
        "fingerprint": pictures.fingerprint,
        "sha256": digest.hexdigest(),
        "files_sha256": met.sha256,
        "damaged": met.damaged,
        "numbers": good,
    }
    write_bytes(path.with_suffix(".json"), json.dumps(record).encode())
    _tidy(path.parent, record)


def _in_memory(pictures: Pictures, wanted: Sequence[int], size: int) -> Decoded:
    pixels = np.empty((len(wanted), CHANNELS, size, size), np.uint8)
    met = _decode(pictures, wanted, size, pixels.__setitem__)
    if len(met.good) < len(wanted):
        pixels = pixels[[met.row[number] for number in met.good]]
    return Decoded(pixels, np.array(met.good, dtype=np.int64), met.damaged, met.sha256)


class _Met:
    """Which of the wanted pictures came, and how."""

    def __init__(self, wanted: Sequence[int]) -> None:
        self.row = {number: row for row, number in enumerate(wanted)}
        self.damaged: dict[int, str] = {}
        self.sums: dict[int, bytes] = {}

    @property
    def good(self) -> list[int]:
        """Those to use, in the order that was asked for."""
        return [number for number in self.row if number in self.sums]

    @property
    def sha256(self) -> str:
        """The checksum of their files' checksums."""
        return hashlib.sha256(b"".join(self.sums[number] for number in self.good)).hexdigest()


def _decode(
    pictures: Pictures, wanted: Sequence[int], size: int, put: Callable[[int, Bytes], None]
) -> _Met:
    """Decode all that is there, and put every good picture into its row."""
    met = _Met(wanted)
    with closing(decode_all(pictures, wanted, size)) as faces:
        for face in faces:
            if face.pixels is None:
                met.damaged[face.number] = face.error
            else:
                met.sums[face.number] = face.sha256
                put(met.row[face.number], face.pixels)
    if not met.sums:
        first = next(iter(met.damaged.items()), None)
        found = "none" if first is None else f"none that can be decoded ({first[1]})"
        raise DataError(
            f"`{pictures.path}` must hold the listed pictures, such as {wanted[0]:06d}.jpg, "
            f"found {found}: name the folder of a complete copy"
        )
    return met


def _head(stream: IO[bytes], rows: int, size: int) -> int:
    """Write the head of a .npy file, which has room for any number of rows; where it ends."""
    stream.seek(0)
    shape = (rows, CHANNELS, size, size)
    head: dict[str, Any] = {"descr": "|u1", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, head)
    return stream.tell()


def _tidy(folder: Path, record: Mapping[str, Any]) -> None:
    """Remove what a source was before it changed, and what a killed process left behind."""
    for other in folder.glob("faces-*.json"):
        with suppress(OSError, ValueError, KeyError, TypeError):
            old = json.loads(other.read_text("utf-8"))
            if old["source"] == record["source"] and old["fingerprint"] != record["fingerprint"]:
                other.unlink()
                other.with_suffix(".npy").unlink()
    for left in folder.glob(".faces-*.tmp"):
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > ABANDONED:
                left.unlink()
