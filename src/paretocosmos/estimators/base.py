"""What the estimators share: fitting, predicting at a preference, choosing one, and saving."""

import copy
import dataclasses
import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self, Unpack

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from paretocosmos.config.presets import batch_size_for
from paretocosmos.errors import ConfigurationError, DataError, DataWarning, FrontWarning, RunError
from paretocosmos.estimators.base_scores import NAME, BaseScores
from paretocosmos.estimators.inputs import (
    Column,
    Numbers,
    Rows,
    check_lengths,
    columns_in,
    columns_of,
    features_of,
    frame_of,
    groups_in,
    name_of,
    seed_of,
    weights_of,
)
from paretocosmos.estimators.objectives import own_objectives
from paretocosmos.estimators.training import (
    EVALUATIONS,
    SMALL,
    Fitted,
    Kind,
    alike,
    check_parts,
    judging,
    passes,
    problem_of,
    split_rows,
    train,
)
from paretocosmos.evaluation.choose import choose_point
from paretocosmos.evaluation.evaluate import evaluation_mode
from paretocosmos.evaluation.threshold import MIDDLE
from paretocosmos.io.files import exists, user_path
from paretocosmos.nn.conditioning import PerRayEnsemble
from paretocosmos.objectives import Objective
from paretocosmos.pareto.front import Front, Point, get_point
from paretocosmos.pareto.rays import as_rays
from paretocosmos.pareto.selection import Criteria, CriteriaOptions, find_best
from paretocosmos.problems.tables import Codes, Grouping, Table
from paretocosmos.registry import convert
from paretocosmos.runs.record import measure_fronts, write_run
from paretocosmos.runs.run import Run
from paretocosmos.types import Metric


def rays_for(given: Any, names: Sequence[str], rows: int | None, off_simplex: str) -> Tensor:
    """Rays ``[1, J]`` or ``[rows, J]``.

    Args:
        given: a ray ``[J]``, weights by name, rays ``[rows, J]``, or `None` for equal weights.
        names: of the J objectives.
        rows: how many there are; `None` where only one ray will do.
        off_simplex: ``"refuse"`` or ``"normalise"`` what does not sum to 1.
    """
    even = torch.full((1, len(names)), 1 / len(names))
    asked = even if given is None else given
    rays = as_rays(asked, len(names), names=names, off_simplex=off_simplex)
    if len(rays) not in (1, rows or 1):
        wanted = "one ray" if rows is None else f"one ray, or one for each of the {rows} rows"
        raise ConfigurationError(f"`preference` must be {wanted}, found {len(rays)}")
    return rays


# Rays to evaluate for a choice.
CHOICE_EVALUATIONS = 20


class Chooses:
    """An estimator whose preference can be chosen once it is fitted.

    Attributes:
        choice_: the point that was chosen, on the validation rows; of an estimator that `choose`
            has returned.
        threshold_: the probability above which `predict` says the second of two classes, at any
            preference: 0.5, or what `choose` found.
    """

    front_: Front
    model_: nn.Module
    choice_: Point
    threshold_: float = MIDDLE
    preference: Any
    _judging: Fitted | None

    def choose(
        self, *, threshold: float | None = None, **criteria: Unpack[CriteriaOptions]
    ) -> Self:
        """Return an estimator that predicts at the preference that meets the criteria best.

        New rays are evaluated on the validation rows until the bounds are met there. These rows
        are not part of a pickle: an estimator read from one chooses among the rays of `front_`.

        Args:
            threshold: the probability above which `predict` says the second of two classes. `None`
                is 0.5, or another where no ray keeps the bounds at 0.5 but by giving everybody the
                same answer, or where it gains more of what is maximised than chance explains.
            criteria: bounds and what is best among the points that keep them, by the keywords of
                `pareto.selection.Criteria`: `max`, `min`, `minimize`, `maximize`, `knee`,
                `weights`, `near`, `allow_constant` and `confidence`. Without a confidence, bounds
                hold on the validation rows, and for gaps with `fairness_adjustment` on these and
                the training rows together.

        Returns:
            A fitted copy with the chosen ray as its `preference`, the point as `choice_` and
            the threshold as `threshold_`; the network is shared. Refused where no ray keeps the
            bounds, saying how close one comes.
        """
        check_is_fitted(self, "model_")
        checked = Criteria.from_options(criteria)
        chosen = copy.copy(self)
        chosen._judging = self._judging  # which a copy leaves behind, as a pickle does
        if self._judging is None:
            chosen.choice_, chosen.threshold_ = self._among_held(checked, threshold), MIDDLE
        else:
            found = choose_point(
                self.model_,
                self._judging,
                self.front_,
                checked,
                fixed=isinstance(self.model_, PerRayEnsemble),
                evaluations=CHOICE_EVALUATIONS,
                threshold=threshold,
            )
            chosen.choice_, chosen.threshold_ = found.point, found.threshold
        chosen.preference = chosen.choice_.ray
        return chosen

    def _among_held(self, criteria: Criteria, threshold: float | None) -> Point:
        """The point of `front_`, where there are no rows to evaluate another ray on."""
        given = {"confidence": criteria.confidence, "threshold": threshold}
        for name in (name for name, value in given.items() if value is not None):
            raise ConfigurationError(
                f"`{name}` needs the validation rows, which a pickle does not contain: choose "
                f"before saving the estimator, or leave `{name}` out"
            )
        warnings.warn(
            "a pickle does not contain the validation rows, so the preference is chosen only "
            f"among the {len(self.front_)} rays of `front_`",
            FrontWarning,
            stacklevel=3,
        )
        return get_point(self.front_, find_best(self.front_, criteria))


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


# Rows in one pass of a network; fewer where each has a ray of its own, which a hypernetwork makes
# a network of. Members of `tabular` make many numbers of a row.
CHUNK, CHUNK_RAYS = 4096, 512


class ParetoEstimator(Chooses, GivesRuns, BaseEstimator, ABC):  # type: ignore[misc]
    """An estimator that is trained once and predicts at any preference."""

    base: Any = None
    """A classifier whose scores are inputs too, where the estimator takes one."""

    @abstractmethod
    def _numbered(self, names: list[str], columns: list[Column]) -> tuple[Column, ...]:
        """The targets' values as numbers, or as classes numbered from 0."""

    @abstractmethod
    def _kinds(self, names: list[str], train: Rows) -> list[Kind]:
        """What is predicted, given the rows that train."""

    @abstractmethod
    def _trade(self, kinds: list[Any], groups: int) -> tuple[Objective, ...]:
        """What is traded by default."""

    @abstractmethod
    def _metrics(self, kinds: list[Any], groups: int) -> dict[str, Metric]:
        """The further numbers of a front."""

    @abstractmethod
    def _strata(self, rows: Rows) -> Codes:
        """What validation rows are drawn from in equal shares."""

    def _check_parts(self, rows: Rows, parts: tuple[Codes, Codes]) -> None:
        """Refuse groups of which one part has no rows."""
        if rows.groups is not None:
            check_parts(rows.groups, self.groups_, parts, "group of `sensitive`")

    def _fit(self, X: Any, y: Any, sensitive: Any, sample_weight: Any) -> Self:  # noqa: N803
        frame = frame_of(self, X, reset=True)
        names, columns = columns_of(y)
        check_lengths(X=frame, y=columns[0], sensitive=sensitive, sample_weight=sample_weight)
        weight = weights_of(sample_weight, len(frame))
        grouping: Grouping | None = None
        groups: Codes | None = None
        kept = np.ones(len(frame), dtype=bool) if weight is None else weight > 0
        if sensitive is not None:
            grouping, groups = groups_in(sensitive, kept, X, frame)
        if not kept.all():
            frame, columns = frame.loc[kept], [column[kept] for column in columns]
            weight = None if weight is None else weight[kept]
        if len(frame) < 2:
            raise DataError(
                "`fit` needs at least 2 rows with a positive weight, found 1 sample: give more"
            )
        rows = Rows(frame, self._numbered(names, columns), groups, weight)
        if len(names) > 1 and grouping is not None and self.objectives is None:
            raise ConfigurationError(
                f"`sensitive` needs exactly one target, found {len(names)}: fit one estimator "
                "for each, or pass your own `objectives`"
            )
        for name in ("choice_", "threshold_"):  # of the network that was before
            self.__dict__.pop(name, None)
        self.groups_ = () if grouping is None else grouping.names
        self._columns = list(frame.columns)
        self._target, self._grouping = name_of(y), grouping
        return self._learn(names, rows)

    def _learn(self, names: list[str], rows: Rows) -> Self:
        """Train, and keep what predicts."""
        seed = seed_of(self.random_state)
        problem, settings, repeat = self._problem(names, rows, seed)
        given = {
            "penalty": self.penalty,
            "alpha": self.alpha,
            "learning_rate": self.learning_rate,
            "hidden": self.hidden,
        }
        self.model_, self.front_, self._record = train(
            problem,
            method=self.method,
            settings=settings | {key: v for key, v in given.items() if v is not None},
            seed=seed,
            device=self.device,
            progress=self.progress,
            callbacks=self.callbacks,
        )
        self.best_epoch_ = int(self._record["epoch_selected"]) * repeat
        self._judging = judging(problem, repeat=repeat)
        return self

    def _problem(
        self, names: list[str], rows: Rows, seed: int
    ) -> tuple[Fitted, dict[str, Any], int]:
        """Split the rows and encode them.

        Returns:
            The problem, how to train on it, and how often an epoch passes over the rows.
        """
        if len(rows) < SMALL:
            keys = [*rows.truth, *([] if rows.groups is None else [rows.groups])]
            places, weight = alike(rows.frame, keys, rows.weight)
            rows = rows.take(places).weighing(weight)
        share = convert("validation_fraction", self.validation_fraction, float)
        parts = split_rows(self._strata(rows), share, seed)
        known, judged = (rows.take(part) for part in parts)
        self._check_parts(rows, parts)
        kinds, count = self._kinds(names, known), len(self.groups_)
        if self.objectives is None:
            traded = self._trade(kinds, count)
        else:
            numbers = [kind for kind in kinds if isinstance(kind, Numbers)]
            traded = own_objectives(self.objectives, numbers)
        rays_for(self.preference, [one.name for one in traded], None, self.off_simplex)
        categorical = columns_in(self.categorical, rows.frame)
        self._scores = None
        if self.base is not None:
            if len(kinds) > 1:
                raise ConfigurationError(
                    f"`base` scores one target, found {len(kinds)}: fit one estimator for each"
                )
            given = self.base, known, len(self.classes_), categorical, seed
            self._scores, known = BaseScores.fit(*given)
            judged = self._scores.judging(judged) if parts[0] is not parts[1] else known
        table = Table.fit(known.frame, categorical=categorical, weight=known.weight)
        self._table, self._predicts = table, kinds
        size = convert("batch_size", self.batch_size, int | None)
        size = batch_size_for(len(known), 1) if size is None else min(size, len(known))
        apart = parts[0] is not parts[1]
        asked = convert("epochs", self.epochs, int | None)
        epochs, repeat = passes(asked, len(known), len(table.features), size, judged=apart)
        settings = {
            "epochs": epochs,
            "batch_size": size,
            "rays": self.rays,
            "evaluate_every": max(1, epochs // EVALUATIONS),
        }
        problem = problem_of(
            known,
            judged,
            table,
            kinds,
            traded,
            self._metrics(kinds, count),
            repeat=repeat,
            name=type(self).__name__,
            called=self._target,
            grouping=self._grouping,
        )
        return problem, settings, repeat

    def encode(self, X: Any) -> npt.NDArray[np.float32]:  # noqa: N803
        """What an exported file reads of rows, its `x`: a number per column, nothing filled.

        Args:
            X: rows like those of `fit`.

        Returns:
            Float32 ``[n, columns]``: numbers, NaN where missing; categories by their place in the
            file's metadata; what `base` says of a row, if there is one, in the last columns.
        """
        return self._table.encode(self._read(X))

    def _read(self, X: Any) -> pd.DataFrame:  # noqa: N803
        """Rows with the columns that the network reads."""
        check_is_fitted(self, "model_")
        frame = frame_of(self, X, reset=False)
        return frame if self._scores is None else self._scores.beside(frame)

    def _answers(self, X: Any, preference: Any) -> list[tuple[Any, Tensor]]:  # noqa: N803
        """Every target and what the network gives for it, ``[n, width]``."""
        frame = self._read(X)
        asked = self.preference if preference is None else preference
        rays = rays_for(asked, self.front_.names, len(frame), self.off_simplex).double()
        inputs = torch.from_numpy(features_of(self._table, frame))
        own, found = len(rays) > 1, []
        size = CHUNK_RAYS if own else CHUNK
        with evaluation_mode(self.model_):
            for start in range(0, len(inputs), size):
                at = slice(start, start + size)
                out = self.model_(inputs[at].double(), rays[at] if own else rays[0])
                found.append([out] if isinstance(out, Tensor) else list(out.values()))
        every = zip(self._predicts, zip(*found, strict=True), strict=True)
        return [(kind, torch.cat(parts)) for kind, parts in every]

    def __getstate__(self) -> dict[str, Any]:
        """The validation rows stay here: people's rows do not belong into a model's file."""
        state: dict[str, Any] = super().__getstate__()
        return {key: None if key == "_judging" else value for key, value in state.items()}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.target_tags.multi_output = True
        return tags


def side_by_side(columns: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """One prediction ``[n]``, or several ``[n, targets]``."""
    return columns[0] if len(columns) == 1 else np.stack(columns, axis=1)
