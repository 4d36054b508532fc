"""A lock on a folder in training: one process at a time, and a dead one holds nothing."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from paretocosmos.errors import RunError, cannot_use
from paretocosmos.io.files import made

try:
    import fcntl
except ImportError:  # on Windows, where a folder has no lock
    fcntl = None  # type: ignore[assignment]

__all__ = ["held", "locked"]

NAME = ".lock"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other processes from a folder, which is made where it is not there.

    The system releases the lock when its process ends, even by a kill. A folder that was made
    for it and is still empty in the end is removed.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp()) / "run"
    >>> with locked(folder):
    ...     folder.is_dir()
    True
    >>> folder.exists()
    False
    """
    with made(folder):
        try:
            handle = None if fcntl is None else _acquire(folder / NAME)
        except BlockingIOError as error:
            raise RunError(
                f"`{folder}` is being trained by another process: wait for it, then start again"
            ) from error
        except OSError as error:
            raise cannot_use(folder, error) from error
        try:
            yield
        finally:
            if handle is not None:
                with suppress(OSError):  # while it is held: nobody else's file is removed
                    (folder / NAME).unlink()
                os.close(handle)


def held(folder: Path) -> bool:
    """Whether a process that lives keeps others from a folder; yes where that cannot be known.

    >>> import tempfile
    >>> held(Path(tempfile.mkdtemp()))
    False
    """
    return fcntl is None or _is_locked(folder / NAME)


def _is_locked(path: Path) -> bool:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False


def _acquire(path: Path) -> int:
    """The open file that holds the lock; one that another process holds is a `BlockingIOError`."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            raise
        except OSError:  # a disk of another machine without locks
            return handle
        # its last owner may have removed the file between our opening and locking it
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), path.lstat()):
                return handle
        os.close(handle)
