"""An estimator as a run: what `export`, `explore` and a server take."""

import dataclasses
import warnings
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted
from torch import nn

from paretocosmos.errors import ConfigurationError, DataWarning, RunError
from paretocosmos.estimators._base_scores import NAME, BaseScores
from paretocosmos.estimators._problem import Fitted, Kind
from paretocosmos.estimators._rays import rays_for
from paretocosmos.io.files import exists, user_path
from paretocosmos.pareto.front import Front
from paretocosmos.problems.tables import Table
from paretocosmos.runs.record import measure_fronts, write_run
from paretocosmos.runs.run import Run

__all__ = ["GivesRuns"]

NO_TEST = "its numbers are of the rows that selected the epoch: an estimator keeps none to test on"
BASE = (
    f"the classifier given as `base` is not part of it: its score is a column of the rows, `{NAME}`"
)


class GivesRuns:
    """An estimator that can be exported, explored and served once it is fitted."""

    front_: Front
    model_: nn.Module
    threshold_: float
    preference: Any
    off_simplex: str
    _judging: Fitted | None
    _predicts: list[Kind]
    _record: dict[str, Any]
    _scores: BaseScores | None
    _table: Table

    def to_run(self) -> Run:
        """The fitted estimator as a run without a folder, for `export` and `explore`.

        It answers at the estimator's `preference` and `threshold_` where nothing else is asked. The
        preprocessing of columns is part of it; `base` is not. Its front is that of the validation
        rows, which are at hand as long as the estimator was not read from a pickle.
        """
        check_is_fitted(self, "model_")
        if len(self._predicts) > 1:
            raise ConfigurationError(
                f"saving, exporting and exploring an estimator needs one target, found "
                f"{len(self._predicts)}: fit one estimator for each"
            )
        caveats = [*self._record["caveats"], NO_TEST]
        if self._scores is not None:
            caveats.append(BASE)
            warnings.warn(
                f"{BASE}, which `estimator.encode(rows)` computes; fit without `base` for one that "
                "stands alone",
                DataWarning,
                stacklevel=3,
            )
        ray = rays_for(self.preference, self.front_.names, None, self.off_simplex)[0]
        record = self._record | {
            **measure_fronts({"test": self.front_, "val": self.front_}),
            "caveats": caveats,
            "predicts_at": {"ray": ray.double().tolist(), "threshold": self.threshold_},
        }
        return Run(
            Path(type(self).__name__),
            record,
            self.front_,
            self.front_,
            self.model_,
            self._table,
            self._judging,
            saved=False,
        )

    def save(self, folder: str | Path) -> Run:
        """Write a run folder, for `load_run` and the command line: ``paretocosmos serve FOLDER``.

        It holds no rows and, unlike a pickle, no code.

        Args:
            folder: the run folder, new.
        """
        run, place = self.to_run(), user_path(folder)
        if exists(place):
            raise RunError(f"`{place}` exists: choose another folder")
        try:
            place.mkdir(parents=True)
        except OSError as error:
            raise RunError(
                f"cannot create `{place}`: {error.strerror}; choose another folder"
            ) from error
        fronts, weights = {"test": run.front, "val": run.front_val}, run.model.state_dict()
        added = write_run(place, run.record, weights, fronts, run.table)
        return dataclasses.replace(run, folder=place, record={**run.record, **added}, saved=True)
