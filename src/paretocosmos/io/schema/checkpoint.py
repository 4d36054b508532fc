"""The header of a checkpoint: how far a training has come, and the best it had so far."""

from pathlib import Path

from paretocosmos.errors import RunError
from paretocosmos.io.schema.front import FrontFile
from paretocosmos.io.schema.kinds import ByName, Count, Large, Model, NonEmpty, Number, Some
from paretocosmos.io.schema.sentence import validated

__all__ = ["check_checkpoint"]


def check_checkpoint(numbers: object, file: Path) -> None:
    """Refuse numbers from which no training can go on.

    Args:
        numbers: what the header holds.
        file: what it is called in a refusal.
    """

    def refusal(mistake: str) -> RunError:
        return RunError(f"`{file}` is damaged: {mistake}; train again in another folder")

    validated(CheckpointFile, numbers, refusal)


class _Evaluation(Model):
    epoch: Large
    hypervolume_val: float | None
    values: NonEmpty[NonEmpty[Number | None]]
    losses: ByName[float]
    seconds_training: Number


class _Selected(Model):
    epoch: Large
    quality: float
    seconds_training: Number
    front_val: FrontFile


class CheckpointFile(Model):
    """Counters and times, every evaluation, and what was selected of each network.

    `run` is a hash of the settings and the data of the run that wrote it.

    The losses of an epoch are `unjudged` until it is validated.
    """

    run: str
    epoch: Large
    seconds: Number
    seconds_preparing: Number
    seconds_evaluating: Number
    seconds_waiting: Number
    seeds_together: Count
    evaluations: Some[_Evaluation]
    selected: NonEmpty[_Selected | None]
    unjudged: ByName[float] | None = None
