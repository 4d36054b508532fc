"""The files of CelebA: where its pictures and lists are, and what the lists hold."""

import os
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from paretocosmos.errors import ConfigurationError, DataError, unknown
from paretocosmos.io.external import LARGEST, check_size, read_unpacked
from paretocosmos.io.files import VARIABLE, list_data_folders, one_line, user_path
from paretocosmos.problems.faces.archives import ARCHIVES, parse_number

HOME = "https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html"
META = "celeba_meta.npz"
# The published pictures, then those brought to 64 x 64 that `META` describes.
FULL, SMALL = "img_align_celeba", "img_align_celeba_64"
LISTS = (".txt", ".csv", ".txt.gz", ".csv.gz")


@dataclass(frozen=True)
class CelebaFiles:
    """What a copy of CelebA is made of.

    Attributes:
        pictures: a folder or an archive.
        attributes: the list of all attributes, or `META`.
        partition: the list of the partition, if there is one beside a list of attributes.
    """

    pictures: Path
    attributes: Path
    partition: Path | None


def find_celeba(data: str | None) -> CelebaFiles:
    """The first complete copy, or an error that names every place and what is expected there."""
    if data is not None and not user_path(data).is_dir():
        why = "is no folder" if user_path(data).exists() else "does not exist"
        raise DataError(
            f"`data` must be a folder with CelebA, found `{data}`, which {why}: name the folder "
            "with its pictures and lists"
        ).with_hint({"data": None})
    places = [
        place
        for folder in list_data_folders(data)
        for place in (folder / "celeba", folder / "CelebA", folder)
    ]
    half = ""
    for place in places:
        pictures = next(_find_pictures(place), None)
        attributes = _find_attributes(place, pictures)
        if pictures is not None and attributes is not None:
            alone = attributes.name == META
            return CelebaFiles(pictures, attributes, None if alone else _find_partition(place))
        if pictures is not None:
            half = half or f" (only `{pictures}`, but no list beside it)"
        elif attributes is not None:
            half = half or f" (only `{attributes}`, but no pictures beside it)"
    named = os.environ.get(VARIABLE)
    unset = "" if data is not None or named else f" (${VARIABLE} is not set)"
    looked = ", ".join(f"`{place}`" for place in dict.fromkeys(places))
    raise DataError(
        f"CelebA consists of its aligned pictures, `{FULL}` as a folder or {', '.join(ARCHIVES)} "
        "(also in "
        "`Img/`), and `list_attr_celeba.txt` or .csv (also in `Anno/`), and, if there, "
        f"`list_eval_partition` (also in `Eval/`); or `{META}` and `{SMALL}`, packed or not "
        f"(`{SMALL}.tar.gz`); found no such pair in {looked}{unset}{half}: its terms (research "
        f"only, no redistribution) forbid an automatic download, so get it from {HOME} and name "
        f"its folder with `data` or ${VARIABLE}"
    ).with_hint({"data": None})


def _find_pictures(place: Path) -> Iterator[Path]:
    """Folders and archives of pictures, the unpacked and the published ones first."""
    for stem in (FULL, SMALL):
        # Kaggle's zip unpacks to a folder in a folder of the same name
        for folder in (place / "Img" / stem, place / stem, place / stem / stem):
            if _holds_pictures(folder):
                yield folder
        for parent in (place / "Img", place):
            for ending in ARCHIVES:
                if (parent / f"{stem}{ending}").is_file():
                    yield parent / f"{stem}{ending}"


def _holds_pictures(folder: Path) -> bool:
    if not folder.is_dir():
        return False
    with os.scandir(folder) as entries:
        return any(parse_number(entry.name) is not None for entry in entries)


def _find_attributes(place: Path, pictures: Path | None) -> Path | None:
    """`META` goes with its own pictures, the list with all others; alone, either goes with any."""
    found = [_find_list(place, "Anno", "list_attr_celeba"), place / META]
    if pictures is not None and pictures.name.partition(".")[0] == SMALL:
        found.reverse()
    return next((path for path in found if path is not None and path.is_file()), None)


def _find_partition(place: Path) -> Path | None:
    return _find_list(place, "Eval", "list_eval_partition")


def _find_list(place: Path, below: str, stem: str) -> Path | None:
    every = (parent / f"{stem}{ending}" for parent in (place / below, place) for ending in LISTS)
    return next((path for path in every if path.is_file()), None)


PARTITIONS = ("auto", "official", "local")
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

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Listed:
    """Pictures with their attributes; train comes first, then val, then test, each by number.

    Attributes:
        numbers: ``[n]``.
        labels: ``[n, 40]``, 0 or 1, in the order of `ATTRIBUTES`.
        parts: ``[n]``, 0 for train, 1 for val, 2 for test.
        partition: whose the parts are, in words.
    """

    numbers: Numbers
    labels: npt.NDArray[np.uint8]
    parts: Numbers
    partition: str


def read_lists(files: CelebaFiles, partition: str) -> Listed:
    """Read what a copy of CelebA lists.

    Args:
        files: the copy.
        partition: ``"official"``, ``"local"`` (of `META`), or ``"auto"``, the local one if any.
    """
    if partition not in PARTITIONS:
        raise unknown("partition", partition, PARTITIONS)
    said = "official partition"
    if files.attributes.name == META:
        numbers, names, values, parts, local = _read_meta(files.attributes)
        if partition != "official":
            parts, said = local, f"local partition of {META}"
    elif partition == "local":
        raise ConfigurationError(
            f"`partition` can be `local` only with `{META}`, found `{files.attributes}`: use "
            "`official`, or leave it out"
        )
    else:
        numbers, names, values = _read_attributes(files.attributes)
        parts = np.searchsorted([LAST_TRAIN, LAST_VAL], numbers)
        if files.partition is not None:
            listed = _read_partition(files.partition, numbers)
            known = listed >= 0  # one that lists fewer makes a smaller problem
            if not np.array_equal(listed[known], parts[known]):
                said = f"partition of {files.partition.name}"
            numbers, values, parts = numbers[known], values[known], listed[known]
    absent = [name for name in ATTRIBUTES if name not in names]
    if absent:
        _refuse(files.attributes, "names CelebA's 40 attributes", f"no {absent[0]}")
    columns = [names.index(name) for name in ATTRIBUTES]
    order = np.lexsort((numbers, parts))
    numbers, parts = numbers[order], parts[order]
    if len(np.unique(numbers)) < len(numbers):
        _refuse(files.attributes, "lists each picture once", "some of them twice")
    return Listed(numbers, values[order][:, columns], parts, said)


def _read_meta(path: Path) -> tuple[Numbers, list[str], npt.NDArray[np.uint8], Numbers, Numbers]:
    """What comes with the pictures at 64 x 64: the official partition, then the local one."""
    keys = ("image_id", "attribute_names", "attributes", "split", "split_local")
    try:
        check_size(path)
        with zipfile.ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
        if size > LARGEST:
            raise ValueError(f"{size:,} bytes once unpacked, at most {LARGEST:,} are read")
        # opened here because NumPy leaves a file open that turns out to be damaged
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            numbers, names, values, official, local = (file[key] for key in keys)
    except Exception as error:  # a damaged archive can raise anything
        _refuse(path, f"holds the arrays {', '.join(keys)}", one_line(error))
    rows = len(numbers)
    if values.shape != (rows, len(names)) or not np.isin(values, (0, 1)).all():
        _refuse(path, "holds 0 or 1 for every picture and attribute", f"{values.shape}")
    for parts in (official, local):
        if parts.shape != (rows,) or not np.isin(parts, (0, 1, 2)).all():
            _refuse(path, "holds partitions into 0, 1 and 2", f"{parts.shape}")
    numbers, official, local = (part.astype(np.int64) for part in (numbers, official, local))
    return numbers, [str(name) for name in names], values.astype(np.uint8), official, local


def _read_attributes(path: Path) -> tuple[Numbers, list[str], npt.NDArray[np.uint8]]:
    """The official list (a count, the names, the pictures) or a CSV (the names, the pictures)."""
    text = _read_text(path)
    count = ""
    if not _is_csv(path):
        count, _, text = text.partition("\n")
    head, _, body = text.partition("\n")
    names = head.split(",")[1:] if _is_csv(path) else head.split()
    table = _parse_table(path, [name.strip() for name in names], body)
    if count.strip() not in ("", str(len(table))):
        _refuse(path, f"lists {count.strip()} pictures, as its first line says", str(len(table)))
    if not (np.abs(table[:, 1:]) == 1).all():
        _refuse(path, "says 1 or -1 of every picture and attribute", "something else")
    return table[:, 0], [name.strip() for name in names], (table[:, 1:] > 0).astype(np.uint8)


def _read_partition(path: Path, numbers: Numbers) -> Numbers:
    """Which part a list puts each picture in, -1 where it does not have it."""
    text = _read_text(path)
    table = _parse_table(path, ["partition"], text.partition("\n")[2] if _is_csv(path) else text)
    listed, parts = table.T
    if not np.isin(parts, (0, 1, 2)).all():
        _refuse(path, "says 0, 1 or 2 of every picture", f"{parts.min()} to {parts.max()}")
    order = np.argsort(listed, kind="stable")
    at = order[np.minimum(np.searchsorted(listed, numbers, sorter=order), len(listed) - 1)]
    return np.where(listed[at] == numbers, parts[at], -1)


def _is_csv(path: Path) -> bool:
    return ".csv" in path.suffixes


def _read_text(path: Path) -> str:
    try:
        return read_unpacked(path).decode("utf-8-sig")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        _refuse(path, "is text, plain or gzipped", one_line(error))


def _parse_table(path: Path, names: Sequence[str], body: str) -> Numbers:
    """The numbers of a list: one of the picture, then one under each name."""
    plain = body.replace(",", " ").replace(".jpg", "").replace(".png", "")
    try:
        # four times as fast as `loadtxt`, which matters with eight million numbers
        with warnings.catch_warnings(action="error"):
            values = np.fromstring(plain, dtype=np.int64, sep=" ")
    except (ValueError, DeprecationWarning):
        _refuse(path, "holds names such as 000001.jpg and whole numbers", "something else")
    rows, width = sum(not line.isspace() for line in body.splitlines() if line), len(names) + 1
    if rows == 0 or len(values) != rows * width:
        _refuse(path, f"holds {width} numbers in each row", f"{len(values):,} in {rows:,} rows")
    return values.reshape(rows, width)


def _refuse(path: Path, rule: str, found: str) -> NoReturn:
    raise DataError(f"`{path}` {rule}, found {found}: get a fresh copy")
