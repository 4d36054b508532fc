"""Base class of the estimators: fitting, predicting at a preference, choosing one, and saving."""

import copy
import dataclasses
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self, Unpack

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from paretocosmos.config.presets import find_rate_gap, pick_batch_size
from paretocosmos.errors import ConfigurationError, DataError, DataWarning, FrontWarning, RunError
from paretocosmos.estimators.base_scores import NOT_INCLUDED, BaseScores
from paretocosmos.estimators.inputs import (
    Column,
    Rows,
    check_lengths,
    check_preference,
    check_weights,
    draw_seed,
    encode_features,
    read_features,
    read_groups,
    read_known_groups,
    resolve_columns,
    take_rows,
)
from paretocosmos.estimators.objectives import (
    GivenObjectives,
    Numbers,
    Target,
    get_target_name,
    split_targets,
    wrap_objectives,
)
from paretocosmos.estimators.training import (
    EVALUATIONS,
    SMALL,
    RowsProblem,
    build_problem,
    check_in_both_splits,
    choose_epochs,
    merge_equal_rows,
    repeat_rows,
    split_rows,
    train,
)
from paretocosmos.evaluation import MIDDLE, choose_point, evaluation_mode
from paretocosmos.io.files import user_path
from paretocosmos.methods import Method
from paretocosmos.nn.conditioning import PerRayEnsemble
from paretocosmos.objectives import GroupObjective, Objective
from paretocosmos.pareto import Criteria, CriteriaOptions, Point, find_best, get_point
from paretocosmos.problems.tables import Codes, GroupUse, Table, TabularProblem, check_group_use
from paretocosmos.registry import convert
from paretocosmos.runs.frozen import freeze_run
from paretocosmos.runs.record import measure_fronts, write_run
from paretocosmos.runs.run import Run
from paretocosmos.training.callbacks import Callback
from paretocosmos.training.progress import Progress
from paretocosmos.types import Metric

# Rays to evaluate for a choice.
CHOICE_EVALUATIONS = 20
# Rows in one pass; fewer where each has a ray of its own, which a hypernetwork makes a network of.
CHUNK, CHUNK_RAYS = 4096, 512
# Parameters that `paretocosmos.fit` takes as they are.
FIT_OPTIONS = ("preset", "method", "conditioning", "device", "progress", "callbacks")

NO_TEST = "its numbers are of the rows that selected the epoch: an estimator keeps none to test on"


# As a dataclass, its constructor lists every parameter once; scikit-learn reads them from its
# signature. The `repr` and the comparison by identity stay scikit-learn's.
@dataclass(kw_only=True, eq=False, repr=False)
class ParetoEstimator(BaseEstimator, ABC):  # type: ignore[misc]
    """An estimator that is trained once and predicts at any preference.

    Attributes:
        choice_: the point that was chosen, on the validation rows; of an estimator that `choose`
            has returned.
        bounds_: likewise each bound, with the chance that the true number breaks it, to `print`.
        threshold_: the probability above which `predict` says the second of two classes, at any
            preference: 0.5, or what `choose` found.
    """

    # With metadata routing, the group goes to `fit` alone unless predictions request it: only
    # group="input" reads it there.
    __metadata_request__predict: ClassVar[dict[str, bool]] = {"sensitive": False}
    __metadata_request__score: ClassVar[dict[str, bool]] = {"sensitive": False}

    preference: Any = None
    objectives: GivenObjectives | None = None
    fairness: str | type[GroupObjective]
    group: GroupUse = "estimate"
    preset: str | None = None
    method: str | Method | None = None
    conditioning: str | None = None
    penalty: float | None = None
    alpha: float | tuple[float, ...] | None = None
    hidden: tuple[int, ...] | None = None
    epochs: int | None = None
    batch_size: int | None = None
    learning_rate: float | None = None
    rays: int = 25
    validation_fraction: float = 0.15
    off_simplex: str = "refuse"
    categorical: Sequence[str | int] = ()
    random_state: Any = None
    device: str = "auto"
    progress: Callable[[Progress], None] | bool = True
    callbacks: Sequence[Callback] = ()

    @abstractmethod
    def _encode_targets(self, names: list[str], columns: list[Column]) -> tuple[Column, ...]:
        """Return the targets' values as numbers, or as classes numbered from 0."""

    @abstractmethod
    def _fit_targets(self, names: list[str], train: Rows) -> list[Target]:
        """Return what is predicted, fitted to the rows that train."""

    @abstractmethod
    def _build_objectives(self, targets: list[Any], groups: int) -> tuple[Objective, ...]:
        """Return what is traded by default."""

    @abstractmethod
    def _build_metrics(self, targets: list[Any], groups: int) -> dict[str, Metric]:
        """Return the further numbers of a front."""

    @abstractmethod
    def _compute_strata(self, rows: Rows) -> Codes:
        """Return the strata from each of which the same share of rows validates."""

    def _check_split(self, rows: Rows, splits: tuple[Codes, Codes]) -> None:
        """Raise if a group has no rows in one of the splits."""
        if rows.groups is not None:
            check_in_both_splits(rows.groups, self.groups_, splits, "group of `sensitive`")

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
                `weights`, `near`, `allow_constant` and `confidence`, such as 0.9. Without a
                confidence, bounds hold on the validation rows, and with `fairness_adjustment` on
                these and the training rows together, too, cross-fitted.

        Returns:
            A fitted copy with the chosen ray as its `preference`, the point as `choice_` and
            the threshold as `threshold_`; the network is shared. Refused where no ray keeps the
            bounds, saying how close one comes.
        """
        check_is_fitted(self, "model_")
        checked = Criteria.from_options(criteria)
        chosen = copy.copy(self)
        chosen._problem = self._problem  # which a copy drops, as a pickle does
        if self._problem is None:
            chosen.choice_, chosen.threshold_ = self._choose_from_front(checked, threshold), MIDDLE
            chosen.bounds_ = ()
        else:
            choice = choose_point(
                self.model_,
                self._problem,
                self.front_,
                checked,
                fixed=isinstance(self.model_, PerRayEnsemble),
                evaluations=CHOICE_EVALUATIONS,
                threshold=threshold,
            )
            chosen.choice_, chosen.threshold_ = choice.point, choice.threshold
            chosen.bounds_ = choice.bounds
        chosen.preference = chosen.choice_.ray
        return chosen

    def _choose_from_front(self, criteria: Criteria, threshold: float | None) -> Point:
        """Return a point of `front_`, where there are no rows to evaluate another ray on."""
        for name, value in (("confidence", criteria.confidence), ("threshold", threshold)):
            if value is not None:
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

    def to_run(self) -> Run:
        """Return the fitted estimator as a run without a folder, for `export` and `explore`.

        It answers at the estimator's `preference` and `threshold_` where nothing else is asked. The
        preprocessing of columns is part of it; `base` is not. Its front is that of the validation
        rows, which are at hand as long as the estimator was not read from a pickle.
        """
        check_is_fitted(self, "model_")
        if len(self._targets) > 1:
            raise ConfigurationError(
                f"saving, exporting and exploring an estimator needs one target, found "
                f"{len(self._targets)}: fit one estimator for each"
            )
        caveats = [*self._record["caveats"], NO_TEST]
        if self._scores is not None:
            caveats.append(NOT_INCLUDED)
            warnings.warn(
                f"{NOT_INCLUDED}, which `estimator.encode(rows)` computes; fit without `base` for "
                "one that stands alone",
                DataWarning,
                stacklevel=3,
            )
        names, accurate = self.front_.names, self._accurate_ray
        ray = check_preference(self.preference, names, None, self.off_simplex, accurate)[0]
        record = self._record | {
            # there are no test rows: the validation front stands for both
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
            self._problem,
            saved=False,
        )

    def save(self, folder: str | Path, *, preference: Any = None) -> Run:
        """Write a run folder, for `load_run` and the command line: ``paretocosmos serve FOLDER``.

        It holds no rows and, unlike a pickle, no code.

        Args:
            folder: the run folder, new.
            preference: freeze the run at one ray and at `threshold_`: it answers at no other, and
                its numbers are those of the validation rows there.
        """
        run, path = self.to_run(), user_path(folder)
        if preference is not None:
            run = freeze_run(run, preference)
        try:
            path.mkdir(parents=True)
        except OSError as error:
            reason = str(error.strerror).lower()
            raise RunError(f"cannot create `{path}`: {reason}; choose another folder") from error
        fronts, weights = {"test": run.front, "val": run.front_val}, run.model.state_dict()
        added = write_run(path, run.record, weights, fronts, run.table)
        return dataclasses.replace(run, folder=path, record={**run.record, **added}, saved=True)

    def fit(self, X: Any, y: Any, *, sensitive: Any = None, sample_weight: Any = None) -> Self:  # noqa: N803
        """Train the network.

        Args:
            X: a DataFrame with numbers, categories, text, missing values; or an array of numbers.
            y: the class or the number of every row, ``[n]``; or several targets, ``[n, targets]``.
            sensitive: the group of every row, two groups or more; no feature unless `X` has it.
            sample_weight: how much every row counts; one with 0 is as if it were not there.
        """
        frame = read_features(self, X, reset=True)
        names, columns = split_targets(y)
        check_lengths(X=frame, y=columns[0], sensitive=sensitive, sample_weight=sample_weight)
        weight = check_weights(sample_weight, len(frame))
        # a row of weight 0 is as if it were not there, whatever else it holds
        counts = np.ones(len(frame), dtype=bool) if weight is None else weight > 0
        grouping, groups = None, None
        if sensitive is not None:
            grouping, groups = read_groups(sensitive, counts, X, frame)
        if weight is not None and not counts.all():
            frame, columns = frame.loc[counts], [column[counts] for column in columns]
            weight = weight[counts]
        if len(frame) < 2:
            raise DataError(
                "`fit` needs at least 2 rows with a positive weight, found 1 sample: give more"
            )
        codes = self._encode_targets(names, columns)
        rows = Rows(frame, codes, groups, weight, take_rows(X, counts))
        if len(names) > 1 and grouping is not None and self.objectives is None:
            raise ConfigurationError(
                f"`sensitive` needs exactly one target, found {len(names)}: fit one estimator "
                "for each, or pass your own `objectives`"
            )
        for name in ("choice_", "threshold_", "bounds_"):  # of the network of an earlier `fit`
            self.__dict__.pop(name, None)
        self.threshold_ = MIDDLE
        self.groups_ = () if grouping is None else grouping.names
        self._columns, self._grouping = list(frame.columns), grouping
        check_group_use(self.group, has_groups=grouping is not None)
        if grouping is not None and groups is not None and self.group == "input":
            rows = dataclasses.replace(rows, frame=grouping.add_to(frame, groups))
        seed = draw_seed(self.random_state)
        problem, settings, repeat = self._prepare_training(names, rows, get_target_name(y), seed)
        given = {n: getattr(self, n) for n in ("penalty", "alpha", "learning_rate", "hidden")}
        settings |= {name: value for name, value in given.items() if value is not None}
        options = {name: getattr(self, name) for name in FIT_OPTIONS}
        self.model_, self.front_, self._record = train(
            repeat_rows(problem, repeat), settings=settings, seed=seed, **options
        )
        self.best_epoch_ = int(self._record["epoch_selected"]) * repeat
        accurate = self.front_.rays[self.front_.rays[:, 0].argmax()].tolist()
        self._accurate_ray = None if groups is None or self.objectives else accurate
        self._problem: TabularProblem | RowsProblem | None = problem
        return self

    def _prepare_training(
        self, names: list[str], rows: Rows, target_name: str, seed: int
    ) -> tuple[TabularProblem | RowsProblem, dict[str, Any], int]:
        """Split the rows and encode them.

        Returns:
            The problem, how to train on it, and how often an epoch passes over the rows.
        """
        if len(rows) < SMALL:
            rows = merge_equal_rows(rows)
        share = convert("validation_fraction", self.validation_fraction, float)
        splits = split_rows(self._compute_strata(rows), share, seed)
        train_rows, val_rows = (rows.take(split) for split in splits)
        holds_out = splits[0] is not splits[1]
        self._check_split(rows, splits)
        targets, groups = self._fit_targets(names, train_rows), len(self.groups_)
        if self.objectives is None:
            objectives = self._build_objectives(targets, groups)
        else:
            numbers = [target for target in targets if isinstance(target, Numbers)]
            objectives = wrap_objectives(self.objectives, numbers)
        # before a training, which takes minutes, and again in `predict`
        check_preference(self.preference, [o.name for o in objectives], None, self.off_simplex)
        categorical = resolve_columns(self.categorical, rows.frame)
        base = getattr(self, "base", None)
        scores, train_rows = BaseScores.fit(base, train_rows, targets, seed)
        if scores is not None:
            frame = scores.add_to(val_rows.frame, val_rows.given)
            val_rows = dataclasses.replace(val_rows, frame=frame) if holds_out else train_rows
        self._scores = scores
        table = Table.fit(train_rows.frame, categorical=categorical, weight=train_rows.weight)
        self._table, self._targets = table, targets
        size = convert("batch_size", self.batch_size, int | None)
        count, features = len(train_rows), len(table.features)
        size = pick_batch_size(count, 1) if size is None else min(size, count)
        asked = convert("epochs", self.epochs, int | None)
        epochs, repeat = choose_epochs(asked, count, features, size, holds_out=holds_out)
        settings = {
            "epochs": epochs,
            "batch_size": size,
            "rays": self.rays,
            "evaluate_every": max(1, epochs // EVALUATIONS),
        }
        problem = build_problem(
            train_rows,
            val_rows,
            table,
            targets,
            objectives,
            self._build_metrics(targets, groups),
            name=type(self).__name__,
            target_name=target_name,
            grouping=self._grouping,
            group_use=self.group,
        )
        if scores is not None and self.group == "input" and find_rate_gap(problem):
            settings |= {"epochs": 1, "evaluate_every": 1}  # there is nothing to learn
        return problem, settings, repeat

    def encode(self, X: Any, *, sensitive: Any = None) -> npt.NDArray[np.float32]:  # noqa: N803
        """Return what an exported file takes as its `x`: a number per column, nothing filled.

        Args:
            X: rows like those of `fit`.
            sensitive: their groups, with ``group="input"``.

        Returns:
            Float32 ``[n, columns]``: numbers, NaN where missing; categories by their place in the
            file's metadata; what `base` says of a row, if there is one, in the last columns.
        """
        frame = self._read_rows(X, sensitive)
        return self._table.encode(frame)

    def _read_rows(self, X: Any, sensitive: Any) -> pd.DataFrame:  # noqa: N803
        """Return rows with the columns that the network reads."""
        check_is_fitted(self, "model_")
        frame = read_features(self, X, reset=False)
        if self._grouping is not None and self.group == "input":
            groups = read_known_groups(self._grouping, sensitive, X, frame)
            frame = self._grouping.add_to(frame, groups)
        elif sensitive is not None:
            raise ConfigurationError(
                f'predictions with group="{self.group}" do not read the group: leave `sensitive` '
                'out, or fit with group="input"'
            )
        return frame if self._scores is None else self._scores.add_to(frame, X)

    def _predict_targets(
        self, rows: Any, preference: Any, sensitive: Any
    ) -> list[tuple[Any, Tensor]]:
        """Return every target and the network's outputs for it, ``[n, width]``."""
        frame = self._read_rows(rows, sensitive)
        rays = check_preference(
            self.preference if preference is None else preference,
            self.front_.names,
            len(frame),
            self.off_simplex,
            self._accurate_ray,
        ).double()
        inputs = torch.from_numpy(encode_features(self._table, frame))
        several, chunks = len(rays) > 1, []
        size = CHUNK_RAYS if several else CHUNK
        with evaluation_mode(self.model_):
            for start in range(0, len(inputs), size):
                chunk = slice(start, start + size)
                out = self.model_(inputs[chunk].double(), rays[chunk] if several else rays[0])
                chunks.append([out] if isinstance(out, Tensor) else list(out.values()))
        heads = [torch.cat(parts) for parts in zip(*chunks, strict=True)]
        return list(zip(self._targets, heads, strict=True))

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the validation rows: people's rows do not belong into a model's file."""
        state: dict[str, Any] = super().__getstate__()
        return {key: None if key == "_problem" else value for key, value in state.items()}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.target_tags.multi_output = True
        return tags
