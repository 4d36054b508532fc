"""Calls the command line thousands of times: one process imports it, and forks for every call.

`python -m faults.command_calls` is that process: it reads a line of JSON with a call from standard
input, and writes a line with the result to standard output. It computes nothing itself, since the
threads of torch do not survive a fork. A call that asks for it becomes a process of its own
instead: `python -P -m paretocosmos`, as a user would start it.
"""

import atexit
import dataclasses
import gc
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

__all__ = ["Call", "Caller", "Ended", "calling"]

SECONDS = 60
"""Of computing that a call may take; then it is killed."""
PATIENCE = 600.0
"""Seconds until one that only waits is killed; on a busy machine all take their time."""
ROOM = 3 << 29
"""Bytes of address space that a call may take beyond what is mapped when it begins."""


@dataclass(frozen=True)
class Call:
    """A command line and what surrounds it.

    Attributes:
        arguments: after the program's name; bytes that are no UTF-8 are escaped, as in `sys.argv`.
        folder: where it is called.
        alone: as a process of its own.
        closed: descriptors that are closed when it begins; then it is alone.
        environment: variables besides the usual ones.
    """

    arguments: tuple[str, ...]
    folder: str
    alone: bool = False
    closed: tuple[int, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Ended:
    """How a call ended.

    Attributes:
        code: negative for a signal, `None` if it had to be killed.
        out: what it printed.
        err: on stderr.
        seconds: of computing.
        megabytes: at most.
        left: whether it left a process behind; that is killed.
    """

    code: int | None
    out: str
    err: str
    seconds: float
    megabytes: float
    left: bool = False


class Caller:
    """Speaks with the process that forks; one call at a time."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def __call__(self, call: Call) -> Ended:
        """Make one call, and wait for its end."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(dataclasses.asdict(call)) + "\n")
        self._process.stdin.flush()
        return Ended(**json.loads(self._process.stdout.readline()))


def _path() -> str:
    """Where this harness is found, which nobody installs, and what was there before."""
    before = os.environ.get("PYTHONPATH")
    return os.pathsep.join([str(Path(__file__).parents[1]), *([before] if before else [])])


@contextmanager
def calling(environment: Mapping[str, str] | None = None) -> Iterator[Caller]:
    """Start the process that forks, and end it."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "faults.command_calls"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": _path(), "OMP_NUM_THREADS": "1", **(environment or {})},
    )
    try:
        yield Caller(process)
    finally:
        process.communicate()  # the end of its input is the end of it


def serve() -> None:
    """Answer calls until there are no more."""
    from paretocosmos import __main__ as program
    from paretocosmos import cli  # noqa: F401  # what takes seconds

    for heavy in ("pandas", "sklearn", "torch.export", "paretocosmos.explorer", "fastapi"):
        __import__(heavy)
    asked, told = sys.stdin, sys.stdout
    assert threading.active_count() == 1
    gc.collect()
    gc.freeze()  # so that forks share what is imported
    for line in asked:
        given: dict[str, Any] = json.loads(line)
        call = Call(**given | {"arguments": tuple(given["arguments"])})
        told.write(json.dumps(dataclasses.asdict(_ended(call, program.main))) + "\n")
        told.flush()


def _ended(call: Call, main: Any) -> Ended:
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        began = time.monotonic()
        pid = os.fork()
        if pid == 0:
            _become(call, main, out, err)
        in_time = _waited(pid, began)
        _, status, used = os.wait4(pid, 0)
        seconds = used.ru_utime + used.ru_stime
        left = _ended_group(pid)
        code: int | None = os.waitstatus_to_exitcode(status)
        if not in_time or code in (-signal.SIGXCPU, -signal.SIGKILL):
            code = None
        return Ended(code, _read(out), _read(err), seconds, used.ru_maxrss / 1024, left)


def _ended_group(group: int) -> bool:
    """Kill what a call left running; whether there was any."""
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def _waited(pid: int, began: float) -> bool:
    """Wait, and kill what takes too long; a thread that waits would not survive the next fork."""
    pause = 0.002
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
        if time.monotonic() - began > PATIENCE:
            os.killpg(pid, signal.SIGKILL)
            return False
        time.sleep(pause)
        pause = min(pause * 1.5, 0.05)
    return True


def _read(stream: IO[bytes]) -> str:
    stream.seek(0)
    return stream.read(1 << 20).decode("utf-8", "backslashreplace")


def _become(call: Call, main: Any, out: IO[bytes], err: IO[bytes]) -> None:
    """In the fork: call, and end as the interpreter would."""
    code = 1
    try:
        os.setsid()  # a group of its own, which can be killed as a whole
        nothing = os.open(os.devnull, os.O_RDONLY)
        for number, descriptor in enumerate((nothing, out.fileno(), err.fileno())):
            os.dup2(descriptor, number)
        for number in call.closed:
            os.close(number)
        os.chdir(call.folder)
        os.environ.update(call.environment)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        if call.alone or call.closed:
            command = [sys.executable, "-P", "-m", "paretocosmos", *call.arguments]
            os.execv(sys.executable, [os.fsencode(part) for part in command])
        resource.setrlimit(resource.RLIMIT_AS, (mapped + ROOM, mapped + ROOM))
        sys.stdin = open(0, closefd=False)  # noqa: SIM115
        sys.stdout = open(1, "w", closefd=False, encoding="utf-8")  # noqa: SIM115
        odd = "backslashreplace"
        sys.stderr = open(2, "w", closefd=False, encoding="utf-8", errors=odd)  # noqa: SIM115
        sys.argv = ["paretocosmos", *call.arguments]
        code = _code(main)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _code(main: Any) -> int:
    code: object = 0
    try:
        main()
    except SystemExit as ended:
        code = ended.code
    except BaseException:
        traceback.print_exc()
        code = 1
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
    except OSError:
        code = 120
    sys.stderr.flush()
    if isinstance(code, str):
        sys.stderr.write(f"{code}\n")
        return 1
    return code if isinstance(code, int) else 0


if __name__ == "__main__":
    serve()
