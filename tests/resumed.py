"""Trainings that are stopped and go on: what has to be the same bits."""

from collections.abc import Callable
from pathlib import Path

from paretocosmos.training.progress import Progress

__all__ = ["results", "stop_at"]

RESULTS = ("front.json", "front_val.json", "model.safetensors")


def results(folder: Path) -> list[bytes]:
    """What a run gave, byte for byte."""
    return [(folder / name).read_bytes() for name in RESULTS]


def stop_at(epoch: int) -> Callable[[Progress], None]:
    """Stops a training after an epoch."""

    def stop(at: Progress) -> None:
        if at.epoch == epoch:
            raise InterruptedError

    return stop
