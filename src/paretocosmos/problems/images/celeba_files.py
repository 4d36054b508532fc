"""The files of CelebA: find its pictures and lists, decode the pictures on all cores once."""

import hashlib
import io
import json
import os
import warnings
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from paretocosmos.errors import DataError, require_extra
from paretocosmos.io.files import (
    VARIABLE,
    get_cache_folder,
    list_data_folders,
    make_folder,
    one_line,
    replace_file,
    user_path,
    write_bytes,
)
from paretocosmos.io.progress import progress_bar
from paretocosmos.problems.images.pairs import Bytes

HOME = "https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html"
PICTURES, LABELS, PARTITION = (
    "img_align_celeba",
    "list_attr_celeba.txt",
    "list_eval_partition.txt",
)

TOTAL = 202_599
LAST_TRAIN, LAST_VAL = 162_770, 182_637  # of the official partition; the rest is test
ATTRIBUTES = (
    *("5_o_Clock_Shadow", "Arched_Eyebrows", "Attractive", "Bags_Under_Eyes", "Bald"),
    *("Bangs", "Big_Lips", "Big_Nose", "Black_Hair", "Blond_Hair", "Blurry", "Brown_Hair"),
    *("Bushy_Eyebrows", "Chubby", "Double_Chin", "Eyeglasses", "Goatee", "Gray_Hair"),
    *("Heavy_Makeup", "High_Cheekbones", "Male", "Mouth_Slightly_Open", "Mustache"),
    *("Narrow_Eyes", "No_Beard", "Oval_Face", "Pale_Skin", "Pointy_Nose"),
    *("Receding_Hairline", "Rosy_Cheeks", "Sideburns", "Smiling", "Straight_Hair"),
    *("Wavy_Hair", "Wearing_Earrings", "Wearing_Hat", "Wearing_Lipstick"),
    *("Wearing_Necklace", "Wearing_Necktie", "Young"),
)

# Change it with anything that changes a byte: it is part of the cache's key.
TRANSFORM = 2
# Pictures per task: one is decoded in hardly more time than it takes to hand it to a thread.
PICTURES_PER_TASK = 16
# Tasks per thread that are decoded before their pixels are written, which limits the memory.
TASKS_AHEAD = 8
CHANNELS = 3


@dataclass(frozen=True)
class CelebaFiles:
    """The files of a copy of CelebA.

    Attributes:
        pictures: the folder of pictures.
        labels: the list of all attributes.
        partition: the list of the partition, if there is one.
    """

    pictures: Path
    labels: Path
    partition: Path | None


def find_celeba(data: str | None) -> CelebaFiles:
    """Return the first complete copy; raise an error that names every folder searched."""
    if data is not None and not user_path(data).is_dir():
        why = "is no folder" if user_path(data).exists() else "does not exist"
        raise DataError(
            f"`data` must be a folder with CelebA, found `{data}`, which {why}: name the folder "
            "with its pictures and lists"
        )
    parents = [
        parent
        for folder in list_data_folders(data)
        for parent in (folder / "celeba", folder / "CelebA", folder)
    ]
    for parent in parents:
        pictures, labels = _find(parent, "Img", PICTURES), _find(parent, "Anno", LABELS)
        if pictures is not None and labels is not None:
            return CelebaFiles(pictures, labels, _find(parent, "Eval", PARTITION))
    unset = "" if data is not None or os.environ.get(VARIABLE) else f" (${VARIABLE} is not set)"
    searched = ", ".join(f"`{parent}`" for parent in dict.fromkeys(parents))
    raise DataError(
        f"CelebA is the unpacked folder `{PICTURES}` (also in `Img/`), `{LABELS}` (also in "
        f"`Anno/`) and, if there, `{PARTITION}` (also in `Eval/`), found no such pair of pictures "
        f"and labels in {searched}{unset}: its terms (research only, no redistribution) forbid an "
        f"automatic download, so get it from {HOME} and name its folder with `data` or ${VARIABLE}"
    )


def _find(folder: Path, subfolder: str, name: str) -> Path | None:
    """Return a path as published, in a folder of its own, or else beside the others."""
    candidates = (folder / subfolder / name, folder / name)
    return next((path for path in candidates if path.exists()), None)


Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PictureLists:
    """Pictures with their attributes; train comes first, then val, then test, each by number.

    Attributes:
        numbers: ``[n]``.
        labels: ``[n, 40]``, 0 or 1, in the order of `ATTRIBUTES`.
        parts: ``[n]``, 0 for train, 1 for val, 2 for test.
        partition: the source of the parts, in words.
    """

    numbers: Numbers
    labels: npt.NDArray[np.uint8]
    parts: Numbers
    partition: str


def read_lists(files: CelebaFiles) -> PictureLists:
    """Read the lists of a copy of CelebA; pictures that the partition does not list are none."""
    count, _, text = _read_text(files.labels).partition("\n")
    names, _, body = text.partition("\n")
    if names.split() != list(ATTRIBUTES):
        _refuse_list(files.labels, "name CelebA's 40 attributes in its second line")
    table = _parse_table(files.labels, len(ATTRIBUTES), body)
    if count.strip() != str(len(table)):
        _refuse_list(
            files.labels, f"list as many pictures as its first line says, found {len(table):,}"
        )
    numbers, labels = table[:, 0], (table[:, 1:] > 0).astype(np.uint8)
    # the last picture of a part belongs to it: `side` is left by default
    parts, source = np.searchsorted([LAST_TRAIN, LAST_VAL], numbers), "official partition"
    if files.partition is not None:
        listed, its_parts = _parse_table(files.partition, 1, _read_text(files.partition)).T
        if not np.isin(its_parts, (0, 1, 2)).all():
            _refuse_list(files.partition, "say 0, 1 or 2 of every picture")
        part_of = dict(zip(listed.tolist(), its_parts.tolist(), strict=True))
        # -1 where the list lacks a picture
        own_parts = np.array([part_of.get(number, -1) for number in numbers.tolist()], np.int64)
        listed = own_parts >= 0  # one that lists fewer makes a smaller problem
        if not np.array_equal(own_parts[listed], parts[listed]):
            source = f"partition of {files.partition.name}"
        numbers, labels, parts = numbers[listed], labels[listed], own_parts[listed]
    # by part, then by number: the last key counts first
    order = np.lexsort((numbers, parts))
    return PictureLists(numbers[order], labels[order], parts[order], source)


def _read_text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        _refuse_list(path, f"be text ({one_line(error)})")


def _parse_table(path: Path, width: int, body: str) -> Numbers:
    """Return the numbers of a list ``[pictures, 1 + width]``, that of the picture first."""
    rule = f"hold names such as 000001.jpg, each with {width} whole numbers"
    try:
        # names become numbers: `000001.jpg` is 1; four times as fast as `loadtxt`, which matters
        # with eight million of them
        with warnings.catch_warnings(action="error"):
            values = np.fromstring(body.replace(".jpg", ""), dtype=np.int64, sep=" ")
        rows = sum(not line.isspace() for line in body.splitlines() if line)
        table: Numbers = values.reshape(rows, 1 + width)
    except (ValueError, DeprecationWarning):
        _refuse_list(path, rule)
    return table


def _refuse_list(path: Path, rule: str) -> NoReturn:
    raise DataError(f"`{path}` must {rule}: get a fresh copy")


def load_pictures(folder: Path, numbers: Sequence[int], size: int) -> tuple[Bytes, str]:
    """Load pictures from the cache, or decode and store them first.

    Args:
        folder: with a file such as ``000001.jpg`` for each.
        numbers: which pictures, each once; the rows come in this order.
        size: the side of a picture.

    Returns:
        The pixels ``[n, 3, size, size]``, mapped from the cache, so that changes stay in memory;
        and the checksum of the picture files, since decoders may differ by a grey level.
    """
    paths = [folder / f"{number:06d}.jpg" for number in numbers]
    cache = get_cache_folder() / "celeba" / f"faces-{size}-{_hash_states(paths, size)}.npy"
    shape = (len(paths), CHANNELS, size, size)
    cached = _read_cache(cache, shape)
    if cached is None:
        _write_cache(cache, paths, shape)
        cached = _read_cache(cache, shape)
    assert cached is not None
    return cached


def _hash_states(paths: Sequence[Path], size: int) -> str:
    """Return a hash of names, sizes and times, without reading files; refuse missing ones."""
    digest, missing = hashlib.sha256(f"{TRANSFORM} {size}".encode()), []
    for path in paths:
        try:
            state = path.stat()
        except OSError:
            missing.append(path)
        else:
            digest.update(f" {path.name} {state.st_size} {state.st_mtime_ns}".encode())
    if missing:
        raise DataError(
            f"`{paths[0].parent}` must hold every listed picture, found {len(missing):,} missing, "
            f"{missing[0].name} the first: add them, or list those that you have in `{PARTITION}`"
        )
    return digest.hexdigest()[:16]


def _read_cache(path: Path, shape: tuple[int, ...]) -> tuple[Bytes, str] | None:
    """Return the cached pictures, or `None` if they are absent or incomplete.

    Their checksum is not computed: that would read 2.5 GB at each start. The record is written
    last, when the pixels are on the disk.
    """
    try:
        sha256 = str(json.loads(path.with_suffix(".json").read_text("utf-8"))["files_sha256"])
        pixels = np.load(path, mmap_mode="c", allow_pickle=False)  # nothing is copied
    except (OSError, ValueError, KeyError, EOFError):
        return None
    return (pixels, sha256) if pixels.shape == shape else None


def _write_cache(path: Path, paths: Sequence[Path], shape: tuple[int, ...]) -> None:
    """Decode pictures into the array of a .npy file, and write a record of it."""
    digest = hashlib.sha256()
    way_out = "make room, or set XDG_CACHE_HOME to a writable folder"
    with (
        make_folder(path.parent),
        replace_file(path, way_out=way_out) as temporary,
        temporary.open("wb") as stream,
        closing(_decode_all(paths, shape[-1])) as blocks,
    ):
        header = {"descr": "|u1", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(stream, header)
        for pixels, sums in blocks:
            # not mapped: where a disk is full, writing raises, but a mapping kills the process
            stream.write(pixels)
            digest.update(sums)
    record = {"files_sha256": digest.hexdigest()}
    write_bytes(path.with_suffix(".json"), json.dumps(record).encode())


def _decode_all(paths: Sequence[Path], size: int) -> Generator[tuple[bytes, bytes]]:
    """Yield the pixels of some pictures and the checksums of their files, in order."""
    require_extra("PIL", "images", f"decoding `{paths[0]}`")
    workers = os.cpu_count() or 1
    starts = range(0, len(paths), PICTURES_PER_TASK)
    tasks = iter([paths[start : start + PICTURES_PER_TASK] for start in starts])
    # threads are enough: Pillow decodes and resizes outside the interpreter's lock
    with (
        progress_bar("decoding, this once", len(paths)) as advance,
        ThreadPoolExecutor(workers) as pool,
    ):
        while block := list(islice(tasks, TASKS_AHEAD * workers)):
            yield from pool.map(partial(_decode_task, size=size), block)
            advance(sum(map(len, block)))


def _decode_task(paths: Sequence[Path], size: int) -> tuple[bytes, bytes]:
    from PIL import UnidentifiedImageError

    pixels, sums = [], []
    for path in paths:
        try:
            content = path.read_bytes()
            pixels.append(decode_picture(content, size).tobytes())
        except MemoryError:
            raise
        except Exception as error:  # a damaged file can raise anything
            # the message of Pillow's own error holds an address in memory
            known = not isinstance(error, UnidentifiedImageError)
            reason = one_line(error) if known else "it is no picture"
            raise DataError(
                f"`{path}` cannot be decoded ({reason}): get a fresh copy, or leave it out of "
                f"`{PARTITION}`"
            ) from error
        sums.append(hashlib.sha256(content).digest())
    return b"".join(pixels), b"".join(sums)


def decode_picture(content: bytes, size: int) -> Bytes:
    """Decode a picture to ``[3, size, size]``: the shorter edge brought to `size`, then the centre.

    Pillow's bilinear filter looks at all pixels that a new one covers, so it does not alias.
    """
    from PIL import Image

    with Image.open(io.BytesIO(content)) as file:
        # a few files are grey or have a palette
        image = file.convert("RGB")
    short = min(image.size)
    width, height = (size if side == short else size * side // short for side in image.size)
    image = image.resize((width, height), Image.Resampling.BILINEAR)
    left, top = round((width - size) / 2), round((height - size) / 2)
    centre = image.crop((left, top, left + size, top + size))
    return np.ascontiguousarray(np.asarray(centre).transpose(2, 0, 1))
