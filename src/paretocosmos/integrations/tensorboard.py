"""Trainings in TensorBoard."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from paretocosmos.errors import need
from paretocosmos.integrations._logging import RunLogger, columns_of, identity_of, settings_of
from paretocosmos.io.text import printable
from paretocosmos.pareto.front import Front
from paretocosmos.runs.run import Run
from paretocosmos.training.callbacks import Start

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter
else:
    SummaryWriter = Any

__all__ = ["TensorBoard"]

# The file in a log's folder that says whose it is.
OWNER = "paretocosmos.txt"


@final
class TensorBoard(RunLogger[SummaryWriter]):
    """A callback of `fit` that logs settings, losses, fronts and hypervolume for TensorBoard.

    ``tensorboard --logdir FOLDER`` shows them. Each training has its own folder there,
    ``PROBLEM-METHOD-SEED``, with a number added where that is taken; a resumed training continues
    in its own.

    Use to compare the curves of several trainings on one machine.

    Example: ``docs/howto/logging.md``.

    Args:
        folder: where logs go.
    """

    def __init__(self, folder: str | Path = "runs/tensorboard") -> None:
        need("tensorboard", "tensorboard", "`TensorBoard`")
        super().__init__()
        self._folder = Path(folder)

    def _begin(self, start: Start) -> SummaryWriter:
        from torch.utils.tensorboard import SummaryWriter

        place = self._place(start)
        log = SummaryWriter(str(place), purge_step=start.epoch + 1 if start.epoch else None)
        (place / OWNER).write_text(identity_of(start) + "\n")
        settings = json.dumps(settings_of(start), indent=1)
        log.add_text("settings", "".join(f"    {line}\n" for line in settings.splitlines()))
        log.flush()
        return log

    def _place(self, start: Start) -> Path:
        """The folder of a training: its own, or the first that is free."""
        number, place = 1, self._folder / start.name
        while place.exists() and _owner(place) != identity_of(start):
            number += 1
            place = self._folder / f"{start.name}-{number}"
        return place

    def _numbers(self, log: SummaryWriter, numbers: Mapping[str, float], epoch: int) -> None:
        for name, value in numbers.items():
            log.add_scalar(name, value, epoch)
        log.flush()

    def _front(self, log: SummaryWriter, front: Front, epoch: int) -> None:
        columns = columns_of(front)
        rows = [[f"{value:.4g}" for value in row] for row in zip(*columns.values(), strict=True)]
        heads = [printable(name).replace("|", "/") for name in columns]
        lines = [" | ".join(row) for row in (heads, ["---"] * len(heads), *rows)]
        log.add_text(f"front/{front.split}", "\n".join(lines), epoch)
        log.flush()

    def _end(self, log: SummaryWriter, run: Run | None) -> None:
        log.close()


def _owner(place: Path) -> str:
    told = place / OWNER
    return told.read_text().strip() if told.exists() else ""
