"""Composites kept in the cache: read back only when every byte is what was written."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np

from paretocosmos.io.files import cache_folder, replacing
from paretocosmos.problems.images.composites import Composites

__all__ = ["kept"]


def kept(name: str, build: Callable[[], Composites]) -> tuple[Composites, str]:
    """Composites from the cache, or built and put there, with their checksum.

    Args:
        name: the file's name without its ending; says everything the bytes depend on.
        build: makes them.
    """
    path = cache_folder() / "composites" / f"{name}.npz"
    found = _read(path)
    if found is not None:
        return found
    made = build()
    sha256 = made.sha256
    with suppress(OSError):  # no room or no permission: it is made again the next time
        _write(path, made, sha256)
    return made, sha256


def _read(path: Path) -> tuple[Composites, str] | None:
    try:
        # opened here because NumPy leaves a file open that turns out to be damaged
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            train, val, test = (int(count) for count in file["counts"])
            made = Composites(file["images"], file["labels"], (train, val, test))
            sha256 = made.sha256
            whole = (
                made.images.dtype == made.labels.dtype == np.uint8
                and len(made.images) == len(made.labels) == train + val + test
                and str(file["sha256"]) == sha256
            )
    except Exception:  # a damaged archive can raise anything, and is built anew whatever it was
        return None
    return (made, sha256) if whole else None


def _write(path: Path, made: Composites, sha256: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # not flushed to the disk: the checksum tells a torn file
    with replacing(path, flush=False) as temporary, temporary.open("wb") as stream:
        np.savez(
            stream,
            images=made.images,
            labels=made.labels,
            counts=np.array(made.counts),
            sha256=np.array(sha256),
        )
