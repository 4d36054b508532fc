"""Where a training stands, how fast it goes, and what is left of it."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import NamedTuple

from torch import Tensor

__all__ = ["CheckpointBudget", "EpochDone", "Progress", "RemainingTime", "unit_of"]

# Epochs and validations the estimate looks back on: it follows a machine that others use too.
RECENT = 10
# What checkpoints may take of a training's time, and what they may take in any case, in seconds.
SHARE, FREE = 0.05, 2.0


@dataclass(frozen=True)
class Progress:
    """Where a training stands; handed to `fit`'s `progress` after every epoch.

    Attributes:
        epoch: epochs done.
        epochs: epochs in all.
        losses: the epoch's mean training loss of every objective, over all seeds.
        hypervolume_val: the last validation's hypervolume, their mean; `None` before the first.
        seconds: training time so far.
        engine: how steps are run.
        folder: the run folder; that of the first seed where several train together.
        unit: what a sample is called, ``"images"`` or ``"samples"``.
        samples_per_second: the epoch's training samples a second, of all networks and all seeds
            that train together, as in ``run.json``.
        seconds_left: an estimate of all that is still to do, evaluations included.
        memory: the most bytes taken so far: on a GPU by this training, on a CPU by the process;
            `None` where the system does not say.
        waiting: the share of the epoch's training that stood still for want of data; 0 where all
            data is on the device.
    """

    epoch: int
    epochs: int
    losses: Mapping[str, float]
    hypervolume_val: float | None
    seconds: float
    engine: str
    folder: Path
    unit: str
    samples_per_second: float
    seconds_left: float
    memory: int | None
    waiting: float


class EpochDone(NamedTuple):
    """An epoch's steps: losses ``[steps, K, J]`` of all K networks, and where the time went."""

    losses: Tensor
    seconds: float
    preparing: float
    waited: float


class RemainingTime:
    """What epochs and validations of this training take, and so what is left.

    Args:
        epochs: in all.
        evaluate_every: epochs from one validation to the next; the last epoch has one anyway.
    """

    def __init__(self, epochs: int, evaluate_every: int) -> None:
        self._validated = [
            epoch % evaluate_every == 0 or epoch == epochs for epoch in range(1, epochs + 1)
        ]
        self._epochs: deque[float] = deque(maxlen=RECENT)
        self._validations: deque[float] = deque(maxlen=RECENT)

    def note(self, seconds: float, validating: float) -> None:
        """An epoch is done.

        Args:
            seconds: all it took but for its validation.
            validating: what that took, 0 where there was none.
        """
        self._epochs.append(seconds)
        if validating > 0:
            self._validations.append(validating)

    def left(self, epoch: int) -> float:
        """Seconds from the end of this epoch to the end; the test takes as long as a validation.

        >>> remaining = RemainingTime(10, 5)
        >>> remaining.note(2.0, 0.5)
        >>> remaining.left(5)
        11.0
        """
        rest = self._validated[epoch:]
        own = median(self._epochs) if self._epochs else 0.0
        judging = median(self._validations) if self._validations else 0.0
        return len(rest) * own + (sum(rest) + 1) * judging


class CheckpointBudget:
    """Whether another checkpoint is worth its time.

    There is one after every epoch, unless epochs are so short and networks so large that writing
    would cost more than a share of the training: then it waits for a later epoch.

    >>> budget = CheckpointBudget()
    >>> budget.note(training=0.5, saving=3.0)
    >>> budget.due
    False
    >>> budget.note(training=30.0, saving=0.0)
    >>> budget.due
    True
    """

    def __init__(self) -> None:
        self._training, self._saving = 0.0, 0.0

    @property
    def due(self) -> bool:
        """Whether to write one now."""
        return self._saving <= FREE + SHARE * self._training

    def note(self, *, training: float, saving: float) -> None:
        """An epoch is done.

        Args:
            training: seconds it took.
            saving: seconds its checkpoint took, 0 where there was none.
        """
        self._training += training
        self._saving += saving


def unit_of(input_shape: Sequence[int]) -> str:
    """What samples of a shape are called.

    >>> unit_of((3, 64, 64)), unit_of((88,))
    ('images', 'samples')
    """
    return "images" if len(input_shape) == 3 else "samples"
