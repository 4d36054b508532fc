"""Other ways to keep a gap within a bound, for the fairness benchmark.

Each function is given what the base says of the training rows and returns, for every tolerance, a
function of new rows that gives the chance of a yes. All compare two groups, 0 and 1.
"""

from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
import numpy.typing as npt
import pandas as pd
from fairlearn.postprocessing import ThresholdOptimizer
from fairlearn.reductions import (
    DemographicParity,
    ExponentiatedGradient,
    GridSearch,
    TruePositiveRateParity,
)
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression

__all__ = [
    "Known",
    "StoredScores",
    "fit_oxonfair",
    "fit_reduction",
    "fit_thresholds",
    "measure",
    "search_grid",
    "solve_programme",
]

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
POSITIVES = "tpr_gap"
THRESHOLDS = {POSITIVES: "true_positive_rate_parity", "demographic_parity": "demographic_parity"}
PARITIES = {POSITIVES: TruePositiveRateParity, "demographic_parity": DemographicParity}
# Corners of each group's ROC curve in the linear programme; models of the grid search.
CORNERS, GRID = 200, 15


class Known(NamedTuple):
    """What is known of rows.

    Attributes:
        scores: the base's probabilities of a yes, by row.
        label: 0 or 1.
        group: 0 or 1.
        chance: that the group is 1, by the other columns.
    """

    scores: "pd.Series[float]"
    label: Codes
    group: Codes
    chance: Floats


class StoredScores(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier whose probabilities are stored by the index of the rows.

    So that every method adjusts the same scores: out of fold for the training rows.
    """

    def __init__(self, scores: Any = None) -> None:
        self.scores = scores
        self.classes_ = np.array([0, 1])

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, X: Any, y: Any) -> "StoredScores":  # noqa: N803
        """Return itself: the scores are known."""
        return self

    def predict_proba(self, X: pd.DataFrame) -> Floats:  # noqa: N803
        """Return the stored probabilities of rows."""
        positive = self.scores.loc[X.index].to_numpy(np.float64)
        return np.stack([1 - positive, positive], axis=1)

    def predict(self, X: pd.DataFrame) -> Codes:  # noqa: N803
        """Return the likelier class of rows."""
        return (self.predict_proba(X)[:, 1] > 0.5).astype(np.int64)


def measure(gap: str, chances: Floats, label: Codes, group: Codes) -> tuple[float, float]:
    """Compute the mean accuracy and the gap of decisions with these chances of a yes."""
    accuracy = float(np.where(label == 1, chances, 1 - chances).mean())
    counts = label == 1 if gap == POSITIVES else np.ones(len(label), dtype=bool)
    rates = [chances[counts & (group == code)].mean() for code in (0, 1)]
    return accuracy, float(abs(rates[0] - rates[1]))


def fit_thresholds(
    gap: str, train: Known, tolerances: tuple[float, ...]
) -> Iterator[Callable[[Known], Floats]]:
    """Yield fairlearn's `ThresholdOptimizer` for each tolerance (Hardt et al. 2016)."""
    rows = train.scores.to_frame()
    for tolerance in tolerances:
        optimizer = ThresholdOptimizer(
            estimator=StoredScores(train.scores),
            constraints=THRESHOLDS[gap],
            objective="accuracy_score",
            predict_method="predict_proba",
            prefit=True,
            tol=tolerance,
        ).fit(rows, train.label, sensitive_features=train.group)
        yield partial(_apply_thresholds, optimizer)


def _apply_thresholds(optimizer: Any, new: Known) -> Floats:
    optimizer.interpolated_thresholder_.estimator_ = StoredScores(new.scores)
    rows = new.scores.to_frame()
    chances: Floats = optimizer._pmf_predict(rows, sensitive_features=new.group)[:, 1]
    return chances


def solve_programme(
    gap: str, train: Known, tolerances: tuple[float, ...]
) -> Iterator[Callable[[Known], Floats]]:
    """Yield the relaxed linear programme of Cruz and Hardt (2024) for each tolerance.

    Each group's decisions mix thresholds on the scores, so its rates lie in the convex hull of its
    ROC curve. The fewest errors are asked for, with rates at most the tolerance apart.
    """
    errors, rates, mixes, cuts = [], [], [], []
    for code in (0, 1):
        scores = train.scores.to_numpy()[train.group == code]
        label = train.label[train.group == code]
        cut = np.unique(np.quantile(scores, np.linspace(0, 1, CORNERS), method="lower"))
        decisions = scores[:, None] >= np.append(cut, np.inf)
        mix = cp.Variable(len(cut) + 1, nonneg=True)
        errors.append((decisions != (label == 1)[:, None]).sum(axis=0) @ mix)
        rates.append((decisions[label == 1] if gap == POSITIVES else decisions).mean(axis=0) @ mix)
        mixes.append(mix)
        cuts.append(np.append(cut, np.inf))
    tolerance = cp.Parameter(nonneg=True)
    difference = rates[0] - rates[1]
    limits = [np.ones(mix.size) @ mix == 1 for mix in mixes]
    limits += [difference <= tolerance, -difference <= tolerance]
    programme = cp.Problem(cp.Minimize(sum(errors) / len(train.label)), limits)
    for value in tolerances:
        tolerance.value = value
        programme.solve(solver=cp.HIGHS)  # type: ignore[no-untyped-call]
        yield partial(_mix_thresholds, cuts, [np.asarray(mix.value) for mix in mixes])


def _mix_thresholds(cuts: list[Floats], mixes: list[Floats], new: Known) -> Floats:
    chances = np.empty(len(new.label))
    for code, (cut, mix) in enumerate(zip(cuts, mixes, strict=True)):
        mine = new.group == code
        chances[mine] = (new.scores.to_numpy()[mine, None] >= cut) @ mix
    return chances


def fit_oxonfair(
    gap: str, train: Known, tolerances: tuple[float, ...], *, is_group_known: bool
) -> Iterator[Callable[[Known], Floats]]:
    """Yield OxonFair (Delaney et al. 2024) for each tolerance, with groups known or inferred."""
    oxonfair, metrics = import_module("oxonfair"), import_module("oxonfair.utils.group_metrics")
    constraint = metrics.equal_opportunity if gap == POSITIVES else metrics.demographic_parity
    for tolerance in tolerances:
        predictor = oxonfair.FairPredictor(
            lambda data: data[:, :2].copy(),
            _describe(train),
            inferred_groups=False if is_group_known else lambda data: data[:, 2:],
        )
        predictor.fit(metrics.accuracy, constraint, tolerance)
        yield partial(_apply_oxonfair, predictor)


def _describe(known: Known) -> dict[str, Any]:
    scores = known.scores.to_numpy()
    data = np.stack([1 - scores, scores, 1 - known.chance, known.chance], axis=1)
    return {"data": data, "target": known.label, "groups": known.group}


def _apply_oxonfair(predictor: Any, new: Known) -> Floats:
    return np.asarray(predictor.predict(_describe(new)), np.float64)


def _make_logistic() -> LogisticRegression:
    return LogisticRegression(solver="newton-cholesky")


def fit_reduction(
    gap: str, features: Floats, train: Known, tolerances: tuple[float, ...]
) -> Iterator[Callable[[Floats], Floats]]:
    """Yield `ExponentiatedGradient` with logistic regression for each tolerance.

    Its bound is on the distance of every group's rate from the rate of all. The smaller a group,
    the further it may be from the other: with two, the gap is that distance divided by the share
    of the other.
    """
    counted = train.group[train.label == 1] if gap == POSITIVES else train.group
    smallest = np.bincount(counted).min() / len(counted)
    for tolerance in tolerances:
        parity = PARITIES[gap](difference_bound=tolerance * (1 - smallest))
        model = ExponentiatedGradient(_make_logistic(), parity)
        model.fit(features, train.label, sensitive_features=train.group)
        yield partial(_draw_model, model)


def _draw_model(model: Any, features: Floats) -> Floats:
    chances: Floats = model._pmf_predict(features)[:, 1]
    return chances


def search_grid(
    gap: str, features: Floats, train: Known, tolerances: tuple[float, ...]
) -> Iterator[Callable[[Floats], Floats]]:
    """Yield the most accurate model of `GridSearch` that keeps each tolerance on training rows."""
    search = GridSearch(_make_logistic(), PARITIES[gap](), grid_size=GRID)
    search.fit(features, train.label, sensitive_features=train.group)
    results = []
    for model in search.predictors_:
        results.append(measure(gap, _decide(model, features), train.label, train.group))
    accuracies, gaps = np.array(results).T
    for tolerance in tolerances:
        kept = gaps <= max(tolerance, gaps.min())
        best = search.predictors_[int(np.argmax(np.where(kept, accuracies, -1)))]
        yield partial(_decide, best)


def _decide(model: Any, features: Floats) -> Floats:
    decisions: Floats = model.predict(features).astype(np.float64)
    return decisions
