"""Bad command lines: each ends with exit code 2 and a sentence, and leaves nothing behind."""

import queue
import shutil
import threading
from contextlib import ExitStack, suppress
from itertools import islice
from pathlib import Path

from faults.bad_lines import Line, lines
from faults.command_calls import SECONDS, Call, Caller, Ended, calling
from faults.fixtures import create_files, list_files, train_runs
from faults.outcome import Outcome

__all__ = ["call_all", "find_broken_promise", "inflict"]

MEGABYTES = 1024
# Of a refusal at most; click puts its usage in front of the sentence.
LINES, LETTERS = 5, 2000
# One in so many is a process of its own; the others are forks of one that has imported all, or of
# two where there are more than a few.
SHARE, FEW, CALLERS = 25, 100, 2


def inflict(count: int, *, seed: int, folder: Path) -> Outcome:
    """Call so many different bad command lines.

    Args:
        count: how many.
        seed: chooses them.
        folder: an empty one, to work in.
    """
    ground = folder / "ground"
    ground.mkdir()
    train_runs(ground)
    create_files(ground)
    before = list_files(ground)
    made = call_all(list(islice(lines(seed), count)), folder)
    after = list_files(ground)
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            made.broken.append(f"`{name}` was changed by a line that was refused")
    return made


def call_all(every: list[Line], folder: Path) -> Outcome:
    """Call lines, two at a time where they are many, each caller in a folder of its own."""
    made, lock = Outcome(), threading.Lock()
    waiting: queue.SimpleQueue[tuple[int, Line]] = queue.SimpleQueue()
    for numbered in enumerate(every):
        waiting.put(numbered)

    def work(caller: Caller, place: Path, rest: Path) -> None:
        while True:
            try:
                number, line = waiting.get_nowait()
            except queue.Empty:
                return
            inside = place / line.inside
            inside.mkdir(exist_ok=True)
            alone = line.alone or number % SHARE == SHARE - 1
            ended = caller(
                Call(line.arguments, str(inside), alone, line.closed, dict(line.environment))
            )
            if line.inside:
                with suppress(OSError):
                    inside.rmdir()
            left = sorted({*list_files(place), *list_files(rest)})
            wrong = find_broken_promise(ended, left)
            with lock:
                made.done[line.kind] += 1
                made.measure("seconds", round(ended.seconds, 1))
                made.measure("megabytes", round(ended.megabytes))
                if wrong is None:
                    made.answered["exit code 2, a sentence, nothing left behind"] += 1
                else:
                    made.broken.append(f"{_shown(line)}: {wrong}")
            for name in left:
                _remove(place / name)
                _remove(rest / name)

    with ExitStack() as stack:
        threads = []
        for name in map(str, range(CALLERS if len(every) > FEW else 1)):
            place, rest = folder / name, folder / f"{name}-rest"
            place.mkdir()
            rest.mkdir()
            # what a program may write besides: temporary files and the cache
            elsewhere = {"TMPDIR": str(rest), "XDG_CACHE_HOME": str(rest), "COLUMNS": "100"}
            caller = stack.enter_context(calling(elsewhere))
            threads.append(threading.Thread(target=work, args=(caller, place, rest)))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return made


def find_broken_promise(ended: Ended, left: list[str]) -> str | None:
    """Which promise the end of a bad command line breaks, if any.

    Args:
        ended: how it ended.
        left: the files and folders it left behind.
    """
    said = ended.err.strip("\n")
    if ended.code is None:
        return f"it did not end within {SECONDS} s of computing"
    if "Traceback" in ended.err or "Traceback" in ended.out:
        return f"a traceback, exit code {ended.code}: {_last(said)}"
    if ended.code != 2:
        return f"exit code {ended.code}: {_last(said) or _last(ended.out)}"
    if not said:
        return "not a word on stderr"
    if ended.out:
        return f"it printed {len(ended.out)} letters on stdout before it refused"
    if said.count("\n") >= LINES or len(said) > LETTERS:
        return f"{said.count(chr(10)) + 1} lines, {len(said)} letters: {_last(said)[:200]}"
    if any(ord(letter) < 32 and letter != "\n" for letter in said) or "\u202e" in said:
        return f"control characters on stderr: {_last(said)!r}"
    if ended.megabytes > MEGABYTES:
        return f"{ended.megabytes:.0f} MB"
    if ended.left:
        return "it left a process behind"
    return f"it left {', '.join(left[:5])} behind" if left else None


def _last(text: str) -> str:
    return text.strip().rpartition("\n")[2][:300]


def _shown(line: Line) -> str:
    short = [part if len(part) < 80 else f"{part[:40]}... ({len(part)})" for part in line.arguments]
    also = [f"closed {line.closed}"] * bool(line.closed) + [f"{k}={v}" for k, v in line.environment]
    return ascii(
        " ".join([*also, *(repr(part) if " " in part or not part else part for part in short[:12])])
    )


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
