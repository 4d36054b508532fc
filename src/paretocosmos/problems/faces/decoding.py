"""Decode CelebA's pictures on all cores, and keep them as one mapped file in the cache."""

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
from paretocosmos.io.external import CHUNK
from paretocosmos.io.files import get_cache_folder, one_line, replace_file, write_bytes
from paretocosmos.problems.faces.files import Pictures, Read
from paretocosmos.problems.images.files import Bytes

# Change it with anything that changes a byte: it is part of the cache's key.
TRANSFORM = 1

# Pictures per task: small ones are decoded in less time than it takes to hand one to a thread.
PICTURES_PER_TASK = 16

# Limits: the pixels of a picture, which take 100 MB, and the ratio of its sides, since the longer
# one is brought to that many times the size asked for.
MAX_PIXELS, MAX_ASPECT = 33_000_000, 20


CHANNELS = 3
ABANDONED = 24 * 3600  # seconds after which a temporary file is not in use any more


@dataclass(frozen=True, eq=False)
class Face:
    """One decoded picture.

    Attributes:
        number: the picture's.
        sha256: of the file.
        pixels: ``[3, size, size]``; `None` if the file is damaged.
        error: the reason, if the file is damaged.
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
        # a few files are grey or have a palette
        image = file.convert("RGB")
    short = min(image.size)
    width, height = (size if side == short else size * side // short for side in image.size)
    image = image.resize((width, height), Image.Resampling.BILINEAR)
    left, top = round((width - size) / 2), round((height - size) / 2)
    centre = image.crop((left, top, left + size, top + size))
    return np.ascontiguousarray(np.asarray(centre).transpose(2, 0, 1))


def _decode_all(
    pictures: Pictures, wanted: Sequence[int], size: int
) -> Generator[Face, None, None]:
    """Decode the wanted pictures that exist, in no order, with a progress bar on stderr."""
    require_extra("PIL", "images", f"decoding `{pictures.path}`")
    workers = os.cpu_count() or 1
    total = _count_present(pictures, wanted)
    contents = pictures.contents(wanted)
    tasks = iter(lambda: list(islice(contents, PICTURES_PER_TASK)), [])
    running: deque[Future[list[Face]]] = deque()
    # threads are enough: Pillow decodes and resizes outside the interpreter's lock
    with (
        progress.progress_bar("decoding, this once", total) as advance,
        ThreadPoolExecutor(workers) as pool,
    ):
        try:
            for task in tasks:
                running.append(pool.submit(_decode_task, task, size))
                if len(running) > 4 * workers:  # limits the bytes that are read ahead
                    faces = running.popleft().result()
                    advance(len(faces))
                    yield from faces
            while running:
                faces = running.popleft().result()
                advance(len(faces))
                yield from faces
        finally:
            for future in running:
                future.cancel()


def _count_present(pictures: Pictures, wanted: Sequence[int]) -> int:
    """Return how many of the wanted pictures exist, as far as that is known without reading."""
    return len(wanted if pictures.numbers is None else pictures.numbers.intersection(wanted))


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


@dataclass(frozen=True, eq=False)
class DecodedPictures:
    """Pictures of one size, in the order that was asked for.

    Attributes:
        pixels: ``[n, 3, size, size]``, mapped from the cache where there is one; changes made to
            it stay in memory.
        numbers: ``[n]``, the pictures'.
        damaged: the reasons of those that cannot be decoded, by number.
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
    cached = _read_cache(path, size)
    if cached is None:
        _announce_decoding(pictures, wanted, size, path.parent)
        try:
            _write_cache(path, pictures, wanted, size)
            cached = _read_cache(path, size)
        except OSError as error:  # of the cache: a source that fails raises a DataError
            # the system's own reason, where our error wraps it
            why = error.__cause__ or error
            warnings.warn(
                f"the decoded pictures cannot be stored in `{path.parent}` ({why}), so they stay "
                "in memory and are decoded again next time: make room, or set XDG_CACHE_HOME to a "
                "writable folder",
                UserWarning,
                stacklevel=2,
            )
    return _decode_in_memory(pictures, wanted, size) if cached is None else cached


def _announce_decoding(pictures: Pictures, wanted: Sequence[int], size: int, folder: Path) -> None:
    """Print a line to a log before minutes of decoding; a terminal has a bar."""
    console = progress.get_console()
    if not console.is_terminal:
        count = _count_present(pictures, wanted)
        line = f"decoding {count:,} pictures to {size} x {size} into `{folder}`, this once"
        console.print(line, markup=False, soft_wrap=True)


def _read_cache(path: Path, size: int) -> DecodedPictures | None:
    """Return the cached pictures, or `None` if they are absent or incomplete.

    The checksum of the pixels is written beside them, to be compared by hand. It is not computed
    here: that would read 2.5 GB at each start. A torn file has another length, and the record is
    written last, when the pixels are on the disk.
    """
    try:
        record = json.loads(path.with_suffix(".json").read_text("utf-8"))
        numbers = np.array(record["numbers"], dtype=np.int64)
        damaged = {int(number): str(reason) for number, reason in record["damaged"].items()}
        sha256 = str(record["files_sha256"])
        pixels = np.load(path, mmap_mode="c", allow_pickle=False)  # nothing is copied
        shape = (len(numbers), CHANNELS, size, size)
        length = pixels.offset + pixels.nbytes
        is_valid = pixels.shape == shape and pixels.dtype == np.uint8 and len(numbers) > 0
        if not is_valid or path.stat().st_size != length:
            return None
    except Exception:  # a damaged file can raise anything; it is made anew
        return None
    return DecodedPictures(pixels, numbers, damaged, sha256)


def _write_cache(path: Path, pictures: Pictures, wanted: Sequence[int], size: int) -> None:
    """Decode into a temporary file, bring its rows together, then rename; the record comes last."""
    path.parent.mkdir(parents=True, exist_ok=True)
    row = CHANNELS * size * size
    # flushed to the disk: the checksum of the pixels is not computed again
    with replace_file(path) as temporary, temporary.open("w+b") as stream:
        start = _write_header(stream, 0, size)

        def put(index: int, pixels: Bytes) -> None:
            # not mapped: where a disk is full, writing raises, but a mapping kills the process
            stream.seek(start + index * row)
            stream.write(pixels.data)

        decoded = _decode(pictures, wanted, size, put)
        good = decoded.good
        for target, origin in enumerate(decoded.row[number] for number in good):
            if target != origin:  # some before it are missing or damaged
                stream.seek(start + origin * row)
                content = stream.read(row)
                stream.seek(start + target * row)
                stream.write(content)
        stream.truncate(start + len(good) * row)
        # the number of rows is known only now; it does not change the length of the header
        _write_header(stream, len(good), size)
        digest = hashlib.sha256()
        stream.seek(start)
        while chunk := stream.read(CHUNK):
            digest.update(chunk)
    record = {
        "source": str(pictures.path.absolute()),
        "fingerprint": pictures.fingerprint,
        "sha256": digest.hexdigest(),
        "files_sha256": decoded.sha256,
        "damaged": decoded.damaged,
        "numbers": good,
    }
    write_bytes(path.with_suffix(".json"), json.dumps(record).encode())
    _remove_stale(path.parent, record)


def _decode_in_memory(pictures: Pictures, wanted: Sequence[int], size: int) -> DecodedPictures:
    pixels = np.empty((len(wanted), CHANNELS, size, size), np.uint8)
    decoded = _decode(pictures, wanted, size, pixels.__setitem__)
    if len(decoded.good) < len(wanted):
        pixels = pixels[[decoded.row[number] for number in decoded.good]]
    numbers = np.array(decoded.good, dtype=np.int64)
    return DecodedPictures(pixels, numbers, decoded.damaged, decoded.sha256)


class _Decoded:
    """The wanted pictures that were decoded, and those that are damaged."""

    def __init__(self, wanted: Sequence[int]) -> None:
        self.row = {number: row for row, number in enumerate(wanted)}
        self.damaged: dict[int, str] = {}
        self.sums: dict[int, bytes] = {}

    @property
    def good(self) -> list[int]:
        """The numbers of intact pictures, in the order that was asked for."""
        return [number for number in self.row if number in self.sums]

    @property
    def sha256(self) -> str:
        """The checksum of their files' checksums."""
        return hashlib.sha256(b"".join(self.sums[number] for number in self.good)).hexdigest()


def _decode(
    pictures: Pictures, wanted: Sequence[int], size: int, put: Callable[[int, Bytes], None]
) -> _Decoded:
    """Decode all that exist, and put every intact picture into its row."""
    decoded = _Decoded(wanted)
    with closing(_decode_all(pictures, wanted, size)) as faces:
        for face in faces:
            if face.pixels is None:
                decoded.damaged[face.number] = face.error
            else:
                decoded.sums[face.number] = face.sha256
                put(decoded.row[face.number], face.pixels)
    if not decoded.sums:
        reason = next(iter(decoded.damaged.values()), None)
        contents = "none" if reason is None else f"none that can be decoded ({reason})"
        raise DataError(
            f"`{pictures.path}` must hold the listed pictures, such as {wanted[0]:06d}.jpg, "
            f"found {contents}: name the folder of a complete copy"
        )
    return decoded


def _write_header(stream: IO[bytes], rows: int, size: int) -> int:
    """Write the header of a .npy file and return its length, the same for any number of rows."""
    stream.seek(0)
    shape = (rows, CHANNELS, size, size)
    header: dict[str, Any] = {"descr": "|u1", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, header)
    return stream.tell()


def _remove_stale(folder: Path, record: Mapping[str, Any]) -> None:
    """Remove the cache of a source that has changed since, and files of killed processes."""
    for record_path in folder.glob("faces-*.json"):
        with suppress(OSError, ValueError, KeyError, TypeError):
            old = json.loads(record_path.read_text("utf-8"))
            if old["source"] == record["source"] and old["fingerprint"] != record["fingerprint"]:
                record_path.unlink()
                record_path.with_suffix(".npy").unlink()
    for temporary in folder.glob(".faces-*.tmp"):
        with suppress(OSError):
            if time.time() - temporary.stat().st_mtime > ABANDONED:
                temporary.unlink()
