"""Downloading a file: whole, with the right checksum, or not at all."""

import gzip
import hashlib
import http.client
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from paretocosmos.errors import DataError
from paretocosmos.files import beside, one_line

__all__ = ["Remote", "fetch", "sha256_of"]

CHUNK = 1 << 20
TIMEOUT = 30  # seconds without a byte; not for the whole file


@dataclass(frozen=True)
class Remote:
    """A file on the network and what must be in it.

    Attributes:
        url: where it is.
        sha256: the checksum in hexadecimal.
        unpacked: whether the checksum is of what gzip unpacks; mirrors pack anew.
    """

    url: str
    sha256: str
    unpacked: bool = False


def fetch(remote: Remote, path: Path) -> None:
    """Download to a temporary name, check, then rename; a bar on stderr shows how far it is.

    Raises:
        DataError: what went wrong, without a way out: the caller knows where else to look.
    """
    temporary = beside(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("xb") as stream:  # exclusively: a link is not followed
            size = _download(remote.url, stream, path.name)
        found = sha256_of(temporary, unpacked=remote.unpacked)
        if found != remote.sha256:
            raise DataError(
                f"`{remote.url}` has the sha256 {remote.sha256}, found {found} in {size:,} bytes"
            )
        temporary.replace(path)
    except (OSError, EOFError, zlib.error, http.client.HTTPException) as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()  # it holds the connection
        what = one_line(error) or type(error).__name__
        raise DataError(f"`{remote.url}` cannot be downloaded to `{path}`: {what}") from error
    finally:
        with suppress(OSError):  # a folder that cannot be written holds nothing to remove
            temporary.unlink(missing_ok=True)


def sha256_of(path: Path, *, unpacked: bool = False) -> str:
    """The checksum of a file, or of what gzip unpacks of it, in constant memory."""
    digest = hashlib.sha256()
    with gzip.open(path) if unpacked else path.open("rb") as stream:
        while part := stream.read(CHUNK):
            digest.update(part)
    return digest.hexdigest()


def _download(url: str, stream: IO[bytes], name: str) -> int:
    done = 0
    with urllib.request.urlopen(url, timeout=TIMEOUT) as answer:
        length = answer.headers.get("Content-Length")
        total = int(length) if length and length.isdigit() else None
        with _bar(name, total) as advance:
            while part := answer.read(CHUNK):
                stream.write(part)
                done += len(part)
                advance(len(part))
    if total is not None and done != total:  # urllib says nothing when a connection breaks off
        raise EOFError(f"the connection broke off after {done:,} of {total:,} bytes")
    return done


@contextmanager
def _bar(name: str, total: int | None) -> Iterator[Callable[[int], None]]:
    # `import paretocosmos` draws in no console
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    quiet = not console.is_terminal
    with Progress(*columns, TimeRemainingColumn(), console=console, disable=quiet) as progress:
        task = progress.add_task(name, total=total)
        yield lambda count: progress.advance(task, count)
