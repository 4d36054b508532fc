"""Downloading a file: whole, with the right checksum, or not at all."""

import hashlib
import http.client
import urllib.error
import urllib.parse
import urllib.request
import zlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from paretocosmos.errors import DataError
from paretocosmos.io.compression import in_pieces
from paretocosmos.io.files import beside, one_line
from paretocosmos.io.progress import progress_bar

__all__ = ["Remote", "fetch", "sha256_of"]

CHUNK = 1 << 20
TIMEOUT = 30  # seconds without a byte; not for the whole file


@dataclass(frozen=True)
class Remote:
    """A file on the network and what must be in it.

    Attributes:
        url: where it is.
        sha256: the checksum in hexadecimal.
        size: its bytes, at most.
        unpacked: whether checksum and size are of what gzip unpacks; mirrors pack anew.
    """

    url: str
    sha256: str
    size: int
    unpacked: bool = False

    @property
    def most(self) -> int:
        """Bytes to download at most: what cannot be packed grows by the packing."""
        return self.size + self.size // 100 + 1000 if self.unpacked else self.size


def fetch(remote: Remote, path: Path) -> None:
    """Download to a temporary name, check, then rename; a bar on stderr shows how far it is.

    Raises:
        DataError: what went wrong, without a way out: the caller knows where else to look.
    """
    temporary = beside(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("xb") as stream:  # exclusively: a link is not followed
            size = _download(remote, stream, path.name)
        found = sha256_of(temporary, unpacked=remote.unpacked, most=remote.size)
        if found != remote.sha256:
            raise DataError(
                f"`{remote.url}` should have the sha256 {remote.sha256}, found {found} in {size:,} "
                "bytes"
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


def sha256_of(path: Path, *, unpacked: bool = False, most: int | None = None) -> str:
    """The checksum of a file, or of what gzip unpacks of it, in constant memory.

    Args:
        path: the file.
        unpacked: of what gzip unpacks.
        most: bytes that are looked at; a file with more is refused.
    """
    digest = hashlib.sha256()
    for part in in_pieces(path, most=most, packed=unpacked):
        digest.update(part)
    return digest.hexdigest()


class _SameScheme(urllib.request.HTTPRedirectHandler):
    """Follows a redirect to another place, not to a file, to FTP, or out of TLS."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: Any,
        newurl: str,
    ) -> urllib.request.Request | None:
        scheme = urllib.parse.urlsplit(newurl).scheme
        if scheme not in {req.type, "https"}:
            raise OSError(f"it redirects to `{newurl[:200]}`, which is not {req.type}")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _download(remote: Remote, stream: IO[bytes], name: str) -> int:
    done = 0
    if urllib.parse.urlsplit(remote.url).scheme not in ("http", "https"):
        raise OSError("it is not http or https")
    opener = urllib.request.build_opener(_SameScheme)
    with opener.open(remote.url, timeout=TIMEOUT) as answer:
        length = answer.headers.get("Content-Length")
        total = int(length) if length and length.isdecimal() and len(length) < 20 else None
        if total is not None and total > remote.most:
            raise OSError(f"it has {total:,} bytes, at most {remote.most:,} are expected")
        with progress_bar(name, total, of_bytes=True) as advance:
            while part := answer.read(CHUNK):
                done += len(part)
                if done > remote.most:
                    raise OSError(f"it goes on after {remote.most:,} bytes, all that are expected")
                stream.write(part)
                advance(len(part))
    if total is not None and done != total:  # urllib says nothing when a connection breaks off
        raise EOFError(f"the connection was lost after {done:,} of {total:,} bytes")
    return done
