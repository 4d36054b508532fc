"""Trainings in Weights & Biases."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from paretocosmos.errors import ConfigurationError, need
from paretocosmos.integrations._logging import RunLogger, columns_of, identity_of, settings_of
from paretocosmos.pareto.front import Front
from paretocosmos.runs.run import Run
from paretocosmos.training.callbacks import Start

if TYPE_CHECKING:
    import wandb

__all__ = ["WandB"]

MODES = ("offline", "online", "disabled")


@final
class WandB(RunLogger["wandb.Run"]):
    """A callback of `fit` that logs settings, losses, fronts and hypervolume for Weights & Biases.

    Nothing leaves the machine unless you ask for it: runs are written to ``wandb/`` in the current
    folder, and ``wandb sync`` sends them later.

    Example: ``docs/howto/logging.md``.

    Args:
        project: the project that the runs belong to.
        entity: the team or user; that of your account if `None`.
        folder: where ``wandb/`` goes; the current folder if `None`.
        mode: ``"offline"``, ``"online"`` or ``"disabled"``; if `None`, what the variable
            ``WANDB_MODE`` says, and offline where it says nothing.
    """

    def __init__(
        self,
        project: str = "paretocosmos",
        *,
        entity: str | None = None,
        folder: str | Path | None = None,
        mode: str | None = None,
    ) -> None:
        need("wandb", "wandb", "`WandB`")
        if mode is not None and mode not in MODES:
            raise ConfigurationError(f"`mode` must be one of {', '.join(MODES)}, found `{mode}`")
        super().__init__()
        self._project, self._entity, self._folder, self._mode = project, entity, folder, mode

    def _begin(self, start: Start) -> "wandb.Run":
        import wandb

        mode: Any = self._mode or os.environ.get("WANDB_MODE") or "offline"
        log = wandb.init(
            project=self._project,
            entity=self._entity,
            dir=self._folder,
            mode=mode,
            name=start.name,
            id=identity_of(start),
            resume="allow" if mode == "online" else None,  # else it is sent to the same run later
            config=settings_of(start),
            reinit="create_new",
            settings=wandb.Settings(silent=True, console="off"),
        )
        log.define_metric("epoch")
        log.define_metric("*", step_metric="epoch")
        return log

    def _numbers(self, log: "wandb.Run", numbers: Mapping[str, float], epoch: int) -> None:
        log.log({"epoch": epoch, **numbers})

    def _front(self, log: "wandb.Run", front: Front, epoch: int) -> None:
        import wandb

        columns = columns_of(front)
        rows = [list(row) for row in zip(*columns.values(), strict=True)]
        table = wandb.Table(columns=list(columns), data=rows)
        log.log({"epoch": epoch, f"front/{front.split}": table})

    def _end(self, log: "wandb.Run", run: Run | None) -> None:
        if run is not None:
            log.summary["hypervolume"] = run.hypervolume
        log.finish(exit_code=0 if run is not None else 1)
