"""Files damaged in every way: what they held, or one sentence; no traceback, no wrong result."""

import contextlib
import json
import os
import pickle
import random
import resource
import shutil
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from tests.strangers import seal

from faults.artefacts import Artefact, artefacts
from faults.isolation import call_in_fresh_process, run_in_parallel, start_fork, wait_for_exit
from faults.outcome import Outcome
from faults.readers import import_plotting
from paretocosmos.errors import ParetoCosmosError

__all__ = ["inflict"]

BATCH = 100
SECONDS = 60.0
"""That reading a file may take, on a busy machine."""

MEGABYTES = 1024.0
"""That the process may have, what it began with included."""

HOLES = "40 GB of holes"
SPECIAL = ("a folder instead", "a link to another file", "a link to nothing", "another file")

Case = tuple[int, Artefact]
Spoil = Callable[[], None]


class HangError(BaseException):
    """Reading took too long; no `except Exception` keeps it."""


def inflict(
    count: int, *, seed: int, folder: Path, only: str | None = None, spoil: Spoil | None = None
) -> Outcome:
    """Damage that many files, and read them.

    Args:
        count: of files.
        seed: decides which, and how.
        folder: scratch.
        only: kinds of files whose names begin so; else all.
        spoil: called first in the process that is forked; to see that mistakes are found.
    """
    made: Outcome = call_in_fresh_process(_run_cases, count, seed, folder, only, spoil)
    return made


def _run_cases(
    count: int, seed: int, folder: Path, only: str | None, spoil: Spoil | None
) -> Outcome:
    torch.set_num_threads(1)
    every = artefacts(folder / "good", only=only)
    import_plotting(folder)
    right: dict[str, Any] = {}
    for number, one in enumerate(every):  # which also imports whatever reading imports
        with _place(one, folder / f"right-{number}") as place:
            right[one.name] = one.read(place)
    if spoil is not None:
        spoil()
    draw = random.Random(seed)
    shares = [one.share for one in every]
    chosen = draw.choices(every, shares, k=count)
    chosen[: len(every)] = every[:count]  # each at least once
    cases = sorted(enumerate(chosen), key=lambda case: case[1].name)
    batches = [cases[start : start + BATCH] for start in range(0, count, BATCH)]
    draw.shuffle(batches)
    made = Outcome()

    def act(batch: list[Case]) -> Outcome:
        return _batch(batch, right, seed, folder)

    run_in_parallel(act, batches, made.add)
    made.broken = [sentence.replace(str(folder), "FOLDER") for sentence in made.broken]
    return made


def _batch(batch: list[Case], right: dict[str, Any], seed: int, folder: Path) -> Outcome:
    """Read a batch in a process of its own; where that is lost, the rest in another."""
    made, file = Outcome(), folder / f"batch-{batch[0][0]}"
    while batch:
        limit = SECONDS * 3 + 0.5 * len(batch) * 5

        def act(batch: list[Case] = batch) -> None:
            own = Outcome()
            for at, (number, one) in enumerate(batch):
                file.with_suffix(".at").write_text(f"{at}")
                _case(number, one, right[one.name], seed, folder, own)
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            own.measure("megabytes of a process", peak)
            if peak > MEGABYTES:
                own.broken.append(f"{batch[0][1].name} and others took {peak:.0f} MB")
            file.write_bytes(pickle.dumps(own))

        child = start_fork(act)
        try:
            code = wait_for_exit(child, limit)
        except TimeoutError:
            code = -signal.SIGALRM
        if code == 0:
            made.add(pickle.loads(file.read_bytes()))
            break
        at = int(file.with_suffix(".at").read_text())
        number, one = batch[at]
        made.done[f"{one.name}: lost"] += 1
        made.broken.append(f"case {number}, {one.name}: the process ended with {code}")
        # those before it were fine, and are done again for their counts
        if at:
            made.add(_batch(batch[:at], right, seed, folder))
        batch = batch[at + 1 :]
    return made


def _case(number: int, one: Artefact, right: Any, seed: int, folder: Path, made: Outcome) -> None:
    """Damage one file, read it, and say what came of it."""
    draw = random.Random(f"{seed} {number}")
    before = {name.partition(".")[0] for name in sys.modules}
    began = time.perf_counter()
    with _place(one, folder / f"case-{number}") as place:
        how = _damage(one, place, draw)
        told = f"case {number}, {one.name}, {how}"
        made.done[f"{one.name}: {how}"] += 1
        try:
            with _limited(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = one.read(place)
        except ParetoCosmosError as error:
            _refused(one, str(error), told, made)
        except HangError:
            made.broken.append(f"{told}: not done after {SECONDS:g} s")
        except BaseException as error:
            where = error.__traceback__
            while where is not None and where.tb_next is not None:
                where = where.tb_next
            line = "" if where is None else f"{where.tb_frame.f_code.co_filename}:{where.tb_lineno}"
            said = " ".join(str(error).split())[:160]
            made.broken.append(
                f"{told}: {type(error).__name__}: {said} at {'/'.join(line.split('/')[-2:])}"
            )
        else:
            if not one.exact:
                made.answered["an answer, where nothing tells that it is another"] += 1
            elif found == right:
                made.answered["the right result"] += 1
            else:
                made.broken.append(f"{told}: a wrong result")
    drawn = {name.partition(".")[0] for name in sys.modules} - before
    if drawn:
        made.broken.append(f"{told}: imported {', '.join(sorted(drawn))}")
    made.measure("seconds of the longest", time.perf_counter() - began)


def _refused(one: Artefact, sentence: str, told: str, made: Outcome) -> None:
    if one.always:
        made.broken.append(f"{told}: refused: {sentence[:300]}")
    elif not sentence or "\n" in sentence or "Traceback" in sentence or len(sentence) > 4000:
        made.broken.append(f"{told}: not one clear sentence: {sentence[:300]!r}")
    else:
        made.answered["one sentence"] += 1


@contextlib.contextmanager
def _place(one: Artefact, place: Path) -> Iterator[Path]:
    """A copy of a folder in good order; links, where reading changes nothing in it."""
    if one.fresh:
        shutil.copytree(one.folder, place)
    else:
        place.mkdir()
        for path in one.folder.iterdir():
            if path.is_file():
                os.link(path, place / path.name)
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _damage(one: Artefact, place: Path, draw: random.Random) -> str:
    path = place / one.file
    content = path.read_bytes()
    path.unlink()  # a link to the good one, which stays
    special = not one.sealed and draw.random() < 0.04
    # of a network, whose size is known before its weights are read
    holes = (HOLES,) * one.name.startswith("model.safetensors")
    how = draw.choice((*SPECIAL, *holes) if special else list(one.ways))
    if how == "a folder instead":
        path.mkdir()
    elif how == "a link to another file":
        (place / "other").write_bytes(b"{}")
        path.symlink_to(place / "other")
    elif how == "a link to nothing":
        path.symlink_to(place / "nothing")
    elif how == HOLES:
        path.write_bytes(content if draw.random() < 0.5 else _announced(content))
        os.truncate(path, 40 * 10**9)
    elif how == "another file":
        others = [other for other in one.folder.rglob("*") if other.is_file()]
        path.write_bytes(draw.choice(sorted(others)).read_bytes())
    else:
        path.write_bytes(one.ways[how](content, draw))
    if one.sealed:
        _seal(place)
    return how


def _announced(content: bytes) -> bytes:
    """The beginning of a safetensors file that says of 40 GB what they are."""
    size = int.from_bytes(content[:8], "little")
    header, rest = json.loads(content[8 : 8 + size]), content[8 + size :]
    text = b""
    while size != len(text):  # which depends on the number in it
        size = len(text)
        end = 40 * 10**9 - 8 - size
        more = {"dtype": "U8", "shape": [end - len(rest)], "data_offsets": [len(rest), end]}
        text = json.dumps({**header, "more": more}).encode()
    return len(text).to_bytes(8, "little") + text + rest


def _seal(place: Path) -> None:
    """Make hashes right, as far as there is a record to put them in."""
    with contextlib.suppress(ValueError, RecursionError):
        record = json.loads((place / "run.json").read_bytes())
        if isinstance(record, dict):
            (place / "run.json").unlink()
            seal(place, record)


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    """A time limit on what is inside."""

    def late(*_: object) -> None:
        raise HangError

    signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
