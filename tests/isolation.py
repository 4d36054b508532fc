"""Keep `make test` the same on every machine: refuse processes, sockets, signals, limits and sleep.

A test that needs one of them is marked `system`: `make test-system` runs it, may wait for it, and
tries it twice.
"""

import multiprocessing.process
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import pytest

try:
    import resource
except ModuleNotFoundError:  # Windows has none
    resource = None  # type: ignore[assignment]

__all__ = ["isolated"]

REFUSED: dict[Any, tuple[str, ...]] = {
    multiprocessing.process.BaseProcess: ("start",),
    os: ("fork", "forkpty", "kill", "killpg", "posix_spawn", "system"),
    resource: ("setrlimit",),
    signal: ("alarm", "raise_signal", "setitimer"),
    socket.socket: ("bind", "connect", "connect_ex"),
    subprocess.Popen: ("__init__",),
    time: ("sleep",),
}
"""Functions whose effect depends on the machine, on what else runs there, or on time."""


@contextmanager
def isolated() -> Iterator[None]:
    """Refuse what depends on the machine until the context ends."""
    with pytest.MonkeyPatch.context() as patch:
        for owner, names in REFUSED.items():
            for name in names:
                if hasattr(owner, name):  # Windows has no `fork`
                    patch.setattr(owner, name, _refuse(f"{owner.__name__}.{name}"))
        patch.setattr(os, "fsync", lambda _handle: None)  # takes a disk as long as it likes
        # every training would ask git which commit it runs
        patch.setattr("paretocosmos.runs.provenance._describe_commit", lambda: None)
        yield


def _refuse(name: str) -> Callable[..., NoReturn]:
    def refuse(*_args: Any, **_kwargs: Any) -> NoReturn:
        pytest.fail(f"this test calls `{name}`: do without, or mark it with pytest.mark.system")

    return refuse
