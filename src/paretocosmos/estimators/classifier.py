"""A classifier for every preference."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score

from paretocosmos.estimators.base import ParetoEstimator
from paretocosmos.estimators.inputs import Column, Rows, translate_errors
from paretocosmos.estimators.objectives import build_class_metrics, build_class_objectives
from paretocosmos.estimators.targets import Target, encode_classes, stack_predictions
from paretocosmos.estimators.training import check_in_both_splits
from paretocosmos.objectives import GroupObjective, Objective, fairness_objective
from paretocosmos.problems.tables import Codes, build_gap, check_compared_rows
from paretocosmos.types import Metric


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
            y: the class of every row, ``[n]``; or several targets, ``[n, targets]``.
            sensitive: the group of every row, two groups or more; no feature unless `X` has it.
            sample_weight: how much every row counts; one with 0 is as if it were not there.
        """
        return self._fit(X, y, sensitive, sample_weight)

    def predict(self, X: Any, *, preference: Any = None, sensitive: Any = None) -> npt.NDArray[Any]:  # noqa: N803
        """Predict the class of every row, ``[n]`` or ``[n, targets]``.

        Of two classes, the second where its probability is above `threshold_`.

        Args:
            X: rows like those of `fit`.
            preference: a ray ``[J]``, or one for each row ``[n, J]``; the estimator's if `None`.
            sensitive: the group of every row, with ``group="input"``.
        """
        outputs = self._predict_targets(X, preference, sensitive)
        return stack_predictions([target.predict(out, self.threshold_) for target, out in outputs])

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
        self._classes, codes = encode_classes(names, columns)
        first, *others = (target.classes for target in self._classes)
        self.classes_: Any = [first, *others] if others else first
        return tuple(codes)

    def _fit_targets(self, names: list[str], train: Rows) -> list[Target]:
        columns = zip(self._classes, train.truth, strict=True)
        return [target.with_shares(codes, train.weight) for target, codes in columns]

    def _build_objectives(self, targets: list[Any], groups: int) -> tuple[Objective, ...]:
        return build_class_objectives(targets, groups, self.fairness)

    def _build_metrics(self, targets: list[Any], groups: int) -> dict[str, Metric]:
        return build_class_metrics(targets, groups)

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
