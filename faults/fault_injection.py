"""Faults injected into a training: kills at write points or any moment, signals, a full disk."""

import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faults.isolation import run_in_fork, start_fork, wait_for_exit, wait_for_group
from faults.trainings import Training, count_checkpoints
from faults.write_points import fill_disk_from_point, kill_at_point

__all__ = [
    "Fault",
    "FillDisk",
    "InterruptAfter",
    "KillAfter",
    "KillAtWritePoint",
    "KillWorkers",
    "flip_bit",
]


@dataclass(frozen=True)
class Fault:
    """Fault that ends a training early."""

    def inject(self, training: Training, out: Path, log: Path) -> str | None:
        """Start or continue a training, and injure it.

        Returns:
            A description of the fault, or `None` if the training ended first.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class KillAtWritePoint(Fault):
    """Kill at the n-th write point."""

    point: int

    def inject(self, training: Training, out: Path, log: Path) -> str | None:
        code, name = _train_with(kill_at_point, self.point, training, out, log)
        return name if code == -signal.SIGKILL else _check_ended(code, log)


@dataclass(frozen=True)
class FillDisk(Fault):
    """A full disk from the n-th write point on."""

    point: int

    def inject(self, training: Training, out: Path, log: Path) -> str | None:
        code, name = _train_with(fill_disk_from_point, self.point, training, out, log)
        if code not in (0, 2):  # what could not be flushed need not stop it
            raise AssertionError(f"a full disk at {name} gave no sentence: {_read_last_lines(log)}")
        return None if name is None else f"no room on the disk, {name}"


def _train_with(
    arm: Callable[[int, Path], None], point: int, training: Training, out: Path, log: Path
) -> tuple[int, str | None]:
    said = log.with_name("point")
    said.unlink(missing_ok=True)

    def act() -> None:
        arm(point, said)
        training.go(out)

    code = run_in_fork(act, log)
    return code, said.read_text() if said.exists() else None


@dataclass(frozen=True)
class KillAfter(Fault):
    """Kill after so many seconds."""

    seconds: float

    def inject(self, training: Training, out: Path, log: Path) -> str | None:
        child = start_fork(lambda: training.go(out), log)
        time.sleep(self.seconds)
        os.kill(child, signal.SIGKILL)
        code = wait_for_exit(child)
        return "SIGKILL at any moment" if code == -signal.SIGKILL else _check_ended(code, log)


@dataclass(frozen=True)
class InterruptAfter(Fault):
    """Send the command line a signal after so many seconds."""

    seconds: float
    with_signal: signal.Signals

    def inject(self, training: Training, out: Path, log: Path) -> str | None:
        begun = log.with_name("begun")

        def act() -> None:
            from paretocosmos.cli import main

            # which whoever started the harness in the background had turned off
            signal.signal(signal.SIGINT, signal.default_int_handler)
            sys.argv = ["paretocosmos", *training.arguments(out)]
            begun.touch()
            try:
                main()
            except KeyboardInterrupt:  # between that and this
                sys.exit(130)

        begun.unlink(missing_ok=True)
        child = start_fork(act, log)
        while not begun.exists():
            time.sleep(0.001)
        time.sleep(self.seconds)
        os.kill(child, self.with_signal)
        code = wait_for_exit(child)
        if code not in (0, 130, -signal.SIGTERM) or "Traceback" in log.read_text():
            raise AssertionError(
                f"{self.with_signal.name} ended it with {code}: {_read_last_lines(log)}"
            )
        return None if code == 0 else f"{self.with_signal.name} at any moment"


STAGES = {
    "as it begins": "",
    "when a cell is begun": "**/.lock",
    "when a checkpoint is there": "**/epoch-1.safetensors",
    "when a seed is done": "**/front.json",
    "when a cell is done": "**/cell.json",
}


@dataclass(frozen=True)
class KillWorkers(Fault):
    """Kill a worker of a reproduction, its parent, or both."""

    victim: str
    when: str
    seconds: float

    def inject(self, training: Training, out: Path, log: Path) -> str | None:
        def act() -> None:
            from paretocosmos.training.scheduler import _LocalWorker

            processes: set[Any] = set()
            submit = _LocalWorker.submit

            def remembered(worker: Any, task: Any) -> Any:
                future = submit(worker, task)
                processes.update(worker._processes)
                return future

            def strike() -> None:
                while not (processes and any(out.glob(STAGES[self.when] or "*"))):
                    time.sleep(0.002)
                time.sleep(self.seconds)
                if self.victim != "the parent":
                    os.kill(next(iter(processes)).pid, signal.SIGKILL)
                if self.victim != "a worker":
                    os.kill(os.getpid(), signal.SIGKILL)

            _LocalWorker.submit = remembered  # type: ignore[method-assign,assignment]
            threading.Thread(target=strike, daemon=True).start()
            training.go(out)

        child = start_fork(act, log)
        code = wait_for_exit(child)
        if not wait_for_group(child):
            raise AssertionError("workers went on though the process that started them was killed")
        if code not in (0, -signal.SIGKILL):
            raise AssertionError(f"a lost worker cost more than its cell: {_read_last_lines(log)}")
        return f"{self.victim} killed {self.when}"


def flip_bit(out: Path, draw: random.Random) -> bool:
    """Flip a bit of a checkpoint, unless it is the only one of its seed."""
    every = [path for path, count in count_checkpoints(out) if count > 1]
    if not every:
        return False
    path = draw.choice(every)
    content = bytearray(path.read_bytes())
    content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    path.write_bytes(content)
    return True


def _check_ended(code: int, log: Path) -> str | None:
    if code:
        raise AssertionError(f"it ended with {code} before it was killed: {_read_last_lines(log)}")
    return None


def _read_last_lines(log: Path) -> str:
    return " | ".join(log.read_text().strip().splitlines()[-6:]) if log.exists() else ""
