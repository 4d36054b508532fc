"""Trainings in MLflow."""

import re
import time
from collections.abc import Mapping
from typing import Any, NamedTuple, final

from paretocosmos.errors import need
from paretocosmos.integrations._logging import RunLogger, identity_of, settings_of
from paretocosmos.pareto.front import Front
from paretocosmos.runs.folders import flat
from paretocosmos.runs.run import Run
from paretocosmos.training.callbacks import Start

__all__ = ["MLflow"]

# What a run of MLflow is found again by.
TAG = "paretocosmos.training"
# Letters of a parameter that MLflow takes, and parameters in one call.
LONGEST, AT_ONCE = 6000, 100
FILES = ("run.json", "front.json", "front_val.json")


class _Log(NamedTuple):
    client: Any
    run_id: str


@final
class MLflow(RunLogger[_Log]):
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

    def __init__(self, where: str | None = None, *, experiment: str = "paretocosmos") -> None:
        need("mlflow", "mlflow", "`MLflow`")
        super().__init__()
        self._where, self._experiment = where, experiment

    def _begin(self, start: Start) -> _Log:
        from mlflow import MlflowClient

        client, own = MlflowClient(tracking_uri=self._where), identity_of(start)
        experiment = client.get_experiment_by_name(self._experiment)
        if experiment is None:
            place = client.create_experiment(self._experiment)
        else:
            place = experiment.experiment_id
        before = client.search_runs([place], filter_string=f"tags.`{TAG}` = '{own}'")
        if before:
            client.update_run(before[0].info.run_id, status="RUNNING")
            return _Log(client, before[0].info.run_id)
        run = client.create_run(place, run_name=start.name, tags={TAG: own})
        log = _Log(client, run.info.run_id)
        self._settings(log, start)
        return log

    def _settings(self, log: _Log, start: Start) -> None:
        from mlflow.entities import Param

        known = flat(settings_of(start)).items()
        every = [Param(_key(name), str(value)[:LONGEST]) for name, value in known]
        for at in range(0, len(every), AT_ONCE):
            log.client.log_batch(log.run_id, params=every[at : at + AT_ONCE])

    def _numbers(self, log: _Log, numbers: Mapping[str, float], epoch: int) -> None:
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        every = [Metric(_key(name), value, now, epoch) for name, value in numbers.items()]
        log.client.log_batch(log.run_id, metrics=every)

    def _front(self, log: _Log, front: Front, epoch: int) -> None:
        place = f"fronts/{front.split}-{epoch:05d}.json"
        log.client.log_dict(log.run_id, front.to_dict(), place)

    def _end(self, log: _Log, run: Run | None) -> None:
        if run is not None:
            for name in FILES:
                log.client.log_artifact(log.run_id, str(run.folder / name))
        log.client.set_terminated(log.run_id, "FINISHED" if run is not None else "KILLED")


def _key(name: str) -> str:
    """A name of the letters that MLflow takes.

    >>> _key("loss/income>50K")
    'loss/income_50K'
    """
    return re.sub(r"[^\w\-. /]", "_", name)[:250]
