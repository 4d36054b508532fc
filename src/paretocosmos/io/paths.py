"""Paths that a user gave; where files that are not ours to ship may lie."""

import os
import sys
from pathlib import Path

from paretocosmos.errors import RunError
from paretocosmos.io.files import check_utf8

__all__ = ["VARIABLE", "cache_folder", "folders", "user_path"]

VARIABLE = "PARETOCOSMOS_DATA"


def user_path(path: str | Path) -> Path:
    """Return a path that a user gave, with the home folder instead of `~`.

    There need not be anything, but a name that is not text, or that the system cannot look up, is
    refused.

    >>> user_path("runs/first").as_posix()
    'runs/first'
    """
    check_utf8(str(path), "a path")
    place = Path(path)
    try:
        place = place.expanduser()
    except RuntimeError as error:
        raise RunError(
            f"cannot use `{path}`: the home folder of `{place.parts[0]}` is not known; write the "
            f"whole path, or `./{path}` if a name begins with `~`"
        ) from error
    try:
        place.lstat()
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (OSError, ValueError) as error:  # a name too long, a parent we may not look into
        reason = getattr(error, "strerror", None) or str(error)
        raise RunError(f"cannot use `{path}`: {reason}; choose another path") from error
    return place


def cache_folder() -> Path:
    """Where downloads and composites are kept; it need not exist."""
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


def folders(data: str | None = None) -> list[Path]:
    """The folders to look in: the one that is named, or else the variable's and the cache."""
    if data is not None:
        return [user_path(data)]
    named = os.environ.get(VARIABLE)
    return [*([user_path(named)] if named else []), cache_folder()]
