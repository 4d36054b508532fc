"""The checkpoints in run folders: the last two of each, and the epoch seeds go on from together.

Seeds that train as one write their checkpoints one after the other. Each keeps the one before until
all have the new one, so that there is always an epoch that all of them hold.
"""

import re
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from paretocosmos.errors import CheckpointWarning, RunError
from paretocosmos.io.files import sweep
from paretocosmos.runs.checkpoint import flaw_of

__all__ = [
    "checkpoint_in",
    "common_epoch",
    "drop_all_but",
    "place_of",
    "saved_in",
    "side_by_side",
    "sweep_run",
]

NAME = re.compile(r"epoch-(\d{1,9})\.safetensors")


def place_of(folder: Path, epoch: int) -> Path:
    """Where a run folder keeps the checkpoint of an epoch."""
    return folder / "checkpoint" / f"epoch-{epoch}.safetensors"


def saved_in(folder: Path) -> dict[int, Path]:
    """The checkpoints in a run folder by their epochs, newest first, intact or not."""
    found = ((NAME.fullmatch(path.name), path) for path in (folder / "checkpoint").glob("epoch-*"))
    by_epoch = {int(match[1]): path for match, path in found if match}
    return dict(sorted(by_epoch.items(), reverse=True))


def checkpoint_in(folder: Path) -> Path:
    """The newest checkpoint in a run folder."""
    return next(iter(saved_in(folder).values()), place_of(folder, 0))


def _held_in(folder: Path) -> tuple[list[int], list[str]]:
    """The epochs a run can go on from, and what is to be said of checkpoints that are damaged."""
    saved = saved_in(folder)
    if not saved:
        return [0], []  # it has not begun
    flaws = {epoch: flaw_of(path, epoch) for epoch, path in saved.items()}
    damaged = [f"`{saved[epoch]}` is damaged ({flaw})" for epoch, flaw in flaws.items() if flaw]
    held = [epoch for epoch, flaw in flaws.items() if flaw is None]
    if not held:
        raise RunError(
            f"{'; '.join(damaged)}, and there is no other checkpoint: remove "
            f"`{folder / 'checkpoint'}` to train from the beginning"
        )
    # the beginning can be made anew, as long as it is among the last two
    return held + [0] * (0 in flaws and 0 not in held), damaged


def common_epoch(folders: Sequence[Path]) -> int:
    """The newest epoch that runs can all go on from; a damaged checkpoint is warned about."""
    every = [_held_in(folder) for folder in folders]
    common = set.intersection(*(set(held) for held, _ in every))
    if not common:
        named = ", ".join(f"`{folder}`" for folder in folders)
        raise RunError(
            f"{named} have no intact checkpoint of the same epoch: resume them one by one"
        )
    epoch = max(common)
    for message in (message for _, damaged in every for message in damaged):
        warnings.warn(
            f"{message}; training continues from the checkpoint of epoch {epoch}, with the same "
            "result",
            CheckpointWarning,
            stacklevel=2,
        )
    return epoch


def side_by_side(folders: Sequence[Path]) -> list[list[int]]:
    """Which runs go on together: those that hold the epoch most of them hold, then the others so.

    Args:
        folders: the runs'.

    Returns:
        Places in `folders`, a list for each epoch, those furthest on first.
    """
    left = {at: _held_in(folder)[0] for at, folder in enumerate(folders)}
    together: dict[int, list[int]] = {}
    while left:
        counts = Counter(epoch for held in left.values() for epoch in held)
        epoch = max(counts, key=lambda one: (counts[one], one))
        together[epoch] = [at for at, held in left.items() if epoch in held]
        left = {at: held for at, held in left.items() if epoch not in held}
    return [together[epoch] for epoch in sorted(together, reverse=True)]


def drop_all_but(folder: Path, epochs: Iterable[int]) -> None:
    """Remove the checkpoints of all other epochs."""
    kept = set(epochs)
    for epoch, path in saved_in(folder).items():
        if epoch not in kept and not path.is_dir():
            path.unlink(missing_ok=True)


def sweep_run(folder: Path) -> None:
    """Remove what killed processes left half written in a run folder.

    And an empty folder under the name of a checkpoint, where one could not be written.
    """
    for place in (folder, folder / "checkpoint"):
        sweep(place)
    for path in saved_in(folder).values():
        if path.is_dir():
            with suppress(OSError):
                path.rmdir()
