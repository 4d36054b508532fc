"""Trainings killed, at every write point and at any moment, and gone on with to the same bits."""

import json
import random
import shutil
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from faults.fault_injection import (
    STAGES,
    Fault,
    FillDisk,
    InterruptAfter,
    KillAfter,
    KillAtWritePoint,
    KillWorkers,
    flip_bit,
)
from faults.isolation import call_in_fresh_process, run_in_fork, run_in_parallel
from faults.outcome import Outcome
from faults.trainings import KINDS, Training, prepare
from faults.write_points import passed

__all__ = ["inflict"]

SHARES = {
    "one seed": 0.28,
    "a table": 0.06,
    "a stack of seeds": 0.38,
    "compare": 0.11,
    "reproduce": 0.14,
    "reproduce on workers": 0.03,
}
"""How many of the kills hit each kind of training."""

WHOLE = 100
"""From so many kills on, those that take long, with workers of their own, are among them."""

TRIES = 10

Spoil = Callable[[], None]


@dataclass(frozen=True)
class Whole:
    """A training that nobody disturbed: what it gave, how long it took, what it passed."""

    results: dict[str, Any]
    seconds: float
    points: list[str]


@dataclass(frozen=True)
class Scenario:
    """What happens to one training, in order."""

    training: Training
    blows: tuple[Fault, ...]
    also: str = ""
    seed: int = 0
    aim: str | None = None


def inflict(
    count: int, *, seed: int, folder: Path, only: str | None = None, spoil: Spoil | None = None
) -> Outcome:
    """Kill that many trainings, continue them, and compare with what nobody disturbed.

    Args:
        count: trainings.
        seed: decides where and when.
        folder: scratch.
        only: a kind of training; else all.
        spoil: called first in the process that is forked; to see that mistakes are found.
    """
    made: Outcome = call_in_fresh_process(_run_cases, count, seed, folder, only, spoil)
    return made


def _run_cases(
    count: int, seed: int, folder: Path, only: str | None, spoil: Spoil | None
) -> Outcome:
    torch.set_num_threads(1)  # whose threads a fork would not have
    prepare(folder)
    shares = {name: share for name, share in SHARES.items() if only in (None, name)}
    if only is None and count < WHOLE:
        del shares["reproduce on workers"]
    numbers = {name: round(count * share / sum(shares.values())) for name, share in shares.items()}
    numbers[next(iter(numbers))] += count - sum(numbers.values())
    wholes = {name: _whole(KINDS[name], folder) for name, number in numbers.items() if number}
    draw = random.Random(seed)
    struck: set[str] = set()
    scenarios = [
        scenario
        for name, whole in wholes.items()
        for scenario in _planned(KINDS[name], whole, numbers[name], draw, struck)
    ]
    draw.shuffle(scenarios)
    if spoil is not None:
        spoil()
    made = Outcome()

    def act(numbered: tuple[int, Scenario]) -> Outcome:
        at, scenario = numbered
        return _suffered(scenario, wholes[scenario.training.name], folder / f"{at}")

    run_in_parallel(act, list(enumerate(scenarios)), made.add)
    made.broken = [sentence.replace(str(folder), "FOLDER") for sentence in made.broken]
    every = {name for whole in wholes.values() for name in whole.points}
    made.measure("write points by name", len(every))
    made.measure("of them struck", len({s.aim for s in scenarios if s.aim is not None} & every))
    return made


def _whole(training: Training, folder: Path) -> Whole:
    """Train in this process, and once more in another process that records its write points."""
    out, file = folder / f"whole {training.name}" / "out", folder / "points.json"
    out.parent.mkdir()
    if training.name == "reproduce on workers":  # has to give what one process gives
        KINDS["reproduce"].go(out)
        return Whole(training.results(out), 0.0, [])
    training.go(out)
    again = folder / f"again {training.name}" / "out"  # by the same name, which points have
    again.parent.mkdir()

    def act(point: list[str]) -> None:
        passed(point)
        began = time.perf_counter()
        training.go(again)
        file.write_bytes(json.dumps([time.perf_counter() - began, list(point)]).encode())

    if run_in_fork(lambda: act([])):
        raise RuntimeError(f"{training.name} failed though nothing was done to it")
    seconds, points = json.loads(file.read_text())
    return Whole(training.results(out), seconds, points)


def _planned(
    training: Training, whole: Whole, count: int, draw: random.Random, struck: set[str]
) -> Iterator[Scenario]:
    """Scenarios of a training: half of them aimed, at names that were not struck before first."""

    def scenario(*blows: Fault, also: str = "", aim: str | None = None) -> Scenario:
        return Scenario(training, blows, also, draw.getrandbits(32), aim)

    if training.name == "reproduce on workers":
        for at in range(count):
            whom = ("a worker", "the parent", "a worker and the parent")[at % 3]
            when = list(STAGES)[at // 3 % len(STAGES)]
            yield scenario(KillWorkers(whom, when, draw.uniform(0, 0.1)))
        return
    total = len(whole.points)
    later = range(total // 2, total + 1)  # where checkpoints are there
    for how in _ways(training, count):
        if how == "aimed":
            left = [n for n, name in enumerate(whole.points, 1) if name not in struck]
            point = draw.choice(left or range(1, total + 1))
            struck.add(whole.points[point - 1])
            yield scenario(KillAtWritePoint(point), aim=whole.points[point - 1])
        elif how == "damaged":
            yield scenario(KillAtWritePoint(draw.choice(later)), also="a checkpoint damaged")
        elif how == "twice":
            first = (
                KillAtWritePoint(draw.choice(later)),
                KillAfter(draw.uniform(0.3, 1) * whole.seconds),
            )
            again = (
                KillAtWritePoint(draw.randint(1, 12)),
                KillAfter(draw.uniform(0.05, 0.3) * whole.seconds),
            )
            yield scenario(draw.choice(first), draw.choice(again), also="killed again")
        elif how == "full":
            yield scenario(FillDisk(draw.randint(1, total)))
        elif how == "interrupted":
            which = draw.choice((signal.SIGINT, signal.SIGTERM))
            yield scenario(InterruptAfter(draw.uniform(0, 1) * whole.seconds, which))
        else:
            yield scenario(KillAfter(draw.uniform(0, 1) * whole.seconds))


def _ways(training: Training, count: int) -> list[str]:
    """How each of so many trainings is struck: aimed every second time, the rest in turn."""
    # beside seeds that have finished, one with a damaged checkpoint trains on alone, and rounds
    # differently
    damaged = "killed" if training.name == "a stack of seeds" else "damaged"
    rest = ["killed", damaged, "twice", "full", "killed", damaged]
    if training.name in ("one seed", "a stack of seeds"):
        rest.append("interrupted")
    return ["aimed" if at % 2 == 0 else rest[at // 2 % len(rest)] for at in range(count)]


def _suffered(scenario: Scenario, whole: Whole, folder: Path) -> Outcome:
    """Do it, continue, compare."""
    training, made = scenario.training, Outcome()
    out, log, draw = folder / "out", folder / "log", random.Random(scenario.seed)
    began = time.perf_counter()
    folder.mkdir()
    names: list[str] = []
    try:
        for blow in scenario.blows:
            name = blow.inject(training, out, log)
            tries = 0
            while name is None and not names and isinstance(blow, KillAfter | InterruptAfter):
                shutil.rmtree(out)  # it was done before: sooner
                tries += 1
                if tries > TRIES:
                    raise AssertionError("it was done, however soon it was told to stop")
                name = _sooner(blow, 0.6**tries).inject(training, out, log)
            names += [name] if name is not None else []
        if scenario.also == "a checkpoint damaged" and flip_bit(out, draw):
            names.append(scenario.also)
        if training.name.startswith("reproduce"):
            shutil.rmtree(out / "report", ignore_errors=True)
        code = run_in_fork(lambda: training.go(out), log)
        if code:
            raise AssertionError(f"it did not go on: {log.read_text()[-600:]}")
        found, left = training.results(out), training.left(out)
        other = sorted(k for k in {*found, *whole.results} if found.get(k) != whole.results.get(k))
        if other:
            raise AssertionError(f"other results: {', '.join(other)}")
        if left:
            raise AssertionError(f"left behind: {', '.join(left)}")
        made.answered["the same bits"] += 1
    except (AssertionError, TimeoutError) as error:
        made.answered["something else"] += 1
        made.broken.append(f"{training.name}, {scenario.blows} {names}: {error}")
    except Exception:
        made.broken.append(f"{training.name}, {scenario.blows}: {traceback.format_exc()}")
    made.done[f"{training.name}: {_told(names)}"] += 1
    made.measure("seconds of the longest", time.perf_counter() - began)
    shutil.rmtree(folder, ignore_errors=True)
    return made


def _sooner(blow: KillAfter | InterruptAfter, share: float) -> Fault:
    if isinstance(blow, InterruptAfter):
        return InterruptAfter(share * blow.seconds, blow.with_signal)
    return KillAfter(share * blow.seconds)


def _told(names: list[str]) -> str:
    if not names:
        return "nothing, since it was done before"
    return ", then ".join(["killed" if len(names) > 1 else names[0], *names[1:]])
