"""Loggers of a training: TensorBoard, Weights & Biases and MLflow, each with its own extra."""

import json
import math
import os
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, final

from paretocosmos.errors import check_choice, require_extra
from paretocosmos.io.files import hash_json
from paretocosmos.io.formatting import sanitize
from paretocosmos.pareto.front import Front
from paretocosmos.runs.folders import flatten_settings
from paretocosmos.runs.run import Run
from paretocosmos.training.callbacks import Callback, Evaluation, Start
from paretocosmos.training.progress import Progress

if TYPE_CHECKING:
    import wandb
    from torch.utils.tensorboard import SummaryWriter
else:
    SummaryWriter = Any

Log = TypeVar("Log")
# Fields of a record that are no settings of its training.
NOT_SETTINGS = ("about", "caveats", "answers", "objective_specs", "input_shape", "outputs", "git")


class RunLogger(Callback, ABC, Generic[Log]):
    """A callback that writes the events of each training to a log of its own.

    A subclass says how its tool begins a log, writes numbers, writes a front, and ends the log.
    """

    def __init__(self) -> None:
        self._logs: dict[Path, Log] = {}

    @abstractmethod
    def _begin(self, start: Start) -> Log:
        """Open the log of a training, with its settings; the old one if the training resumes."""

    @abstractmethod
    def _log_numbers(self, log: Log, numbers: Mapping[str, float], epoch: int) -> None:
        """Write numbers of an epoch."""

    @abstractmethod
    def _log_front(self, log: Log, front: Front, epoch: int) -> None:
        """Write a front; its `split` names the data."""

    @abstractmethod
    def _end(self, log: Log, run: Run | None) -> None:
        """Close a log, with the run or with `None` if it was not finished."""

    def started(self, start: Start) -> None:
        self._logs[start.folder] = self._begin(start)

    def epoch(self, progress: Progress) -> None:
        losses = {f"loss/{name}": value for name, value in progress.losses.items()}
        speed = {"seconds": progress.seconds, "samples_per_second": progress.samples_per_second}
        self._log_numbers(self._logs[progress.folder], losses | speed, progress.epoch)

    def evaluated(self, evaluation: Evaluation) -> None:
        log, front = self._logs[evaluation.folder], evaluation.front
        ends = {
            f"front_val/{name} {end}": value
            for name, values in zip(front.names, front.values.T, strict=True)
            for end, value in (("least", values.min()), ("most", values.max()))
        }
        numbers = {"hypervolume/val": evaluation.hypervolume} | ends
        self._log_numbers(log, _select_finite(numbers), evaluation.epoch)
        self._log_front(log, front, evaluation.epoch)

    def finished(self, run: Run) -> None:
        log, epoch = self._logs[run.folder], int(run.record["evaluations"][-1]["epoch"])
        results = run.record["metrics"]["test"].items()
        numbers = _select_finite({f"{name}/test": value for name, value in results})
        self._log_numbers(log, numbers, epoch)
        self._log_front(log, run.front, epoch)
        self._end(self._logs.pop(run.folder), run)

    def stopped(self, folder: Path, why: str) -> None:
        if folder in self._logs:  # not so if its log could not be begun
            self._end(self._logs.pop(folder), None)


def _select_finite(results: Mapping[str, Any]) -> dict[str, float]:
    """Select finite numbers: results also hold texts, flags and null."""
    return {
        name: float(value)
        for name, value in results.items()
        if value is not None and not isinstance(value, bool | str) and math.isfinite(value)
    }


def compute_identity(start: Start) -> str:
    """Return a hash of the settings, which a resumed training shares with its first part."""
    return str(hash_json(dict(start.record)))[:16]


def select_settings(start: Start) -> dict[str, Any]:
    """Return the settings in a record, with its nesting."""
    return {key: value for key, value in start.record.items() if key not in NOT_SETTINGS}


def tabulate_front(front: Front) -> dict[str, list[float]]:
    """Return a front as columns: the rays by objective, the values, the metrics.

    >>> import numpy as np
    >>> whole = Front(rays=np.eye(2), values=np.eye(2), names=("a", "b"), reference=np.ones(2))
    >>> list(tabulate_front(whole))
    ['weight of a', 'weight of b', 'a', 'b']
    """
    weights = dict(zip((f"weight of {name}" for name in front.names), front.rays.T, strict=True))
    values = dict(zip(front.names, front.values.T, strict=True))
    return {
        name: column.tolist() for name, column in {**weights, **values, **front.metrics}.items()
    }


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

    # The file in a log's folder that identifies its training.
    _OWNER = "paretocosmos.txt"

    def __init__(self, folder: str | Path = "runs/tensorboard") -> None:
        require_extra("tensorboard", "tensorboard", "`TensorBoard`")
        super().__init__()
        self._folder = Path(folder)

    def _begin(self, start: Start) -> SummaryWriter:
        from torch.utils.tensorboard import SummaryWriter

        identity = compute_identity(start)
        # the folder of this training if it is resumed, else the first that is free
        number, folder = 1, self._folder / start.name
        while folder.exists() and self._read_owner(folder) != identity:
            number += 1
            folder = self._folder / f"{start.name}-{number}"
        # `purge_step` hides what an interrupted training logged after its last checkpoint
        log = SummaryWriter(str(folder), purge_step=start.epoch + 1 if start.epoch else None)
        (folder / self._OWNER).write_text(identity + "\n")
        settings = json.dumps(select_settings(start), indent=1)
        # TensorBoard renders Markdown, in which four spaces make a block of code
        log.add_text("settings", "".join(f"    {line}\n" for line in settings.splitlines()))
        log.flush()
        return log

    def _read_owner(self, folder: Path) -> str:
        file = folder / self._OWNER
        return file.read_text().strip() if file.exists() else ""

    def _log_numbers(self, log: SummaryWriter, numbers: Mapping[str, float], epoch: int) -> None:
        for name, value in numbers.items():
            log.add_scalar(name, value, epoch)
        log.flush()

    def _log_front(self, log: SummaryWriter, front: Front, epoch: int) -> None:
        columns = tabulate_front(front)
        rows = [[f"{value:.4g}" for value in row] for row in zip(*columns.values(), strict=True)]
        heads = [sanitize(name).replace("|", "/") for name in columns]
        lines = [" | ".join(row) for row in (heads, ["---"] * len(heads), *rows)]
        log.add_text(f"front/{front.split}", "\n".join(lines), epoch)
        log.flush()

    def _end(self, log: SummaryWriter, run: Run | None) -> None:
        log.close()


@final
class WandB(RunLogger["wandb.Run"]):
    """A callback of `fit` that logs settings, losses, fronts and hypervolume for Weights & Biases.

    Nothing leaves the machine unless you ask for it with ``WANDB_MODE=online``: runs are written to
    ``wandb/`` in the current folder, and ``wandb sync`` sends them later. The team and the folder
    are those of the variables ``WANDB_ENTITY`` and ``WANDB_DIR``.

    Example: ``docs/howto/logging.md``.

    Args:
        project: the project that the runs belong to.
    """

    def __init__(self, project: str = "paretocosmos") -> None:
        require_extra("wandb", "wandb", "`WandB`")
        super().__init__()
        self._project = project

    def _begin(self, start: Start) -> "wandb.Run":
        import wandb

        mode: Any = os.environ.get("WANDB_MODE") or "offline"
        log = wandb.init(
            project=self._project,
            mode=mode,
            name=start.name,
            id=compute_identity(start),
            resume="allow" if mode == "online" else None,  # else it is sent to the same run later
            config=select_settings(start),
            reinit="create_new",  # trainings of several seeds log side by side
            settings=wandb.Settings(silent=True, console="off"),
        )
        # epochs, not calls of `log`, are the x-axis of every chart
        log.define_metric("epoch")
        log.define_metric("*", step_metric="epoch")
        return log

    def _log_numbers(self, log: "wandb.Run", numbers: Mapping[str, float], epoch: int) -> None:
        log.log({"epoch": epoch, **numbers})

    def _log_front(self, log: "wandb.Run", front: Front, epoch: int) -> None:
        import wandb

        columns = tabulate_front(front)
        rows = [list(row) for row in zip(*columns.values(), strict=True)]
        table = wandb.Table(columns=list(columns), data=rows)
        log.log({"epoch": epoch, f"front/{front.split}": table})

    def _end(self, log: "wandb.Run", run: Run | None) -> None:
        if run is not None:
            log.summary["hypervolume"] = run.hypervolume
        log.finish(exit_code=0 if run is not None else 1)  # 1 shows as crashed


class _MLflowLog(NamedTuple):
    client: Any
    run_id: str


@final
class MLflow(RunLogger[_MLflowLog]):
    """A callback of `fit` that logs settings, losses, fronts and hypervolume in MLflow.

    Settings are parameters of the run; losses and hypervolume are metrics. All fronts and
    ``run.json`` are artifacts.

    Example: ``docs/howto/logging.md``.

    Args:
        where: the tracking store, such as ``"sqlite:///mlflow.db"`` or
            ``"http://localhost:5000"``. If `None`, MLflow's own: the variable
            ``MLFLOW_TRACKING_URI``, else ``mlflow.db`` in the current folder.
        experiment: the experiment that the runs belong to; made if it is missing.
    """

    # The tag that identifies a resumed training.
    _TAG = "paretocosmos.training"
    # The longest parameter that MLflow takes, and parameters per call.
    _LONGEST, _PER_CALL = 6000, 100

    def __init__(self, where: str | None = None, *, experiment: str = "paretocosmos") -> None:
        require_extra("mlflow", "mlflow", "`MLflow`")
        super().__init__()
        self._where, self._experiment = where, experiment

    def _begin(self, start: Start) -> _MLflowLog:
        from mlflow import MlflowClient
        from mlflow.entities import Param

        client, identity = MlflowClient(tracking_uri=self._where), compute_identity(start)
        experiment = client.get_experiment_by_name(self._experiment)
        if experiment is None:
            experiment_id = client.create_experiment(self._experiment)
        else:
            experiment_id = experiment.experiment_id
        runs = client.search_runs([experiment_id], filter_string=f"tags.`{self._TAG}`='{identity}'")
        if runs:
            client.update_run(runs[0].info.run_id, status="RUNNING")
            return _MLflowLog(client, runs[0].info.run_id)
        run = client.create_run(experiment_id, run_name=start.name, tags={self._TAG: identity})
        settings = flatten_settings(select_settings(start)).items()
        params = [Param(_clean_key(name), str(value)[: self._LONGEST]) for name, value in settings]
        for begin in range(0, len(params), self._PER_CALL):
            client.log_batch(run.info.run_id, params=params[begin : begin + self._PER_CALL])
        return _MLflowLog(client, run.info.run_id)

    def _log_numbers(self, log: _MLflowLog, numbers: Mapping[str, float], epoch: int) -> None:
        from mlflow.entities import Metric

        now = int(time.time() * 1000)  # milliseconds
        metrics = [Metric(_clean_key(name), value, now, epoch) for name, value in numbers.items()]
        log.client.log_batch(log.run_id, metrics=metrics)

    def _log_front(self, log: _MLflowLog, front: Front, epoch: int) -> None:
        file = f"fronts/{front.split}-{epoch:05d}.json"
        log.client.log_dict(log.run_id, front.to_dict(), file)

    def _end(self, log: _MLflowLog, run: Run | None) -> None:
        if run is not None:
            for name in ("run.json", "front.json", "front_val.json"):
                log.client.log_artifact(log.run_id, str(run.folder / name))
        log.client.set_terminated(log.run_id, "FINISHED" if run is not None else "KILLED")


def _clean_key(name: str) -> str:
    """Replace the letters of a name that MLflow refuses.

    >>> _clean_key("loss/income>50K")
    'loss/income_50K'
    """
    return re.sub(r"[^\w\-. /]", "_", name)[:250]


LOGGERS: dict[str, Any] = {"tensorboard": TensorBoard, "wandb": WandB, "mlflow": MLflow}
"""Loggers by the names that the command line uses."""


def make_logger(text: str) -> Callback:
    """Build a logger from its name, or from NAME=WHERE.

    Args:
        text: ``tensorboard``, ``wandb`` or ``mlflow``; where is a folder, a project or a store.
    """
    name, _, where = text.partition("=")
    check_choice("logger", name, LOGGERS)
    logger: Callback = LOGGERS[name](where) if where else LOGGERS[name]()
    return logger
