"""Files made by others: download them, unpack them and hash them, within limits.

A few kilobytes can unpack to terabytes, so bytes are counted while they are unpacked.
"""

import gzip
import hashlib
import http.client
import stat
import urllib.error
import urllib.request
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from paretocosmos.errors import DataError
from paretocosmos.io.files import make_temporary_path, one_line
from paretocosmos.io.progress import progress_bar

LARGEST = 1 << 28
"""Limit in bytes of an unpacked file of images, labels or attributes: five times the largest."""
CHUNK = 1 << 20
TIMEOUT = 30  # seconds without a byte; not for the whole file
# The first two bytes of every gzipped file.
GZIP = b"\x1f\x8b"


def read_chunks(path: Path, *, most: int | None, packed: bool) -> Iterator[bytes]:
    """Yield a file in chunks, unpacked.

    Args:
        path: the file; a pipe or a device, which may have no end, is refused.
        most: bytes in all; more are refused. `None` for any number.
        packed: whether it is gzipped.
    """
    check_size(path, None)
    total = 0
    with cast(IO[bytes], gzip.open(path, "rb")) if packed else path.open("rb") as stream:
        while chunk := stream.read(CHUNK):
            # counted while unpacking: what a header says of the size is only a claim
            total += len(chunk)
            if most is not None and total > most:
                raise DataError(
                    f"`{path}` unpacks to more than {most:,} bytes, too many for a file of its "
                    "kind: get it from a source you trust"
                )
            yield chunk


def read_unpacked(path: Path, *, most: int = LARGEST) -> bytes:
    """Read all of a file, plain or gzipped."""
    check_size(path, most)
    # by content, not by name: browsers unpack a download and keep its .gz
    with path.open("rb") as stream:
        packed = stream.read(len(GZIP)) == GZIP
    return b"".join(read_chunks(path, most=most, packed=packed))


def check_size(path: Path, most: int | None = LARGEST) -> None:
    """Raise if a path is no regular file or has too many bytes; `None` for any size."""
    info = path.stat()
    if not stat.S_ISREG(info.st_mode):
        raise DataError(f"`{path}` is not a regular file: name one")
    if most is not None and info.st_size > most:
        raise DataError(
            f"`{path}` has {info.st_size:,} bytes, at most {most:,} are read: get it from a "
            "source you trust"
        )


def hash_content(path: Path, *, unpacked: bool = False, most: int | None = None) -> str:
    """Return the SHA-256 of a file, or of its unpacked content, in constant memory.

    Args:
        path: the file.
        unpacked: whether to hash the content of a gzipped file.
        most: limit in bytes; a file with more is refused.
    """
    digest = hashlib.sha256()
    for chunk in read_chunks(path, most=most, packed=unpacked):
        digest.update(chunk)
    return digest.hexdigest()


@dataclass(frozen=True)
class Remote:
    """A file on the network and its expected content.

    Attributes:
        url: its address.
        sha256: the checksum in hexadecimal.
        size: its bytes, at most.
        unpacked: whether checksum and size are of the unpacked content; mirrors pack anew.
    """

    url: str
    sha256: str
    size: int
    unpacked: bool = False

    @property
    def most(self) -> int:
        """The limit in bytes of a download: incompressible content grows when it is packed."""
        return self.size + self.size // 100 + 1000 if self.unpacked else self.size


def fetch(remote: Remote, path: Path) -> None:
    """Download to a temporary name, check, then rename, with a progress bar on stderr.

    Raises:
        DataError: the mistake, without a way out: the caller knows where else to look.
    """
    temporary = make_temporary_path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("xb") as stream:  # exclusively: a link is not followed
            size = _download(remote, stream, path.name)
        # of what is on the disk, not of what went through memory
        sha256 = hash_content(temporary, unpacked=remote.unpacked, most=remote.size)
        if sha256 != remote.sha256:
            raise DataError(
                f"`{remote.url}` should have the sha256 {remote.sha256}, found {sha256} in "
                f"{size:,} bytes"
            )
        # only now: under its final name a file is complete and checked
        temporary.replace(path)
    except (OSError, EOFError, zlib.error, http.client.HTTPException) as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()  # it holds the connection
        reason = one_line(error) or type(error).__name__
        raise DataError(f"`{remote.url}` cannot be downloaded to `{path}`: {reason}") from error
    finally:
        with suppress(OSError):  # a folder that cannot be written holds nothing to remove
            temporary.unlink(missing_ok=True)


def _download(remote: Remote, stream: IO[bytes], name: str) -> int:
    """Write a remote file to a stream, and return the number of bytes."""
    received = 0
    # only from addresses in this package, and the checksum is of what arrived, wherever it was
    with urllib.request.urlopen(remote.url, timeout=TIMEOUT) as answer:
        # a header may say anything, so the bytes are counted all the same
        length = answer.headers.get("Content-Length")
        total = int(length) if length and length.isdecimal() and len(length) < 20 else None
        with progress_bar(name, total, of_bytes=True) as advance:
            while chunk := answer.read(CHUNK):
                received += len(chunk)
                if received > remote.most:
                    raise OSError(f"it goes on after {remote.most:,} bytes, all that are expected")
                stream.write(chunk)
                advance(len(chunk))
    if total is not None and received != total:  # urllib says nothing when a connection breaks off
        raise EOFError(f"the connection was lost after {received:,} of {total:,} bytes")
    return received
