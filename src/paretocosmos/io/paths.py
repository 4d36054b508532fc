"""Where files that are not ours to ship may lie: a folder of yours, or the cache."""

import os
import sys
from pathlib import Path

__all__ = ["VARIABLE", "cache_folder", "folders"]

VARIABLE = "PARETOCOSMOS_DATA"


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
        return [Path(data).expanduser()]
    named = os.environ.get(VARIABLE)
    return [*([Path(named).expanduser()] if named else []), cache_folder()]
