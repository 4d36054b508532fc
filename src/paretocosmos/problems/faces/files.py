"""The files of CelebA: find its pictures and lists, and read them.

Pictures lie in a folder, a zip or a tar; no archive is unpacked to disk.
"""

import hashlib
import lzma
import os
import re
import tarfile
import warnings
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from paretocosmos.errors import ConfigurationError, DataError, unknown
from paretocosmos.io.external import LARGEST, check_size, read_unpacked
from paretocosmos.io.files import VARIABLE, list_data_folders, one_line, user_path

HOME = "https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html"
META = "celeba_meta.npz"
# The published pictures, then those brought to 64 x 64 that `META` describes.
FULL, SMALL = "img_align_celeba", "img_align_celeba_64"
LISTS = (".txt", ".csv", ".txt.gz", ".csv.gz")
ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz")
PICTURE = re.compile(r"(\d{1,9})\.(?:jpe?g|png)", re.IGNORECASE)

# Bytes of one picture at most, of a tar's notes on one, and of all that a tar holds.
MAX_PICTURE_BYTES, MAX_NOTE_BYTES, MAX_TAR_BYTES = 1 << 26, 1 << 20, 1 << 37

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


@dataclass(frozen=True)
class CelebaFiles:
    """The files of a copy of CelebA.

    Attributes:
        pictures: a folder or an archive.
        attributes: the list of all attributes, or `META`.
        partition: the list of the partition, if there is one beside a list of attributes.
    """

    pictures: Path
    attributes: Path
    partition: Path | None


def find_celeba(data: str | None) -> CelebaFiles:
    """Return the first complete copy; raise an error that names every folder searched."""
    if data is not None and not user_path(data).is_dir():
        why = "is no folder" if user_path(data).exists() else "does not exist"
        raise DataError(
            f"`data` must be a folder with CelebA, found `{data}`, which {why}: name the folder "
            "with its pictures and lists"
        ).with_hint({"data": None})
    parents = [
        parent
        for folder in list_data_folders(data)
        for parent in (folder / "celeba", folder / "CelebA", folder)
    ]
    incomplete = ""
    for parent in parents:
        pictures = next(_find_pictures(parent), None)
        attributes = _find_attributes(parent, pictures)
        if pictures is not None and attributes is not None:
            # the small copy's file has the partition, too
            partition = None if attributes.name == META else _find_partition(parent)
            return CelebaFiles(pictures, attributes, partition)
        if pictures is not None:
            incomplete = incomplete or f" (only `{pictures}`, but no list beside it)"
        elif attributes is not None:
            incomplete = incomplete or f" (only `{attributes}`, but no pictures beside it)"
    unset = "" if data is not None or os.environ.get(VARIABLE) else f" (${VARIABLE} is not set)"
    searched = ", ".join(f"`{parent}`" for parent in dict.fromkeys(parents))
    raise DataError(
        f"CelebA consists of its aligned pictures, `{FULL}` as a folder or {', '.join(ARCHIVES)} "
        "(also in `Img/`), and `list_attr_celeba.txt` or .csv (also in `Anno/`), and, if there, "
        f"`list_eval_partition` (also in `Eval/`); or `{META}` and `{SMALL}`, packed or not "
        f"(`{SMALL}.tar.gz`); found no such pair in {searched}{unset}{incomplete}: its terms "
        "(research only, no redistribution) forbid an automatic download, so get it from "
        f"{HOME} and name its folder with `data` or ${VARIABLE}"
    ).with_hint({"data": None})


def _find_pictures(folder: Path) -> Iterator[Path]:
    """Yield folders and archives of pictures, the unpacked and the published ones first."""
    for stem in (FULL, SMALL):
        # Kaggle's zip unpacks to a folder in a folder of the same name
        for subfolder in (folder / "Img" / stem, folder / stem, folder / stem / stem):
            if _holds_pictures(subfolder):
                yield subfolder
        for parent in (folder / "Img", folder):
            for ending in ARCHIVES:
                if (parent / f"{stem}{ending}").is_file():
                    yield parent / f"{stem}{ending}"


def _holds_pictures(folder: Path) -> bool:
    if not folder.is_dir():
        return False
    with os.scandir(folder) as entries:
        return any(parse_number(entry.name) is not None for entry in entries)


def _find_attributes(folder: Path, pictures: Path | None) -> Path | None:
    """Return the list of attributes, or `META`, which is preferred beside its own pictures."""
    candidates = [_find_list(folder, "Anno", "list_attr_celeba"), folder / META]
    if pictures is not None and pictures.name.partition(".")[0] == SMALL:
        candidates.reverse()
    return next((path for path in candidates if path is not None and path.is_file()), None)


def _find_partition(folder: Path) -> Path | None:
    return _find_list(folder, "Eval", "list_eval_partition")


def _find_list(folder: Path, subfolder: str, stem: str) -> Path | None:
    parents = (folder / subfolder, folder)
    candidates = (parent / f"{stem}{ending}" for parent in parents for ending in LISTS)
    return next((path for path in candidates if path.is_file()), None)


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


def read_lists(files: CelebaFiles, partition: str) -> PictureLists:
    """Read the lists of a copy of CelebA.

    Args:
        files: the copy.
        partition: ``"official"``, ``"local"`` (of `META`), or ``"auto"``, the local one if any.
    """
    if partition not in PARTITIONS:
        raise unknown("partition", partition, PARTITIONS)
    source = "official partition"
    if files.attributes.name == META:
        numbers, names, values, parts, local = _read_meta(files.attributes)
        if partition != "official":
            parts, source = local, f"local partition of {META}"
    elif partition == "local":
        raise ConfigurationError(
            f"`partition` can be `local` only with `{META}`, found `{files.attributes}`: use "
            "`official`, or leave it out"
        )
    else:
        numbers, names, values = _read_attributes(files.attributes)
        # the last picture of a part belongs to it: `side` is left by default
        parts = np.searchsorted([LAST_TRAIN, LAST_VAL], numbers)
        if files.partition is not None:
            own_parts = _read_partition(files.partition, numbers)
            listed = own_parts >= 0  # one that lists fewer makes a smaller problem
            if not np.array_equal(own_parts[listed], parts[listed]):
                source = f"partition of {files.partition.name}"
            numbers, values, parts = numbers[listed], values[listed], own_parts[listed]
    absent = [name for name in ATTRIBUTES if name not in names]
    if absent:
        _refuse_list(files.attributes, "names CelebA's 40 attributes", f"no {absent[0]}")
    columns = [names.index(name) for name in ATTRIBUTES]
    # by part, then by number: the last key counts first
    order = np.lexsort((numbers, parts))
    numbers, parts = numbers[order], parts[order]
    if len(np.unique(numbers)) < len(numbers):
        _refuse_list(files.attributes, "lists each picture once", "some of them twice")
    return PictureLists(numbers, values[order][:, columns], parts, source)


def _read_meta(path: Path) -> tuple[Numbers, list[str], npt.NDArray[np.uint8], Numbers, Numbers]:
    """Read `META`: numbers, names, attributes, the official partition and the local one."""
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
        _refuse_list(path, f"holds the arrays {', '.join(keys)}", one_line(error))
    rows = len(numbers)
    if values.shape != (rows, len(names)) or not np.isin(values, (0, 1)).all():
        _refuse_list(path, "holds 0 or 1 for every picture and attribute", f"{values.shape}")
    for parts in (official, local):
        if parts.shape != (rows,) or not np.isin(parts, (0, 1, 2)).all():
            _refuse_list(path, "holds partitions into 0, 1 and 2", f"{parts.shape}")
    numbers, official, local = (array.astype(np.int64) for array in (numbers, official, local))
    return numbers, [str(name) for name in names], values.astype(np.uint8), official, local


def _read_attributes(path: Path) -> tuple[Numbers, list[str], npt.NDArray[np.uint8]]:
    """Read the official list (a count, names, pictures) or a CSV (names, pictures)."""
    text = _read_text(path)
    count = ""
    if not _is_csv(path):
        count, _, text = text.partition("\n")
    head, _, body = text.partition("\n")
    names = head.split(",")[1:] if _is_csv(path) else head.split()
    table = _parse_table(path, [name.strip() for name in names], body)
    if count.strip() not in ("", str(len(table))):
        _refuse_list(
            path, f"lists {count.strip()} pictures, as its first line says", str(len(table))
        )
    if not (np.abs(table[:, 1:]) == 1).all():
        _refuse_list(path, "says 1 or -1 of every picture and attribute", "something else")
    return table[:, 0], [name.strip() for name in names], (table[:, 1:] > 0).astype(np.uint8)


def _read_partition(path: Path, numbers: Numbers) -> Numbers:
    """Return the part of each picture by a list, -1 where the list lacks it."""
    text = _read_text(path)
    table = _parse_table(path, ["partition"], text.partition("\n")[2] if _is_csv(path) else text)
    listed, parts = table.T
    if not np.isin(parts, (0, 1, 2)).all():
        _refuse_list(path, "says 0, 1 or 2 of every picture", f"{parts.min()} to {parts.max()}")
    order = np.argsort(listed, kind="stable")
    # a number beyond the list would have the position after its end
    rows = order[np.minimum(np.searchsorted(listed, numbers, sorter=order), len(listed) - 1)]
    return np.where(listed[rows] == numbers, parts[rows], -1)


def _is_csv(path: Path) -> bool:
    return ".csv" in path.suffixes


def _read_text(path: Path) -> str:
    try:
        return read_unpacked(path).decode("utf-8-sig")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        _refuse_list(path, "is text, plain or gzipped", one_line(error))


def _parse_table(path: Path, names: Sequence[str], body: str) -> Numbers:
    """Return the numbers of a list ``[pictures, 1 + names]``, that of the picture first."""
    # names become numbers: `000001.jpg` is 1
    plain = body.replace(",", " ").replace(".jpg", "").replace(".png", "")
    try:
        # four times as fast as `loadtxt`, which matters with eight million numbers
        with warnings.catch_warnings(action="error"):
            values = np.fromstring(plain, dtype=np.int64, sep=" ")
    except (ValueError, DeprecationWarning):
        _refuse_list(path, "holds names such as 000001.jpg and whole numbers", "something else")
    rows, width = sum(not line.isspace() for line in body.splitlines() if line), len(names) + 1
    if rows == 0 or len(values) != rows * width:
        _refuse_list(
            path, f"holds {width} numbers in each row", f"{len(values):,} in {rows:,} rows"
        )
    return values.reshape(rows, width)


def _refuse_list(path: Path, rule: str, observed: str) -> NoReturn:
    raise DataError(f"`{path}` {rule}, found {observed}: get a fresh copy")


Read = Callable[[], bytes]
"""Returns the bytes of one picture; called in a thread."""


def parse_number(name: str) -> int | None:
    """Parse the number of a picture from its path; `None` for other files.

    >>> parse_number("img_align_celeba/000001.jpg"), parse_number("__MACOSX/._000001.jpg")
    (1, None)
    """
    match = PICTURE.fullmatch(name.rpartition("/")[2])
    return int(match[1]) if match else None


class Pictures(ABC):
    """Pictures by number.

    Attributes:
        path: the folder or the archive.
        fingerprint: a hash of names, sizes and times, so that no picture is read for it.
        numbers: those that exist; `None` for a tar, which has to be read to know them.
    """

    path: Path
    fingerprint: str
    numbers: frozenset[int] | None

    @abstractmethod
    def contents(self, wanted: Collection[int]) -> Iterator[tuple[int, Read]]:
        """Yield the wanted pictures that exist, in the order that is the fastest to read."""


def open_pictures(path: Path) -> Pictures:
    """Open the pictures in a folder or in an archive, by the end of its name."""
    try:
        if path.is_dir():
            return _Folder(path)
        return _Zip(path) if path.name.lower().endswith(".zip") else _Tar(path)
    except (OSError, zipfile.BadZipFile) as error:
        _raise_unreadable(path, error)


class _Folder(Pictures):
    def __init__(self, path: Path) -> None:
        self.path, self._names, lines = path, dict[int, str](), []
        with os.scandir(path) as entries:
            for entry in entries:
                number = parse_number(entry.name)
                if number is not None and entry.is_file():
                    state = entry.stat()
                    self._names[number] = entry.name
                    lines.append(f"{entry.name} {state.st_size} {state.st_mtime_ns}\n")
        self.numbers = frozenset(self._names)
        self.fingerprint = hashlib.sha256("".join(sorted(lines)).encode()).hexdigest()

    def contents(self, wanted: Collection[int]) -> Iterator[tuple[int, Read]]:
        for number in wanted:
            if number in self._names:
                yield number, partial(self._read, self._names[number])

    def _read(self, name: str) -> bytes:
        try:
            check_size(self.path / name, MAX_PICTURE_BYTES)
            return (self.path / name).read_bytes()
        except OSError as error:
            _raise_unreadable(self.path / name, error)


class _Zip(Pictures):
    def __init__(self, path: Path) -> None:
        self.path, self.fingerprint = path, _hash_archive(path)
        self._members: dict[int, zipfile.ZipInfo] = {}
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                number = parse_number(member.filename)
                if number is not None:
                    self._members.setdefault(number, member)
        self.numbers = frozenset(self._members)

    def contents(self, wanted: Collection[int]) -> Iterator[tuple[int, Read]]:
        members = [(self._members[number], number) for number in wanted if number in self._members]
        members.sort(key=lambda pair: pair[0].header_offset)  # from the front to the back
        try:
            for member, _ in members:
                _check_picture(self.path, member.filename, member.file_size)
            # read here: Python's zip files are not made for several threads
            with zipfile.ZipFile(self.path) as archive:
                for member, number in members:
                    yield number, partial(bytes, self._read(archive, member))
        except (OSError, RuntimeError, NotImplementedError) as error:
            # unreadable, encrypted, or packed in some other way
            _raise_unreadable(self.path, error)

    @staticmethod
    def _read(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
        try:
            return archive.read(member)
        except (zipfile.BadZipFile, zlib.error, EOFError):
            return b""  # the archive is there, this picture of it is damaged


class _Tar(Pictures):
    numbers = None

    def __init__(self, path: Path) -> None:
        self.path, self.fingerprint = path, _hash_archive(path)

    def contents(self, wanted: Collection[int]) -> Iterator[tuple[int, Read]]:
        remaining = set(wanted)
        try:
            with tarfile.open(self.path, "r|*", tarinfo=_Member) as archive:
                for member in archive:
                    if archive.offset > MAX_TAR_BYTES:
                        raise tarfile.ReadError(f"it unpacks to more than {MAX_TAR_BYTES:,} bytes")
                    archive.members = []  # type: ignore[attr-defined]  # else it keeps all it met
                    number = parse_number(member.name)
                    if number in remaining:
                        _check_picture(self.path, member.name, member.size)
                    if number in remaining and (stream := archive.extractfile(member)) is not None:
                        remaining.discard(number)
                        content = stream.read()
                        yield number, partial(bytes, content)
        except (OSError, EOFError, tarfile.TarError, zlib.error, lzma.LZMAError) as error:
            _raise_unreadable(self.path, error)


class _Member(tarfile.TarInfo):
    """A member of a tar whose extended headers, which are read into memory, are limited."""

    def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        plain = (*tarfile.REGULAR_TYPES, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE)
        if self.type not in plain and self.size > MAX_NOTE_BYTES:
            raise tarfile.ReadError(f"it has a note of {self.size:,} bytes on one of its files")
        member: tarfile.TarInfo = super()._proc_member(archive)  # type: ignore[misc]
        return member


def _check_picture(path: Path, name: str, size: int) -> None:
    if size > MAX_PICTURE_BYTES:
        raise DataError(
            f"`{name}` in `{path}` unpacks to {size:,} bytes, a picture has at most "
            f"{MAX_PICTURE_BYTES:,}: get the archive from a source you trust"
        )


def _hash_archive(path: Path) -> str:
    info = path.stat()
    return hashlib.sha256(f"{path.name} {info.st_size} {info.st_mtime_ns}".encode()).hexdigest()


def _raise_unreadable(path: Path, error: Exception) -> NoReturn:
    reason = one_line(error) or type(error).__name__
    raise DataError(
        f"`{path}` cannot be read ({reason}): get a fresh copy (a refused download may be a web "
        "page with the name of the file)"
    ) from error
