"""Processes for things that go wrong: a fresh one to start from, forks of it to lose."""

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

__all__ = ["afresh", "ended", "fork", "forked", "gone", "side_by_side"]

HANDS = 3
"""Processes that do things side by side: one more than cores, since they wait for disks."""


def afresh(function: Callable[..., Any], *given: Any) -> Any:
    """Call a function in a process that has done nothing but import, and may be forked."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["pandas", "paretocosmos.cli", "paretocosmos.training.fit"])
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(theirs, dict(os.environ), function, given))
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
    given: Sequence[Any],
) -> None:
    os.environ.clear()  # the process that forks may be older than what is set now
    os.environ.update(environment)
    try:
        line.send((function(*given), None))
    except Exception:
        line.send((None, traceback.format_exc()))


def fork(act: Callable[[], object], log: Path | None = None) -> int:
    """Begin to act in a process of its own, in a group of its own; its number.

    Args:
        act: what it does; it ends with 0, as `sys.exit` says, or with 1 and a traceback.
        log: where what it says goes.
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


def ended(child: int, limit: float = 600.0) -> int:
    """How a process ended, as `subprocess` has it; one that takes too long is killed."""
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


def forked(act: Callable[[], object], log: Path | None = None, limit: float = 600.0) -> int:
    """Act in a process of its own; how it ended."""
    return ended(fork(act, log), limit)


def gone(group: int, limit: float = 300.0) -> bool:
    """Whether all processes of a group have ended, or do so in time."""
    deadline = time.monotonic() + limit
    while _living(group):
        if time.monotonic() > deadline:
            os.killpg(group, signal.SIGKILL)
            return False
        time.sleep(0.02)
    return True


def _living(group: int) -> bool:
    """Whether a process of a group lives; one that nobody has asked after does not."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, its = stat.read_text().rpartition(")")[2].split()[:3]
        except OSError:  # it ended meanwhile
            continue
        if int(its) == group and state not in "ZX":
            return True
    return False


def side_by_side(
    act: Callable[[Any], Any], given: Sequence[Any], collect: Callable[[Any], None]
) -> None:
    """Do something with each of what is given, in a few processes; answers come in any order."""
    lines: list[Connection] = []
    hands = []
    turn = multiprocessing.get_context("fork").Value("i", 0)

    def taken() -> int:
        with turn.get_lock():
            turn.value += 1
            return int(turn.value) - 1

    for _ in range(min(HANDS, len(given))):
        ours, theirs = multiprocessing.Pipe(duplex=False)

        def work(line: Connection = theirs) -> None:
            while (at := taken()) < len(given):
                line.send(act(given[at]))

        hands.append(fork(work))
        theirs.close()
        lines.append(ours)
    while lines:
        for line in wait(lines):
            assert isinstance(line, Connection)
            try:
                collect(line.recv())
            except EOFError:
                lines.remove(line)
    lost = [hand for hand in hands if os.waitpid(hand, 0)[1]]
    if lost:
        raise RuntimeError("a process of the harness itself was lost")
