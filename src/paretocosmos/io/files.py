"""Paths, locks, JSON, and writing files so that a kill or a full disk leaves the last good one."""

import errno
import hashlib
import json
import math
import os
import re
import secrets
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from paretocosmos.errors import ConfigurationError, ParetoCosmosError, RunError, cannot_use

VARIABLE = "PARETOCOSMOS_DATA"
"""The variable that names the folder of data sets."""
LOCK = ".lock"

# What a file of ours may be at most, well beyond what any training writes. Lists of lists take
# some twenty times as much memory as text.
LARGEST = 32 * 1024 * 1024
DEEPEST = 32

WAY_OUT = (
    "what was saved before is intact: make room or choose another folder, then continue with "
    "resume=True"
)

# Temporary names: those of `replace_file`, and those safetensors takes while it writes to one.
LEFTOVER = re.compile(r"\.(?:.+\.[0-9a-f]+\.tmp|tmp[0-9A-Za-z]{6})")


def make_temporary_path(path: Path) -> Path:
    """Return a temporary name in the same folder that cannot be guessed."""
    return path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")


@contextmanager
def replace_file(path: Path, *, way_out: str = WAY_OUT) -> Iterator[Path]:
    """Yield a temporary name beside `path` to write to, then rename it.

    The name cannot be guessed, and an existing file or link is never opened.

    Args:
        path: the file to replace.
        way_out: the advice where it cannot be written.
    """
    temporary = make_temporary_path(path)
    try:
        temporary.open("xb").close()  # exclusively: a link is not followed
        mode = temporary.stat().st_mode  # others may read it, or may not, as the user has it
        yield temporary
        temporary.chmod(mode)  # safetensors makes files that nobody else may read
        with temporary.open("rb+") as stream:
            os.fsync(stream.fileno())
        temporary.replace(path)
        # so that the name of the file is on the disk too; not every system can
        with suppress(OSError):
            handle = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
    except ParetoCosmosError:  # the writer refused its own file
        raise
    except OSError as error:
        raise RunError(
            f"could not write `{path}`: {error.strerror or one_line(error)}; {way_out}"
        ) from error
    finally:
        with suppress(OSError):  # a folder that cannot be written holds nothing to remove
            temporary.unlink(missing_ok=True)


def check_utf8(text: str, name: str) -> None:
    """Raise for a path that could neither be printed nor be written to a readable file."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ConfigurationError(
            f"{name} must be UTF-8 text, found {text!a}: rename the file or folder"
        ) from error


def path_exists(path: Path) -> bool:
    """Return True if a path exists; raise a RunError if the system refuses to look."""
    try:
        return path.exists()
    except OSError as error:  # a name too long, a parent we may not look into
        raise cannot_use(path, error) from error


@contextmanager
def make_folder(folder: Path) -> Iterator[None]:
    """Create a folder with its parents; in the end remove those of them that are still empty."""
    created: list[Path] = []
    try:
        try:
            created += [path for path in (folder, *folder.parents) if not path.exists()]
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise cannot_use(folder, error) from error
        yield
    finally:
        for path in created:
            with suppress(OSError):  # not empty
                path.rmdir()


def remove_leftovers(folder: Path, *, of: str = "") -> None:
    """Remove the temporary files that killed processes left in a folder that is not in use.

    Args:
        folder: the folder.
        of: the name of a file, to remove only its own.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> (folder / ".run.json.0a1b2c3d4e5f.tmp").touch()
    >>> remove_leftovers(folder)
    >>> list(folder.iterdir())
    []
    """
    for path in list(folder.iterdir()) if folder.is_dir() else ():
        if LEFTOVER.fullmatch(path.name) and path.name.startswith(f".{of}"):
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
    with replace_file(path) as temporary:
        temporary.write_bytes(content)


def one_line(error: BaseException) -> str:
    """Return the message of an error without its line breaks."""
    return " ".join(str(error).split())


def write_json(path: Path, content: object) -> None:
    """Write JSON, indented, in one piece; NaN is refused because JSON has none."""
    write_bytes(path, (json.dumps(content, indent=1, allow_nan=False) + "\n").encode())


def to_json_value(value: object, other: Callable[[Any], Any]) -> Any:
    """Convert a value to those of JSON: mappings, lists, texts and finite numbers.

    Args:
        value: the value to write.
        other: converts a value that JSON does not have.

    >>> to_json_value({1: (0.5, float("inf"))}, repr)
    {'1': [0.5, 'inf']}
    """
    if isinstance(value, Mapping):
        return {str(key): to_json_value(inner, other) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [to_json_value(inner, other) for inner in value]
    if isinstance(value, str | int | None) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return other(value)


def read_json(path: Path) -> dict[str, object]:
    """Read a JSON object; a missing, damaged or outsized file is one sentence."""
    try:
        info = path.stat()
        if not stat.S_ISREG(info.st_mode):  # a pipe would be waited for, a device never ends
            raise ValueError("it is not a regular file")
        if info.st_size > LARGEST:
            raise ValueError(f"it has {info.st_size} bytes, at most {LARGEST} are read")
        content = parse_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise RunError(
            f"`{path}` does not exist; is `{path.parent}` the folder of a finished run?"
        ) from error
    except (OSError, RecursionError, ValueError) as error:
        raise RunError(
            f"`{path}` cannot be read ({one_line(error)}); the file is damaged: train again"
        ) from error
    if not isinstance(content, dict):
        raise RunError(f"`{path}` does not hold a JSON object; the file is damaged: train again")
    return content


def parse_json(text: str) -> object:
    """Parse JSON; raise a `ValueError` or a `RecursionError` for anything that cannot be used."""
    content = json.loads(
        text,
        parse_float=_parse_float,
        # NaN and infinities, which JSON lacks
        parse_constant=_parse_float,
    )
    check_depth(content)
    if "\\ud" in text.lower():  # half a character, which could be neither printed nor written
        json.dumps(content, ensure_ascii=False).encode()
    return content


def check_depth(content: object) -> None:
    """Raise for content nested so deeply that recursive code would fail on it."""
    level = [content] if isinstance(content, dict | list) else []
    # level by level, since recursion is what deep nesting breaks
    for _ in range(DEEPEST):
        children = (node.values() if isinstance(node, dict) else node for node in level)
        level = [child for nodes in children for child in nodes if isinstance(child, dict | list)]
        if not level:
            return
    raise ValueError(f"it is nested more than {DEEPEST} deep")


def _parse_float(digits: str) -> float:
    # NaN and infinities are words that Python writes, but not JSON
    if not math.isfinite(float(digits)):
        raise ValueError(f"it has {digits[:20]}, which is too large or not JSON")
    return float(digits)


def hash_json(content: object) -> str:
    """Return the SHA-256 of JSON content, whatever its layout, in hexadecimal."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Keep other processes from a folder, which is made if it does not exist.

    The system releases the lock when its process ends, even by a kill. A folder that was made
    for it and is still empty in the end is removed.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp()) / "run"
    >>> with lock_folder(folder):
    ...     folder.is_dir()
    True
    >>> folder.exists()
    False
    """
    with make_folder(folder), ExitStack() as stack:
        try:
            stack.enter_context(FileLock(folder / LOCK, blocking=False))
        except Timeout as error:
            raise RunError(
                f"`{folder}` is being trained by another process: wait for it, then start again"
            ) from error
        except OSError as error:
            if error.errno != errno.ENOLCK:  # a network disk without locks will do
                raise cannot_use(folder, error) from error
        try:
            yield
        finally:
            with suppress(OSError):  # while it is held, so that nobody else's file is removed
                (folder / LOCK).unlink()


def user_path(path: str | Path) -> Path:
    """Return a path that a user gave, with the home folder instead of `~`.

    There need not be anything, but a name that is not text, or that the system cannot look up, is
    refused.

    >>> user_path("runs/first").as_posix()
    'runs/first'
    """
    check_utf8(str(path), "a path")
    expanded = Path(path)
    try:
        expanded = expanded.expanduser()
    except RuntimeError as error:
        raise RunError(
            f"cannot use `{path}`: the home folder of `{expanded.parts[0]}` is not known; write "
            f"the whole path, or `./{path}` if a name begins with `~`"
        ) from error
    try:
        # asks the system about the name, but follows no link
        expanded.lstat()
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (OSError, ValueError) as error:  # a name too long, a parent we may not look into
        reason = getattr(error, "strerror", None) or str(error)
        raise RunError(f"cannot use `{path}`: {reason}; choose another path") from error
    return expanded


def get_cache_folder() -> Path:
    """Return the folder of downloads and decoded pictures; it need not exist."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    if Path(named).is_absolute():  # the standard says to ignore any other
        return Path(named) / "paretocosmos"
    local = os.environ.get("LOCALAPPDATA", "")
    if sys.platform == "win32" and local:
        return Path(local) / "paretocosmos" / "Cache"
    try:
        home = Path.home()
    except RuntimeError:  # a container's nameless user: nothing can be kept, nothing breaks
        return Path(os.devnull) / "paretocosmos"
    return home / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "paretocosmos"


def list_data_folders(data: str | None = None) -> list[Path]:
    """Return the folders to search: the given one, or else the variable's and the cache."""
    if data is not None:
        return [user_path(data)]
    named = os.environ.get(VARIABLE)
    return [*([user_path(named)] if named else []), get_cache_folder()]
