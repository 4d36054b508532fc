"""Decode pictures on all cores, and keep them as one mapped file in the cache."""

import hashlib
import io
import json
import os
import time
import warnings
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from paretocosmos.errors import DataError, require_extra
from paretocosmos.io import progress
from paretocosmos.io.files import get_cache_folder, one_line, replace_file, write_bytes
from paretocosmos.problems.faces.archives import Pictures, Read
from paretocosmos.problems.images.files import Bytes

# Change it with anything that changes a byte: it is part of the cache's key.
TRANSFORM = 1

# Pictures per task: small ones are decoded in less time than it takes to hand one to a thread.
PICTURES_PER_TASK = 16

# Pixels of a picture at most, which take 100 MB, and how much longer than wide it may be: the
# longer side is brought to so many times the size asked for.
MAX_PIXELS, MAX_ASPECT = 33_000_000, 20


@dataclass(frozen=True, eq=False)
class Face:
    """One decoded picture.

    Attributes:
        number: the picture's.
        sha256: of the file.
        pixels: ``[3, size, size]``; `None` if the file is damaged.
        error: what is wrong with a damaged one.
    """

    number: int
    sha256: bytes
    pixels: Bytes | None
    error: str = ""


def decode_picture(content: bytes, size: int) -> Bytes:
    """Decode a picture to ``[3, size, size]``: the shorter edge brought to `size`, then the centre.

    Pillow's bilinear filter looks at all pixels that a new one covers, so it does not alias.
    """
    from PIL import Image

    with Image.open(io.BytesIO(content)) as file:  # reads its head
        wide, high = file.size
        if wide * high > MAX_PIXELS or max(wide, high) > MAX_ASPECT * min(wide, high):
            raise ValueError(
                f"a picture of {wide} x {high}; at most {MAX_PIXELS:,} pixels and a side "
                f"{MAX_ASPECT} times the other are decoded"
            )
        image = file.convert("RGB")
    short = min(image.size)
    width, height = (size if side == short else size * side // short for side in image.size)
    image = image.resize((width, height), Image.Resampling.BILINEAR)
    left, top = round((width - size) / 2), round((height - size) / 2)
    centre = image.crop((left, top, left + size, top + size))
    return np.ascontiguousarray(np.asarray(centre).transpose(2, 0, 1))


def decode_all(pictures: Pictures, wanted: Sequence[int], size: int) -> Generator[Face, None, None]:
    """Decode the wanted pictures that exist, in no order, with a progress bar on stderr."""
    require_extra("PIL", "images", f"decoding `{pictures.path}`")
    workers = os.cpu_count() or 1
    total = len(wanted if pictures.numbers is None else pictures.numbers.intersection(wanted))
    contents = pictures.contents(wanted)
    tasks = iter(lambda: list(islice(contents, PICTURES_PER_TASK)), [])
    running: deque[Future[list[Face]]] = deque()
    # Pillow decodes and resizes outside the interpreter's lock
    with (
        progress.progress_bar("decoding, this once", total) as advance,
        ThreadPoolExecutor(workers) as pool,
    ):
        try:
            for task in tasks:
                running.append(pool.submit(_decode_task, task, size))
                if len(running) > 4 * workers:  # what is read ahead stays small
                    yield from _collect(running.popleft(), advance)
            while running:
                yield from _collect(running.popleft(), advance)
        finally:
            for future in running:
                future.cancel()


def _collect(future: "Future[list[Face]]", advance: Callable[[int], None]) -> list[Face]:
    faces = future.result()
    advance(len(faces))
    return faces


def _decode_task(task: list[tuple[int, Read]], size: int) -> list[Face]:
    from PIL import UnidentifiedImageError

    faces = []
    for number, read in task:
        content = read()
        sha256 = hashlib.sha256(content).digest()
        try:
            faces.append(Face(number, sha256, decode_picture(content, size)))
        except MemoryError:
            raise
        except UnidentifiedImageError:  # whose message holds an address in memory
            faces.append(Face(number, sha256, None, "no picture" if content else "no bytes"))
        except Exception as error:  # a damaged file can raise anything
            faces.append(Face(number, sha256, None, one_line(error)))
    return faces


CHANNELS = 3
CHUNK = 1 << 20
ABANDONED = 24 * 3600  # seconds after which a temporary file is not in use any more


@dataclass(frozen=True, eq=False)
class DecodedPictures:
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


def load_pictures(pictures: Pictures, wanted: Sequence[int], size: int) -> DecodedPictures:
    """Load the wanted pictures that exist from the cache, or decode and store them.

    Args:
        pictures: a folder or an archive.
        wanted: numbers, each once; the rows come in this order.
        size: the side of a picture.
    """
    inputs = [TRANSFORM, size, pictures.fingerprint, *wanted]
    key = hashlib.sha256(json.dumps(inputs).encode()).hexdigest()[:16]
    path = get_cache_folder() / "celeba" / f"faces-{size}-{key}.npy"
    cached = _read(path, size)
    if cached is None:
        _announce(pictures, wanted, size, path.parent)
        try:
            _write(path, pictures, wanted, size)
            cached = _read(path, size)
        except OSError as error:  # of the cache: a source that fails raises a DataError
            why = error.__cause__ or error
            warnings.warn(
                f"the decoded pictures cannot be stored in `{path.parent}` ({why}), so they stay "
                "in memory and are decoded again next time: make room, or set XDG_CACHE_HOME to a "
                "writable folder",
                UserWarning,
                stacklevel=2,
            )
    return _in_memory(pictures, wanted, size) if cached is None else cached


def _announce(pictures: Pictures, wanted: Sequence[int], size: int, folder: Path) -> None:
    """One line for a log that decoding begins; a terminal has a bar."""
    if not progress.get_console().is_terminal:
        count = len(wanted if pictures.numbers is None else pictures.numbers.intersection(wanted))
        said = f"decoding {count:,} pictures to {size} x {size} into `{folder}`, this once"
        progress.get_console().print(said, markup=False, soft_wrap=True)


def _read(path: Path, size: int) -> DecodedPictures | None:
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
    return DecodedPictures(pixels, numbers, damaged, sha256)


def _write(path: Path, pictures: Pictures, wanted: Sequence[int], size: int) -> None:
    """Decode into a temporary file, bring its rows together, then rename; the record comes last."""
    path.parent.mkdir(parents=True, exist_ok=True)
    row = CHANNELS * size * size
    # flushed to the disk: the checksum of the pixels is not computed again
    with replace_file(path) as temporary, temporary.open("w+b") as stream:
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


def _in_memory(pictures: Pictures, wanted: Sequence[int], size: int) -> DecodedPictures:
    pixels = np.empty((len(wanted), CHANNELS, size, size), np.uint8)
    met = _decode(pictures, wanted, size, pixels.__setitem__)
    if len(met.good) < len(wanted):
        pixels = pixels[[met.row[number] for number in met.good]]
    return DecodedPictures(pixels, np.array(met.good, dtype=np.int64), met.damaged, met.sha256)


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
