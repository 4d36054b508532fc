"""A regressor for every preference."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score

from paretocosmos.estimators.base import ParetoEstimator
from paretocosmos.estimators.inputs import Column, Floats, Rows, translate_errors
from paretocosmos.estimators.objectives import build_number_metrics, build_number_objectives
from paretocosmos.estimators.targets import Numbers, Target, check_numbers, stack_predictions
from paretocosmos.objectives import GroupObjective, Objective
from paretocosmos.problems.tables import Codes
from paretocosmos.types import Metric


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

    def fit(
        self,
        X: Any,  # noqa: N803
        y: Any,
        *,
        sensitive: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Train the network.

        Args:
            X: a DataFrame with numbers, categories, text, missing values; or an array of numbers.
            y: the number of every row, ``[n]``; or several targets, ``[n, targets]``.
            sensitive: the group of every row, two groups or more; no feature unless `X` has it.
            sample_weight: how much every row counts; one with 0 is as if it were not there.
        """
        return self._fit(X, y, sensitive, sample_weight)

    def predict(self, X: Any, *, preference: Any = None, sensitive: Any = None) -> Floats:  # noqa: N803
        """Predict the number of every row, ``[n]`` or ``[n, targets]``.

        Args:
            X: rows like those of `fit`.
            preference: a ray ``[J]``, or one for each row ``[n, J]``; the estimator's if `None`.
            sensitive: the group of every row, with ``group="input"``.
        """
        outputs = self._predict_targets(X, preference, sensitive)
        return stack_predictions([target.predict(out) for target, out in outputs])

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
        return tuple(check_numbers(column) for column in columns)

    def _fit_targets(self, names: list[str], train: Rows) -> list[Target]:
        columns = zip(names, train.truth, strict=True)
        return [Numbers.fit(name, column, train.weight) for name, column in columns]

    def _build_objectives(self, targets: list[Any], groups: int) -> tuple[Objective, ...]:
        return build_number_objectives(targets, groups, self.fairness, self.loss)

    def _build_metrics(self, targets: list[Any], groups: int) -> dict[str, Metric]:
        return build_number_metrics(targets, groups, self.loss)

    def _compute_strata(self, rows: Rows) -> Codes:
        return np.zeros(len(rows), dtype=np.int64) if rows.groups is None else rows.groups
