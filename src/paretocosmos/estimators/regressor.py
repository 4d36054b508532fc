"""A regressor for every preference."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score

from paretocosmos.estimators.base import ParetoEstimator, side_by_side
from paretocosmos.estimators.inputs import Column, Floats, Rows, numbers_in, ours, standardised
from paretocosmos.estimators.objectives import Given, number_metrics, number_trade
from paretocosmos.estimators.training import Kind
from paretocosmos.methods import Method
from paretocosmos.objectives import GroupObjective, Objective
from paretocosmos.problems.tables import Codes
from paretocosmos.training.callbacks import Callback
from paretocosmos.training.progress import Progress
from paretocosmos.types import Metric

__all__ = ["ParetoRegressor"]


class ParetoRegressor(RegressorMixin, ParetoEstimator):  # type: ignore[misc]
    """One network, trained once, that predicts a number at every preference between objectives.

    With `sensitive` in `fit` it trades the error against a gap between groups; with several
    targets, the error of each; else predictions that are too high against those that are too low:
    a ray (1 - t, t) then asks for the t-expectile, or with ``loss="absolute"`` for the t-quantile.
    Targets are standardised for the network; `front_` and predictions are in their own unit.

    Args:
        preference: the ray to predict at, one entry per objective, summing to 1, or weights by
            name, as ``{"accuracy": 0.7, "tpr_gap": 0.3}``; equal weights if `None`. `predict` takes
            another.
        objectives: what is traded instead: functions of outputs and targets by name, or
            `Objective` instances; each gives one number to minimise. Targets are a mapping: `label`
            (or the targets' names, where there are several), `sensitive`, `weight`.
            They see predictions and targets in the targets' unit.
        fairness: the gap between groups, the largest minus the smallest mean of one:
            ``"error_gap"`` or ``"prediction_gap"``; or a class of one's own derived from
            `GroupObjective` with `fairness = "numbers"`.
        loss: the error: ``"squared"`` or ``"absolute"``.
        method: how rays and losses are weighed: a method or its name; the default preset's if
            `None`.
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

    def __init__(
        self,
        *,
        preference: Sequence[float] | Mapping[str, float] | None = None,
        objectives: Given | None = None,
        fairness: str | type[GroupObjective] = "error_gap",
        loss: str = "squared",
        method: str | Method | None = None,
        penalty: float | None = None,
        alpha: float | tuple[float, ...] | None = None,
        hidden: tuple[int, ...] | None = None,
        epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        rays: int = 25,
        validation_fraction: float = 0.15,
        off_simplex: str = "refuse",
        categorical: Sequence[str | int] = (),
        random_state: Any = None,
        device: str = "auto",
        progress: Callable[[Progress], None] | bool = True,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        self.preference = preference
        self.objectives = objectives
        self.fairness = fairness
        self.loss = loss
        self.method = method
        self.penalty = penalty
        self.alpha = alpha
        self.hidden = hidden
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.rays = rays
        self.validation_fraction = validation_fraction
        self.off_simplex = off_simplex
        self.categorical = categorical
        self.random_state = random_state
        self.device = device
        self.progress = progress
        self.callbacks = callbacks

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

    def predict(self, X: Any, *, preference: Any = None) -> Floats:  # noqa: N803
        """The number of every row, ``[n]`` or ``[n, targets]``.

        Args:
            X: rows like those of `fit`.
            preference: a ray ``[J]``, or one for each row ``[n, J]``; the estimator's if `None`.
        """
        return side_by_side([kind.predicted(out) for kind, out in self._answers(X, preference)])

    def score(
        self,
        X: Any,  # noqa: N803
        y: Any,
        sample_weight: Any = None,
        *,
        preference: Any = None,
    ) -> float:
        """The share of variance explained, R²; its mean with several targets.

        Args:
            X: rows like those of `fit`.
            y: their numbers.
            sample_weight: how much every row counts.
            preference: a ray ``[J]``, or one for each row ``[n, J]``; the estimator's if `None`.
        """
        predicted = self.predict(X, preference=preference)
        with ours():
            return float(r2_score(y, predicted, sample_weight=sample_weight))

    def _numbered(self, names: list[str], columns: list[Column]) -> tuple[Column, ...]:
        return tuple(numbers_in(columns))

    def _kinds(self, names: list[str], train: Rows) -> list[Kind]:
        return [standardised(n, y, train.weight) for n, y in zip(names, train.truth, strict=True)]

    def _trade(self, kinds: list[Any], groups: int) -> tuple[Objective, ...]:
        return number_trade(kinds, groups, self.fairness, self.loss)

    def _metrics(self, kinds: list[Any], groups: int) -> dict[str, Metric]:
        return number_metrics(kinds, groups, self.loss)

    def _strata(self, rows: Rows) -> Codes:
        return np.zeros(len(rows), dtype=np.int64) if rows.groups is None else rows.groups
