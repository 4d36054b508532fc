"""What is done to a training: killed at a write point or any moment, stopped, out of disk."""

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

from faults._apart import ended, fork, forked, gone
from faults._points import dies_at, full_from
from faults._trainings import Training, checkpoints_in

__all__ = ["Aimed", "Blow", "Full", "Interrupted", "Killed", "OnWorkers", "damage"]


@dataclass(frozen=True)
class Blow:
    """Something that ends a training before it is done."""

    def fall(self, training: Training, out: Path, log: Path) -> str | None:
        """Begin or continue a training, and strike; what was done, `None` if it came too late."""
        raise NotImplementedError


@dataclass(frozen=True)
class Aimed(Blow):
    """Killed at the n-th write point."""

    point: int

    def fall(self, training: Training, out: Path, log: Path) -> str | None:
        code, name = _at_point(dies_at, self.point, training, out, log)
        return name if code == -signal.SIGKILL else _late(code, log)


@dataclass(frozen=True)
class Full(Blow):
    """No room on the disk from the n-th write point on."""

    point: int

    def fall(self, training: Training, out: Path, log: Path) -> str | None:
        code, name = _at_point(full_from, self.point, training, out, log)
        if code not in (0, 2):  # what could not be flushed need not stop it
            raise AssertionError(f"a full disk at {name} gave no sentence: {_end(log)}")
        return None if name is None else f"no room on the disk, {name}"


def _at_point(
    arm: Callable[[int, Path], None], point: int, training: Training, out: Path, log: Path
) -> tuple[int, str | None]:
    said = log.with_name("point")
    said.unlink(missing_ok=True)

    def act() -> None:
        arm(point, said)
        training.go(out)

    code = forked(act, log)
    return code, said.read_text() if said.exists() else None


@dataclass(frozen=True)
class Killed(Blow):
    """Killed after so many seconds."""

    seconds: float

    def fall(self, training: Training, out: Path, log: Path) -> str | None:
        child = fork(lambda: training.go(out), log)
        time.sleep(self.seconds)
        os.kill(child, signal.SIGKILL)
        code = ended(child)
        return "SIGKILL at any moment" if code == -signal.SIGKILL else _late(code, log)


@dataclass(frozen=True)
class Interrupted(Blow):
    """The command line, told to stop after so many seconds."""

    seconds: float
    with_signal: signal.Signals

    def fall(self, training: Training, out: Path, log: Path) -> str | None:
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
        child = fork(act, log)
        while not begun.exists():
            time.sleep(0.001)
        time.sleep(self.seconds)
        os.kill(child, self.with_signal)
        code = ended(child)
        if code not in (0, 130, -signal.SIGTERM) or "Traceback" in log.read_text():
            raise AssertionError(f"{self.with_signal.name} ended it with {code}: {_end(log)}")
        return None if code == 0 else f"{self.with_signal.name} at any moment"


STAGES = {
    "as it begins": "",
    "when a cell is begun": "**/.lock",
    "when a checkpoint is there": "**/epoch-1.safetensors",
    "when a seed is done": "**/front.json",
    "when a cell is done": "**/cell.json",
}


@dataclass(frozen=True)
class OnWorkers(Blow):
    """A reproduction on workers loses one of them, or itself, or both."""

    whom: str
    when: str
    seconds: float

    def fall(self, training: Training, out: Path, log: Path) -> str | None:
        def act() -> None:
            from paretocosmos.paper import scheduling

            workers: list[Any] = []
            start = scheduling._start_worker

            def remembered(*given: Any) -> Any:
                workers.append(start(*given))
                return workers[-1]

            def strike() -> None:
                while not (workers and any(out.glob(STAGES[self.when] or "*"))):
                    time.sleep(0.002)
                time.sleep(self.seconds)
                if self.whom != "the parent":
                    os.kill(workers[-1].process.pid, signal.SIGKILL)
                if self.whom != "a worker":
                    os.kill(os.getpid(), signal.SIGKILL)

            scheduling._start_worker = remembered  # type: ignore[assignment]
            threading.Thread(target=strike, daemon=True).start()
            training.go(out)

        child = fork(act, log)
        code = ended(child)
        if not gone(child):
            raise AssertionError("workers went on though the process that started them was killed")
        if code not in (0, -signal.SIGKILL):
            raise AssertionError(f"a lost worker cost more than its cell: {_end(log)}")
        return f"{self.whom} killed {self.when}"


def damage(out: Path, draw: random.Random) -> bool:
    """Flip a bit of a checkpoint, unless it is the only one of its seed."""
    every = [path for path, count in checkpoints_in(out) if count > 1]
    if not every:
        return False
    path = draw.choice(every)
    content = bytearray(path.read_bytes())
    content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    path.write_bytes(content)
    return True


def _late(code: int, log: Path) -> str | None:
    if code:
        raise AssertionError(f"it ended with {code} before it was killed: {_end(log)}")
    return None


def _end(log: Path) -> str:
    return " | ".join(log.read_text().strip().splitlines()[-6:]) if log.exists() else ""
