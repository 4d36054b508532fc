"""From picture files to bytes of one size, on all cores."""

import hashlib
import io
import os
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice

import numpy as np

from paretocosmos.errors import require_extra
from paretocosmos.io.files import one_line
from paretocosmos.io.progress import progress_bar
from paretocosmos.problems.faces.archives import Pictures, Read
from paretocosmos.problems.images.idx import Bytes

__all__ = ["TRANSFORM", "Face", "decode", "decode_all"]

# Change it with anything that changes a byte: it is part of the cache's key.
TRANSFORM = 1

# Pictures per task: small ones are decoded in less time than it takes to hand one to a thread.
TOGETHER = 16

# Pixels of a picture at most, which take 100 MB, and how much longer than wide it may be: the
# longer side is brought to so many times the size asked for.
MOST_PIXELS, LONGEST = 33_000_000, 20


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


def decode(content: bytes, size: int) -> Bytes:
    """A picture ``[3, size, size]``: the shorter edge brought to `size`, then the centre.

    Pillow's bilinear filter looks at all pixels that a new one covers, so it does not alias.
    """
    from PIL import Image

    with Image.open(io.BytesIO(content)) as file:  # reads its head
        wide, high = file.size
        if wide * high > MOST_PIXELS or max(wide, high) > LONGEST * min(wide, high):
            raise ValueError(
                f"a picture of {wide} x {high}; at most {MOST_PIXELS:,} pixels and a side "
                f"{LONGEST} times the other are decoded"
            )
        image = file.convert("RGB")
    short = min(image.size)
    width, height = (size if side == short else size * side // short for side in image.size)
    image = image.resize((width, height), Image.Resampling.BILINEAR)
    left, top = round((width - size) / 2), round((height - size) / 2)
    centre = image.crop((left, top, left + size, top + size))
    return np.ascontiguousarray(np.asarray(centre).transpose(2, 0, 1))


def decode_all(pictures: Pictures, wanted: Sequence[int], size: int) -> Generator[Face, None, None]:
    """The wanted pictures that are there, in no order; a bar on stderr shows how far it is."""
    require_extra("PIL", "images", f"decoding `{pictures.path}`")
    workers = os.cpu_count() or 1
    total = len(wanted if pictures.numbers is None else pictures.numbers.intersection(wanted))
    contents = pictures.contents(wanted)
    tasks = iter(lambda: list(islice(contents, TOGETHER)), [])
    running: deque[Future[list[Face]]] = deque()
    # Pillow decodes and resizes outside the interpreter's lock
    with progress_bar("decoding, this once", total) as advance, ThreadPoolExecutor(workers) as pool:
        try:
            for task in tasks:
                running.append(pool.submit(_decode_task, task, size))
                if len(running) > 4 * workers:  # what is read ahead stays small
                    yield from _decoded(running.popleft(), advance)
            while running:
                yield from _decoded(running.popleft(), advance)
        finally:
            for future in running:
                future.cancel()


def _decoded(future: "Future[list[Face]]", advance: Callable[[int], None]) -> list[Face]:
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
            faces.append(Face(number, sha256, decode(content, size)))
        except MemoryError:
            raise
        except UnidentifiedImageError:  # whose message holds an address in memory
            faces.append(Face(number, sha256, None, "no picture" if content else "no bytes"))
        except Exception as error:  # a damaged file can raise anything
            faces.append(Face(number, sha256, None, one_line(error)))
    return faces
