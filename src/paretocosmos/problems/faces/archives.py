"""Numbered pictures in a folder, a zip or a tar; no archive is ever unpacked."""

import hashlib
import lzma
import os
import re
import tarfile
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator
from functools import partial
from pathlib import Path
from typing import NoReturn

from paretocosmos.errors import DataError
from paretocosmos.io.external import check_size
from paretocosmos.io.files import one_line

ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz")
PICTURE = re.compile(r"(\d{1,9})\.(?:jpe?g|png)", re.IGNORECASE)

# Bytes of one picture at most, of a tar's notes on one, and of all that a tar holds.
MAX_PICTURE_BYTES, MAX_NOTE_BYTES, MAX_TAR_BYTES = 1 << 26, 1 << 20, 1 << 37

Read = Callable[[], bytes]
"""Gives the bytes of one picture; called in a thread."""


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
        fingerprint: changes with the pictures; no picture is read for it.
        numbers: those that are there; `None` for a tar, which has to be read for that.
    """

    path: Path
    fingerprint: str
    numbers: frozenset[int] | None

    @abstractmethod
    def contents(self, wanted: Collection[int]) -> Iterator[tuple[int, Read]]:
        """Each of the wanted pictures that is there, in the order that is the fastest to read."""


def open_pictures(path: Path) -> Pictures:
    """Open the pictures in a folder or in an archive, by the end of its name."""
    try:
        if path.is_dir():
            return _Folder(path)
        return _Zip(path) if path.name.lower().endswith(".zip") else _Tar(path)
    except (OSError, zipfile.BadZipFile) as error:
        _refuse(path, error)


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
            _refuse(self.path / name, error)


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
        there = [(self._members[number], number) for number in wanted if number in self._members]
        there.sort(key=lambda pair: pair[0].header_offset)
        try:
            for member, _ in there:
                _check_picture(self.path, member.filename, member.file_size)
            # read here: Python's zip files are not made for several threads
            with zipfile.ZipFile(self.path) as archive:
                for member, number in there:
                    yield number, partial(bytes, self._read(archive, member))
        except (OSError, RuntimeError, NotImplementedError) as error:
            _refuse(self.path, error)  # unreadable, encrypted, or packed in some other way

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
        left = set(wanted)
        try:
            with tarfile.open(self.path, "r|*", tarinfo=_Member) as archive:
                for member in archive:
                    if archive.offset > MAX_TAR_BYTES:
                        raise tarfile.ReadError(f"it unpacks to more than {MAX_TAR_BYTES:,} bytes")
                    archive.members = []  # type: ignore[attr-defined]  # else it keeps all it met
                    number = parse_number(member.name)
                    if number in left:
                        _check_picture(self.path, member.name, member.size)
                    if number in left and (stream := archive.extractfile(member)) is not None:
                        left.discard(number)
                        content = stream.read()
                        yield number, partial(bytes, content)
        except (OSError, EOFError, tarfile.TarError, zlib.error, lzma.LZMAError) as error:
            _refuse(self.path, error)


class _Member(tarfile.TarInfo):
    """Of a tar: its notes on names and times are read into memory, whatever size it says."""

    def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        plain = (*tarfile.REGULAR_TYPES, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE)
        if self.type not in plain and self.size > MAX_NOTE_BYTES:
            raise tarfile.ReadError(f"it has a note of {self.size:,} bytes on one of its files")
        found: tarfile.TarInfo = super()._proc_member(archive)  # type: ignore[misc]
        return found


def _check_picture(path: Path, name: str, size: int) -> None:
    if size > MAX_PICTURE_BYTES:
        raise DataError(
            f"`{name}` in `{path}` unpacks to {size:,} bytes, a picture has at most "
            f"{MAX_PICTURE_BYTES:,}: get the archive from a source you trust"
        )


def _hash_archive(path: Path) -> str:
    state = path.stat()
    known = f"{path.name} {state.st_size} {state.st_mtime_ns}"
    return hashlib.sha256(known.encode()).hexdigest()


def _refuse(path: Path, error: Exception) -> NoReturn:
    what = one_line(error) or type(error).__name__
    raise DataError(
        f"`{path}` cannot be read ({what}): get a fresh copy (a refused download may be a web page "
        "with the name of the file)"
    ) from error
