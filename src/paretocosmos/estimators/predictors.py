"""The classifier and the regressor: what each reads from `y`, and what it trades by default."""

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import assert_all_finite

from paretocosmos.errors import DataError, check_choice
from paretocosmos.estimators.base import ParetoEstimator
from paretocosmos.estimators.inputs import Column, Floats, Rows, translate_errors
from paretocosmos.estimators.objectives import (
    LABEL,
    Classes,
    InUnit,
    Numbers,
    Target,
    compute_bias,
    compute_over_rate,
    compute_root,
)
from paretocosmos.estimators.training import check_in_both_splits
from paretocosmos.objectives import (
    GroupObjective,
    MeanAbsoluteError,
    MeanSquaredError,
    Objective,
    accuracy,
    calibration_error,
    fairness_objective,
    fairness_objectives,
    largest_share,
    recall,
)
from paretocosmos.problems.tables import (
    Codes,
    build_decision_metrics,
    build_gap,
    build_loss,
    build_objectives,
    check_compared_rows,
)
from paretocosmos.types import Metric

POWERS = {"squared": 2, "absolute": 1}


@dataclass(kw_only=True, eq=False, repr=False)
class ParetoClassifier(ClassifierMixin, ParetoEstimator):  # type: ignore[misc]
    """One network, trained once, that classifies at every preference between its objectives.

    With `sensitive` in `fit` it trades the cross-entropy against a gap between groups; with several
    targets, the cross-entropy of each; else the cross-entropy of every class against those of the
    others: what misses cost, class by class.

    Args:
        preference: the ray to predict at, one entry per objective, summing to 1, or weights by
            name, as ``{"accuracy": 0.7, "tpr_gap": 0.3}``. `predict` takes another. If `None`,
            equal weights; with `sensitive`, no weight on the gap, which `predict` warns of.
        objectives: what is traded instead: functions of outputs and targets by name, or
            `Objective` instances; each gives one number to minimise. Targets are a mapping: `label`
            (or the targets' names, where there are several), `sensitive`, `weight`.
        fairness: what is compared between groups, the largest rate minus the smallest:
            ``"tpr_gap"``, of positives that are found; ``"demographic_parity"``, of positive
            predictions; ``"fpr_gap"``, of negatives taken for positive; ``"equalized_odds"``, the
            larger of the first and the third; ``"accuracy_gap"``, of right decisions. Or
            ``"worst_group"``, the largest share of wrong decisions; ``"deo"``, the paper's
            difference of counts; or a class of one's own derived from `RateObjective`. With
            several classes, the largest over them, each against the rest.
        group: how predictions may depend on a person's group. ``"estimate"``: by how likely each
            group is, given the columns of `X`. ``"input"``: by the group itself, which `predict`
            then takes as `sensitive`, unless it is a column of `X`; whether that is allowed is a
            legal question. ``"none"``: neither; the network is trained to have a small gap.
        base: a classifier or pipeline of scikit-learn's kind that one trusts, such as gradient
            boosted trees, which reads `X` as it is; fitted already, or to be fitted. With two
            classes and a gap between rates, its probabilities are what is adjusted; else what it
            says of a row is an input too, in training of a copy that was fitted without the row's
            fold.
        method: how rays and losses are weighed: a method or its name; the default preset's if
            `None`.
        conditioning: how the ray enters the network, such as ``"film"``, which trains on the gap
            itself; the preset's if `None`.
        preset: settings to start from, ``"default"`` or ``"paper"``.
        penalty: λ of `cosmos`; the library's default if `None`.
        alpha: the Dirichlet parameter of the rays in training; the library's default if `None`.
        hidden: widths of the network's hidden layers; those of the backbone `tabular` if `None`.
        epochs: passes over the data; 50 if `None`, or as many as 1,000 steps take on small data,
            300 on fewer than 100 rows.
        batch_size: rows per step; by the number of rows if `None`.
        learning_rate: the largest that is reached; the default preset's if `None`.
        rays: how many even rays `front_` has.
        validation_fraction: the share of rows kept for `front_` and `choose`. Fewer than 100 rows
            are not split: then all of them validate what they have trained.
        off_simplex: ``"refuse"`` a preference that does not sum to 1, or ``"normalise"`` and warn.
        categorical: columns to read as categories although they hold numbers, by name or place.
        random_state: decides everything that is drawn.
        device: where to train: ``"auto"``, ``"cpu"``, ``"cuda"``; predictions are made on the CPU.
        progress: a bar in notebooks and terminals; `False` for none, or what is called after every
            epoch, with where the training stands.
        callbacks: told of the training, such as `TensorBoard()` (`training.callbacks.Callback`).

    Attributes:
        front_: what every ray reaches on the validation rows.
        best_epoch_: passes over the data after which the network was kept.
        model_: the network, ``forward(inputs, ray) -> outputs``, in float64.
        classes_: the classes; a list of them with several targets.
        groups_: what `sensitive` holds; empty without.
        n_features_in_: how many columns `X` had.
        feature_names_in_: what they are called, where they have names.

    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> classifier = ParetoClassifier(random_state=0).fit(X, y)
    >>> classifier.front_.names
    ('loss_0', 'loss_1', 'loss_2')
    >>> classifier.predict(X[:2], preference=[0.2, 0.2, 0.6])
    array([0, 0])
    """

    fairness: str | type[GroupObjective] = "tpr_gap"
    base: Any = None

    __metadata_request__predict_proba: ClassVar[dict[str, bool]] = {"sensitive": False}

    def predict(self, X: Any, *, preference: Any = None, sensitive: Any = None) -> npt.NDArray[Any]:  # noqa: N803
        """Predict the class of every row, ``[n]`` or ``[n, targets]``.

        Of two classes, the second where its probability is above `threshold_`.

        Args:
            X: rows like those of `fit`.
            preference: a ray ``[J]``, or one for each row ``[n, J]``; the estimator's if `None`.
            sensitive: the group of every row, with ``group="input"``.
        """
        outputs = self._predict_targets(X, preference, sensitive)
        return _stack_predictions([target.predict(out, self.threshold_) for target, out in outputs])

    def predict_proba(self, X: Any, *, preference: Any = None, sensitive: Any = None) -> Any:  # noqa: N803
        """Predict the probability of every class, ``[n, K]``; a list with several targets.

        Args:
            X: rows like those of `fit`.
            preference: a ray ``[J]``, or one for each row ``[n, J]``; the estimator's if `None`.
            sensitive: the group of every row, with ``group="input"``.
        """
        outputs = self._predict_targets(X, preference, sensitive)
        probabilities = [target.compute_probabilities(out) for target, out in outputs]
        return probabilities[0] if len(probabilities) == 1 else probabilities

    def score(
        self,
        X: Any,  # noqa: N803
        y: Any,
        sample_weight: Any = None,
        *,
        preference: Any = None,
        sensitive: Any = None,
    ) -> float:
        """Compute the accuracy; with several targets, the share of rows where all are right.

        Args:
            X: rows like those of `fit`.
            y: their classes.
            sample_weight: how much every row counts.
            preference: a ray ``[J]``, or one for each row ``[n, J]``; the estimator's if `None`.
            sensitive: the group of every row, with ``group="input"``.
        """
        predicted = self.predict(X, preference=preference, sensitive=sensitive)
        with translate_errors():
            if predicted.ndim == 1:
                return float(accuracy_score(y, predicted, sample_weight=sample_weight))
            # scikit-learn has no accuracy of several targets with several classes
            right = (np.asarray(y) == predicted).all(axis=1)
        return float(np.average(right, weights=sample_weight))

    def _encode_targets(self, names: list[str], columns: list[Column]) -> tuple[Column, ...]:
        self._classes, codes = list[Classes](), list[Column]()
        for name, column in zip(names, columns, strict=True):
            # also `None` and `pd.NA` among objects
            unknown = pd.isna(column)
            if column.dtype.kind == "f":
                unknown |= np.isinf(column)
            if missing := int(unknown.sum()):
                raise DataError(
                    f"the target must be known in every row, found {missing:,} missing or infinite "
                    f"of {len(column):,}: leave those rows out"
                )
            try:
                check_classification_targets(column)
            except ValueError as error:
                raise DataError(
                    "Unknown label type: a classifier predicts classes, found "
                    f"{type_of_target(column)} values such as {column[0]!r}: use ParetoRegressor "
                    "for a number"
                ) from error
            with translate_errors("the classes of a target are all text or all numbers"):
                classes, column_codes = np.unique(column, return_inverse=True)
            if len(classes) < 2:
                raise DataError(
                    f"a classifier needs at least two classes, found one class, "
                    f"{classes[0]!r}: there is nothing to learn"
                )
            self._classes.append(Classes(name, classes))
            codes.append(column_codes)
        first, *others = (target.classes for target in self._classes)
        self.classes_: Any = [first, *others] if others else first
        return tuple(codes)

    def _fit_targets(self, names: list[str], train: Rows) -> list[Target]:
        columns = zip(self._classes, train.truth, strict=True)
        return [target.with_shares(codes, train.weight) for target, codes in columns]

    def _build_objectives(self, targets: list[Any], groups: int) -> tuple[Objective, ...]:
        # looked up even without groups: a name that is misspelt is refused in any case
        kind = fairness_objective(self.fairness, "classes", "`fairness` of a classifier")
        if len(targets) > 1:
            return tuple(build_loss(t.answer, head=t.name) for t in targets)
        (target,) = targets
        gap, classes = build_gap(kind, groups) if groups else None, list(target.classes)
        return build_objectives(target.answer, gap, classes=classes, shares=target.shares)

    def _build_metrics(self, targets: list[Any], groups: int) -> dict[str, Metric]:
        metrics: dict[str, Metric] = {}
        if len(targets) > 1:
            for target in targets:
                name = target.name
                metrics[f"accuracy_{name}"] = partial(accuracy, output=name, target=name)
                metrics[f"largest_share_{name}"] = partial(largest_share, output=name)
            return metrics
        (target,) = targets
        metrics |= build_decision_metrics(target.answer, groups)
        if not groups:
            for code, label in enumerate(target.classes):
                metrics[f"recall_{label}"] = partial(recall, of=code)
        if len(target.classes) == 2:
            metrics["calibration_error"] = calibration_error
        return metrics

    def _check_split(self, rows: Rows, splits: tuple[Codes, Codes]) -> None:
        super()._check_split(rows, splits)
        if self.objectives is not None or len(rows.truth) > 1:
            return
        (target,), (codes,) = self._classes, rows.truth
        if rows.groups is None:
            check_in_both_splits(codes, target.classes.tolist(), splits, "class")
            return
        kind = fairness_objective(self.fairness, "classes", "`fairness` of a classifier")
        gap = build_gap(kind, len(self.groups_))
        by_name = dict(zip(("training", "validation"), splits, strict=True))
        check_compared_rows(by_name, codes, rows.groups, self.groups_, gap)

    def _compute_strata(self, rows: Rows) -> Codes:
        groups = np.zeros(len(rows), dtype=np.int64) if rows.groups is None else rows.groups
        if len(rows.truth) > 1:
            return groups
        # a number for each pair of a class and a group
        return rows.truth[0].astype(np.int64) * (int(groups.max()) + 1) + groups


@dataclass(kw_only=True, eq=False, repr=False)
class ParetoRegressor(RegressorMixin, ParetoEstimator):  # type: ignore[misc]
    """One network, trained once, that predicts a number at every preference between objectives.

    With `sensitive` in `fit` it trades the error against a gap between groups; with several
    targets, the error of each; else predictions that are too high against those that are too low:
    a ray (1 - t, t) then asks for the t-expectile, or with ``loss="absolute"`` for the t-quantile.
    Targets are standardised for the network; `front_` and predictions are in their own unit.

    Args:
        preference: the ray to predict at, one entry per objective, summing to 1, or weights by
            name, as ``{"accuracy": 0.7, "tpr_gap": 0.3}``. `predict` takes another. If `None`,
            equal weights; with `sensitive`, no weight on the gap, which `predict` warns of.
        objectives: what is traded instead: functions of outputs and targets by name, or
            `Objective` instances; each gives one number to minimise. Targets are a mapping: `label`
            (or the targets' names, where there are several), `sensitive`, `weight`.
            They see predictions and targets in the targets' unit.
        fairness: the gap between groups, the largest minus the smallest mean of one:
            ``"error_gap"`` or ``"prediction_gap"``; or a class of one's own derived from
            `GroupObjective` with `fairness = "numbers"`.
        group: how predictions may depend on a person's group. ``"estimate"``: by how likely each
            group is, given the columns of `X`. ``"input"``: by the group itself, which `predict`
            then takes as `sensitive`, unless it is a column of `X`; whether that is allowed is a
            legal question. ``"none"``: neither; the network is trained to have a small gap.
        loss: the error: ``"squared"`` or ``"absolute"``.
        method: how rays and losses are weighed: a method or its name; the default preset's if
            `None`.
        conditioning: how the ray enters the network, such as ``"film"``, which trains on the gap
            itself; the preset's if `None`.
        preset: settings to start from, ``"default"`` or ``"paper"``.
        penalty: λ of `cosmos`; the library's default if `None`.
        alpha: the Dirichlet parameter of the rays in training; the library's default if `None`.
        hidden: widths of the network's hidden layers; those of the backbone `tabular` if `None`.
        epochs: passes over the data; 50 if `None`, or as many as 1,000 steps take on small data,
            300 on fewer than 100 rows.
        batch_size: rows per step; by the number of rows if `None`.
        learning_rate: the largest that is reached; the default preset's if `None`.
        rays: how many even rays `front_` has.
        validation_fraction: the share of rows kept for `front_` and `choose`. Fewer than 100 rows
            are not split: then all of them validate what they have trained.
        off_simplex: ``"refuse"`` a preference that does not sum to 1, or ``"normalise"`` and warn.
        categorical: columns to read as categories although they hold numbers, by name or place.
        random_state: decides everything that is drawn.
        device: where to train: ``"auto"``, ``"cpu"``, ``"cuda"``; predictions are made on the CPU.
        progress: a bar in notebooks and terminals; `False` for none, or what is called after every
            epoch, with where the training stands.
        callbacks: told of the training, such as `TensorBoard()` (`training.callbacks.Callback`).

    Attributes:
        front_: what every ray reaches on the validation rows.
        best_epoch_: passes over the data after which the network was kept.
        model_: the network, ``forward(inputs, ray) -> outputs``, in float64.
        groups_: what `sensitive` holds; empty without.
        n_features_in_: how many columns `X` had.
        feature_names_in_: what they are called, where they have names.

    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> regressor = ParetoRegressor(random_state=0).fit(X, y)
    >>> low, high = (regressor.predict(X, preference=[1 - t, t]) for t in (0.1, 0.9))
    >>> bool((low < high).mean() > 0.95)
    True
    """

    fairness: str | type[GroupObjective] = "error_gap"
    loss: str = "squared"

    def predict(self, X: Any, *, preference: Any = None, sensitive: Any = None) -> Floats:  # noqa: N803
        """Predict the number of every row, ``[n]`` or ``[n, targets]``.

        Args:
            X: rows like those of `fit`.
            preference: a ray ``[J]``, or one for each row ``[n, J]``; the estimator's if `None`.
            sensitive: the group of every row, with ``group="input"``.
        """
        outputs = self._predict_targets(X, preference, sensitive)
        return _stack_predictions([target.predict(out) for target, out in outputs])

    def score(
        self,
        X: Any,  # noqa: N803
        y: Any,
        sample_weight: Any = None,
        *,
        preference: Any = None,
        sensitive: Any = None,
    ) -> float:
        """Compute the share of variance explained, R²; its mean with several targets.

        Args:
            X: rows like those of `fit`.
            y: their numbers.
            sample_weight: how much every row counts.
            preference: a ray ``[J]``, or one for each row ``[n, J]``; the estimator's if `None`.
            sensitive: the group of every row, with ``group="input"``.
        """
        predicted = self.predict(X, preference=preference, sensitive=sensitive)
        with translate_errors():
            return float(r2_score(y, predicted, sample_weight=sample_weight))

    def _encode_targets(self, names: list[str], columns: list[Column]) -> tuple[Column, ...]:
        encoded = []
        for column in columns:
            try:
                numbers = np.asarray(column, dtype=np.float64)
            except (TypeError, ValueError) as error:
                raise DataError(
                    f"a regressor predicts numbers, found values such as {column[0]!r}: use "
                    "ParetoClassifier for classes"
                ) from error
            with translate_errors("leave such rows out"):
                assert_all_finite(numbers, input_name="y")
            encoded.append(numbers)
        return tuple(encoded)

    def _fit_targets(self, names: list[str], train: Rows) -> list[Target]:
        columns = zip(names, train.truth, strict=True)
        return [Numbers.fit(name, column, train.weight) for name, column in columns]

    def _build_objectives(self, targets: list[Any], groups: int) -> tuple[Objective, ...]:
        kind = fairness_objective(self.fairness, "numbers", "`fairness` of a regressor")
        power = self._get_power()
        if len(targets) > 1:
            losses = [(build_loss(t.answer, power=power, head=t.name), t.scale) for t in targets]
            return tuple(InUnit(loss, scale) for loss, scale in losses)
        (target,) = targets
        gap = build_gap(kind, groups, power) if groups else None
        objectives = build_objectives(target.answer, gap, power=power)
        return tuple(InUnit(objective, target.scale) for objective in objectives)

    def _build_metrics(self, targets: list[Any], groups: int) -> dict[str, Metric]:
        metrics: dict[str, Metric] = {}
        for target in targets:
            single, scale = len(targets) == 1, target.scale
            output, label = (None, LABEL) if single else (target.name, target.name)
            suffix = "" if single else f"_{target.name}"
            heads: Any = {"output": output, "target": label}
            squared = InUnit(MeanSquaredError(**heads), scale)
            metrics[f"rmse{suffix}"] = partial(compute_root, objective=squared)
            metrics[f"mae{suffix}"] = InUnit(MeanAbsoluteError(**heads), scale).score
            metrics[f"bias{suffix}"] = partial(compute_bias, **heads, scale=scale)
            metrics[f"over_rate{suffix}"] = partial(compute_over_rate, **heads)
        if groups and len(targets) == 1:
            for name, gap in fairness_objectives("numbers").items():
                # both gaps, whichever of them is traded
                objective = build_gap(gap, groups, self._get_power())
                metrics[name] = InUnit(objective, targets[0].scale).score
        return metrics

    def _get_power(self) -> int:
        check_choice("`loss`", self.loss, POWERS)
        return POWERS[self.loss]

    def _compute_strata(self, rows: Rows) -> Codes:
        return np.zeros(len(rows), dtype=np.int64) if rows.groups is None else rows.groups


def _stack_predictions(columns: list[Column]) -> Column:
    """Return one prediction ``[n]``, or several ``[n, targets]``."""
    return columns[0] if len(columns) == 1 else np.stack(columns, axis=1)
