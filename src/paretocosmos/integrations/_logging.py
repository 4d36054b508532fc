"""What loggers have in common: from what a training tells to numbers, fronts and an end."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

from paretocosmos.io.files import digest_of
from paretocosmos.pareto.front import Front
from paretocosmos.runs.run import Run
from paretocosmos.training.callbacks import Callback, Evaluation, Start
from paretocosmos.training.progress import Progress

__all__ = ["RunLogger", "columns_of", "identity_of", "settings_of"]

Log = TypeVar("Log")
# What a record says beside the settings of its training.
BESIDE = ("about", "caveats", "answers", "objective_specs", "input_shape", "outputs", "git")


class RunLogger(Callback, ABC, Generic[Log]):
    """Hands everything a training tells to the log of its own that a tool keeps for it.

    A tool has four things to do: begin a log, take numbers, take a front, and end it.
    """

    def __init__(self) -> None:
        self._logs: dict[Path, Log] = {}

    @abstractmethod
    def _begin(self, start: Start) -> Log:
        """A log of a training, with its settings; that of before, if it goes on."""

    @abstractmethod
    def _numbers(self, log: Log, numbers: Mapping[str, float], epoch: int) -> None:
        """Take numbers of an epoch."""

    @abstractmethod
    def _front(self, log: Log, front: Front, epoch: int) -> None:
        """Take a front; its `split` says of what."""

    @abstractmethod
    def _end(self, log: Log, run: Run | None) -> None:
        """Close a log: the run, or `None` where it was not finished."""

    def started(self, start: Start) -> None:
        self._logs[start.folder] = self._begin(start)

    def epoch(self, at: Progress) -> None:
        losses = {f"loss/{name}": value for name, value in at.losses.items()}
        speed = {"seconds": at.seconds, "samples_per_second": at.samples_per_second}
        self._numbers(self._logs[at.folder], losses | speed, at.epoch)

    def evaluated(self, found: Evaluation) -> None:
        log, front = self._logs[found.folder], found.front
        ends = {
            f"front_val/{name} {end}": value
            for name, values in zip(front.names, front.values.T, strict=True)
            for end, value in (("least", values.min()), ("most", values.max()))
        }
        numbers = {"hypervolume/val": found.hypervolume} | ends
        self._numbers(log, _finite(numbers), found.epoch)
        self._front(log, front, found.epoch)

    def finished(self, run: Run) -> None:
        log, epoch = self._logs[run.folder], int(run.record["evaluations"][-1]["epoch"])
        judged = run.record["metrics"]["test"].items()
        self._numbers(log, _finite({f"{name}/test": value for name, value in judged}), epoch)
        self._front(log, run.front, epoch)
        self._end(self._logs.pop(run.folder), run)

    def stopped(self, folder: Path, why: str) -> None:
        if folder in self._logs:  # one that could not be begun is not there
            self._end(self._logs.pop(folder), None)


def _finite(numbers: Mapping[str, Any]) -> dict[str, float]:
    """Those that are numbers."""
    given = {name: value for name, value in numbers.items() if not isinstance(value, bool | str)}
    found = {name: float(value) for name, value in given.items() if value is not None}
    return {name: value for name, value in found.items() if math.isfinite(value)}


def identity_of(start: Start) -> str:
    """The same for a training that goes on, and another for any other."""
    return str(digest_of(dict(start.record)))[:16]


def settings_of(start: Start) -> dict[str, Any]:
    """The settings in a record, as nested as they are there."""
    return {key: value for key, value in start.record.items() if key not in BESIDE}


def columns_of(front: Front) -> dict[str, list[float]]:
    """A front as columns: the rays by objective, the values, the metrics.

    >>> import numpy as np
    >>> whole = Front(rays=np.eye(2), values=np.eye(2), names=("a", "b"), reference=np.ones(2))
    >>> list(columns_of(whole))
    ['weight of a', 'weight of b', 'a', 'b']
    """
    weights = {
        f"weight of {n}": ray.tolist() for n, ray in zip(front.names, front.rays.T, strict=True)
    }
    values = {n: column.tolist() for n, column in zip(front.names, front.values.T, strict=True)}
    return weights | values | {name: column.tolist() for name, column in front.metrics.items()}
