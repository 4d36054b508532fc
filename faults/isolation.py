"""Run code in processes that may be lost: a fresh one to start from, and forks of it."""

import multiprocessing
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

__all__ = [
    "call_in_fresh_process",
    "run_in_fork",
    "run_in_parallel",
    "start_fork",
    "wait_for_exit",
    "wait_for_group",
]

WORKERS = 3
"""Processes that run cases in parallel: one more than cores, since they wait for disks."""


def call_in_fresh_process(function: Callable[..., Any], *items: Any) -> Any:
    """Call a function in a process that has done nothing but import, and may be forked."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["pandas", "paretocosmos.cli", "paretocosmos.training.fit"])
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(theirs, dict(os.environ), function, items))
    process.start()
    theirs.close()
    try:
        answer, trace = ours.recv()
    except EOFError:
        answer, trace = None, "the process was lost"
    process.join()
    if trace is not None:
        raise RuntimeError(trace)
    return answer


def _answer(
    line: Connection,
    environment: dict[str, str],
    function: Callable[..., Any],
    items: Sequence[Any],
) -> None:
    os.environ.clear()  # the process that forks may be older than what is set now
    os.environ.update(environment)
    try:
        line.send((function(*items), None))
    except Exception:
        line.send((None, traceback.format_exc()))


def start_fork(act: Callable[[], object], log: Path | None = None) -> int:
    """Start a function in a forked process, in a group of its own, and return its id.

    Args:
        act: the function; the process exits with 0, as `sys.exit` asks, or with 1 and a traceback.
        log: a file for its output.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        os.setsid()
        if log is not None:
            handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.dup2(handle, 1)
            os.dup2(handle, 2)
        try:
            act()
            code = 0
        except SystemExit as left:
            code = left.code if isinstance(left.code, int) else int(left.code is not None)
        except BaseException:
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def wait_for_exit(child: int, limit: float = 600.0) -> int:
    """Wait for a process and return its exit code; kill it if it takes too long."""
    deadline = time.monotonic() + limit
    pause = 0.001
    while True:
        number, status = os.waitpid(child, os.WNOHANG)
        if number:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise TimeoutError(f"it was not done after {limit:g} s")
        time.sleep(pause)
        pause = min(0.02, 1.5 * pause)


def run_in_fork(act: Callable[[], object], log: Path | None = None, limit: float = 600.0) -> int:
    """Run a function in a forked process, and return its exit code."""
    return wait_for_exit(start_fork(act, log), limit)


def wait_for_group(group: int, limit: float = 300.0) -> bool:
    """Wait for all processes of a group; return False if they do not end in time."""
    deadline = time.monotonic() + limit
    while _has_living_process(group):
        if time.monotonic() > deadline:
            os.killpg(group, signal.SIGKILL)
            return False
        time.sleep(0.02)
    return True


def _has_living_process(group: int) -> bool:
    """Return True if a process of a group is alive; a zombie is not."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, its = stat.read_text().rpartition(")")[2].split()[:3]
        except OSError:  # it ended meanwhile
            continue
        if int(its) == group and state not in "ZX":
            return True
    return False


def run_in_parallel(
    act: Callable[[Any], Any], items: Sequence[Any], collect: Callable[[Any], None]
) -> None:
    """Call a function with each item in a few processes, and collect the results in any order."""
    lines: list[Connection] = []
    workers = []
    turn = multiprocessing.get_context("fork").Value("i", 0)

    def take_turn() -> int:
        with turn.get_lock():
            turn.value += 1
            return int(turn.value) - 1

    for _ in range(min(WORKERS, len(items))):
        ours, theirs = multiprocessing.Pipe(duplex=False)

        def work(line: Connection = theirs) -> None:
            while (index := take_turn()) < len(items):
                line.send(act(items[index]))

        workers.append(start_fork(work))
        theirs.close()
        lines.append(ours)
    while lines:
        for line in wait(lines):
            assert isinstance(line, Connection)
            try:
                collect(line.recv())
            except EOFError:
                lines.remove(line)
    lost = [worker for worker in workers if os.waitpid(worker, 0)[1]]
    if lost:
        raise RuntimeError("a process of the harness itself was lost")
