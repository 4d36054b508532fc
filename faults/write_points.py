"""Write points: every moment at which what is on the disk changes, by name, to be struck at."""

import errno
import fcntl
import os
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from paretocosmos.runs import checkpoint

__all__ = ["fill_disk_from_point", "kill_at_point", "passed"]

Strike = Callable[[int, str], None]
FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def passed(log: list[str]) -> None:
    """From now on in this process, note the name of every write point that is passed."""
    _install(lambda _, name: log.append(name))


def kill_at_point(fatal: int, said: Path) -> None:
    """From now on in this process, die at the n-th write point, having left its name in a file."""

    def strike(number: int, name: str) -> None:
        if number == fatal:
            said.write_text(name)
            os.kill(os.getpid(), signal.SIGKILL)

    _install(strike)


def fill_disk_from_point(first: int, said: Path) -> None:
    """From now on in this process, the disk is full from the n-th write point on."""

    def strike(number: int, name: str) -> None:
        if number == first:
            said.write_text(name)
        if number >= first and name.startswith(("before", "with half")) and "removal" not in name:
            raise FULL

    _install(strike)


def called(path: str | os.PathLike[str]) -> str:
    """What a file is to the training, whatever its temporary name or its number.

    >>> called("/tmp/run/.run.json.0123456789ab.tmp")
    'run.json'
    >>> called("/tmp/run/checkpoint/epoch-3.safetensors")
    'a checkpoint'
    """
    name = Path(path).name
    if temporary := re.fullmatch(r"\.(.+)\.[0-9a-f]+\.tmp", name):
        name = temporary[1]
    if re.fullmatch(r"epoch-\d+\.safetensors", name):
        return "a checkpoint"
    if name.startswith("seed-"):
        return "a run's folder"
    if "-epochs_" in name:
        return "a cell's folder"
    return {".lock": "the lock", "checkpoint": "the folder of checkpoints"}.get(name, name)


def _of_handle(handle: int) -> str:
    path = Path(f"/proc/self/fd/{handle}").readlink()
    return f"the folder {called(path)}" if path.is_dir() else called(path)


def _install(strike: Strike) -> None:
    count = 0
    busy = False

    def at(name: str) -> None:
        nonlocal count, busy
        if busy:  # what a strike itself writes
            return
        count += 1
        busy = True
        try:
            strike(count, name)
        finally:
            busy = False

    def around(owner: Any, function: str, what: Callable[..., str | None]) -> None:
        original = getattr(owner, function)

        def touch(*given: Any, **named: Any) -> Any:
            name = None if busy else what(*given, **named)
            if name is None:
                return original(*given, **named)
            at(f"before {name}")
            answer = original(*given, **named)
            at(f"after {name}")
            return answer

        setattr(owner, function, touch)

    def removed(path: Any, *, dir_fd: int | None = None) -> str | None:
        there = dir_fd is not None or os.path.lexists(path)
        return f"the removal of {called(path)}" if there else None

    def made(path: Any, *_: Any, **__: Any) -> str | None:
        return None if os.path.lexists(path) else f"the making of {called(path)}"

    def opened(path: Any, mode: Any = "r", *_: Any, **__: Any) -> str | None:
        fresh = isinstance(mode, str) and "x" in mode
        return f"the temporary file of {called(path)} is made" if fresh else None

    def lock_file(path: Any, *_: Any, **__: Any) -> str | None:
        return "the file of the lock is made" if str(path).endswith(".lock") else None

    def locked(_handle: int, how: int) -> str | None:
        # giving a lock back writes nothing, so that no disk is too full for it
        return None if how & fcntl.LOCK_UN else "the lock is taken"

    around(os, "replace", lambda _, target: f"the rename of {called(target)}")
    around(os, "unlink", removed)
    around(os, "rmdir", removed)
    around(os, "mkdir", made)
    around(os, "fsync", lambda handle: f"the flush of {_of_handle(handle)}")
    around(os, "open", lock_file)
    around(fcntl, "flock", locked)
    around(Path, "open", opened)
    _writing(Path, "write_bytes", at)
    _writing(checkpoint, "save_file", at, refused=SafetensorError)


def _writing(
    owner: Any,
    function: str,
    at: Callable[[str], None],
    *,
    refused: type[Exception] | None = None,
) -> None:
    """Points before, within and after the writing of a file: of bytes, or by safetensors."""
    original = getattr(owner, function)

    def write(*given: Any, **named: Any) -> Any:
        # `write_bytes(path, content)` and `save_file(tensors, path)`
        path = next(Path(one) for one in given if isinstance(one, str | Path))
        # while safetensors writes, it has a file of its own beside
        place = path if refused is None else path.with_name(".tmpHalfAB")
        try:
            at(f"before the writing of {called(path)}")
            with place.open("wb") as stream:
                stream.write(b"{" + bytes(1000))
            at(f"with half of {called(path)} written")
        except OSError as error:
            if refused is None:
                raise
            raise refused(f"Error while serializing: I/O error: {error.strerror}") from error
        finally:
            if refused is not None and place.exists():
                os.remove(place)  # noqa: PTH107 which, unlike `unlink`, is no point
        answer = original(*given, **named)
        at(f"after the writing of {called(path)}")
        return answer

    setattr(owner, function, write)
