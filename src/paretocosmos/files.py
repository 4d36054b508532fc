"""Writing files so that a kill, or a full disk, leaves the last good one."""

import hashlib
import json
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from paretocosmos.errors import ParetoCosmosError, RunError

__all__ = [
    "beside",
    "digest",
    "digest_of",
    "one_line",
    "read_json",
    "replacing",
    "sweep",
    "write_bytes",
    "write_json",
]

WAY_OUT = (
    "what was saved before is intact: make room or choose another folder, then continue with "
    "--resume"
)

# Temporary names: those of `replacing`, and those safetensors takes while it writes to one.
LEFTOVER = re.compile(r"\.(?:.+\.[0-9a-f]+\.tmp|tmp[0-9A-Za-z]{6})")


def beside(path: Path) -> Path:
    """A temporary name in the same folder that nobody can know before."""
    return path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")


@contextmanager
def replacing(path: Path, *, flush: bool = True, way_out: str = WAY_OUT) -> Iterator[Path]:
    """A temporary name beside `path` to write to, which is then renamed.

    Nobody can know the name before, and what is there already is never opened, be it a link.

    Args:
        path: what is to be replaced.
        flush: see that it is on the disk before, and its name afterwards; not where a torn file
            is noticed and made anew.
        way_out: what to do where it cannot be written.
    """
    temporary = beside(path)
    try:
        temporary.open("xb").close()  # exclusively: a link is not followed
        mode = temporary.stat().st_mode  # others may read it, or may not, as the user has it
        yield temporary
        temporary.chmod(mode)  # safetensors makes files that nobody else may read
        if flush:
            with temporary.open("rb+") as stream:
                os.fsync(stream.fileno())
        temporary.replace(path)
        if flush:
            _flush_folder(path.parent)
    except ParetoCosmosError:  # what was written is refused by whoever wrote it
        raise
    except OSError as error:
        raise RunError(
            f"could not write `{path}`: {error.strerror or one_line(error)}; {way_out}"
        ) from error
    finally:
        with suppress(OSError):  # a folder that cannot be written holds nothing to remove
            temporary.unlink(missing_ok=True)


def _flush_folder(folder: Path) -> None:
    """See that a name is on the disk, not only the file; not every system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def sweep(folder: Path) -> None:
    """Remove the temporary files that killed processes left in a folder; nobody may write there.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> (folder / ".run.json.0a1b2c3d4e5f.tmp").touch()
    >>> sweep(folder)
    >>> list(folder.iterdir())
    []
    """
    for path in list(folder.iterdir()) if folder.is_dir() else ():
        if LEFTOVER.fullmatch(path.name):
            with suppress(OSError):
                path.unlink()


def write_bytes(path: Path, content: bytes) -> None:
    """Write to a temporary name beside `path`, flush it to the disk, then rename.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> write_bytes(folder / "a.txt", b"whole or not at all")
    >>> [file.name for file in folder.iterdir()]
    ['a.txt']
    """
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def one_line(error: BaseException) -> str:
    """What another library complained about, without its line breaks."""
    return " ".join(str(error).split())


def write_json(path: Path, content: object) -> None:
    """Write JSON, indented, in one piece; NaN is refused because JSON has none."""
    write_bytes(path, (json.dumps(content, indent=1, allow_nan=False) + "\n").encode())


def read_json(path: Path) -> dict[str, object]:
    """Read a JSON object; a missing or damaged file is one sentence."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise RunError(
            f"`{path}` does not exist; is `{path.parent}` a run folder that was finished?"
        ) from error
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise RunError(
            f"`{path}` cannot be read ({error}); the file is damaged: train again"
        ) from (error)
    if not isinstance(content, dict):
        raise RunError(f"`{path}` holds no JSON object; the file is damaged: train again")
    return content


def digest_of(content: object) -> str:
    """The SHA-256 of what JSON can say, however it is laid out, in hexadecimal."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def digest(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
