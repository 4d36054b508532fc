"""Pipelines and searches: scores of a whole front, and a choice in a pipeline's last step."""

import copy
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from paretocosmos.errors import ConfigurationError, InfeasibleError
from paretocosmos.estimators.base import ParetoEstimator
from paretocosmos.pareto.metrics import hypervolume

Scorer = Callable[..., float]


def front_hypervolume(estimator: Any, X: Any = None, y: Any = None) -> float:  # noqa: ARG001, N803
    """Compute the hypervolume of a fitted estimator's front: a scorer for `GridSearchCV`.

    It is computed on the rows that `fit` kept for validation; the fold that the search holds out is
    not read. Compare only fits with the same objectives.

    Args:
        estimator: fitted, or a pipeline that ends in it.
        X: not read.
        y: not read.

    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.model_selection import GridSearchCV
    >>> from paretocosmos.estimators import ParetoRegressor
    >>> estimator, grid = ParetoRegressor(random_state=0), {"epochs": [1, 4]}
    >>> search = GridSearchCV(estimator, grid, scoring=front_hypervolume, cv=2, refit=False)
    >>> search.fit(*load_diabetes(return_X_y=True)).best_params_
    {'epochs': 4}
    """
    return hypervolume(_get_estimator(estimator).front_)


def best_within(
    *,
    max: Mapping[str, float] | None = None,  # noqa: A002
    min: Mapping[str, float] | None = None,  # noqa: A002
    maximize: str = "accuracy",
) -> Scorer:
    """Make a scorer for `GridSearchCV`: the best value of a front within bounds.

    Args:
        max: the largest value allowed, by the name of an objective or a metric.
        min: the smallest value allowed, likewise.
        maximize: what is to be large.

    Returns:
        A function of a fitted estimator, or of a pipeline that ends in one; it gives minus infinity
        where no ray of the front keeps the bounds. It uses the rows that `fit` kept for validation.

    >>> from sklearn.datasets import make_classification
    >>> from paretocosmos.estimators import ParetoClassifier
    >>> X, y = make_classification(600, random_state=0)
    >>> classifier = ParetoClassifier(random_state=0, epochs=3).fit(X, y, sensitive=X[:, 0] > 0)
    >>> best_within(max={"tpr_gap": 0.2})(classifier) > 0.7
    True
    >>> best_within(max={"binary_cross_entropy": 0.0})(classifier)
    -inf
    """

    def score(estimator: Any, X: Any = None, y: Any = None) -> float:  # noqa: ARG001, N803
        try:
            point = _get_estimator(estimator).front_.choose(max=max, min=min, maximize=maximize)
        except InfeasibleError:
            return -np.inf
        return float(point[maximize])

    return score


def choose_in(pipeline: Any, **criteria: Any) -> Any:
    """Return a pipeline that predicts at the preference which meets the criteria best.

    Args:
        pipeline: fitted; its last step is a `ParetoClassifier` or a `ParetoRegressor`.
        criteria: what `choose` takes: `max`, `min`, `minimize`, `maximize`, ...

    Returns:
        A copy with another last step; the steps before it are shared.

    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from paretocosmos.estimators import ParetoRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> pipeline = make_pipeline(StandardScaler(), ParetoRegressor(random_state=0, epochs=4))
    >>> careful = choose_in(pipeline.fit(X, y), max={"over_prediction": 300.0})
    >>> bool((careful.predict(X) < pipeline.predict(X)).mean() > 0.95)
    True
    """
    chosen = _get_estimator(pipeline).choose(**criteria)
    if not isinstance(pipeline, Pipeline):
        return chosen
    changed = copy.copy(pipeline)
    changed.steps = [*pipeline.steps[:-1], (pipeline.steps[-1][0], chosen)]
    return changed


def _get_estimator(estimator: Any) -> Any:
    """Return an estimator of this package, itself or at the end of a pipeline."""
    last = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
    if not isinstance(last, ParetoEstimator):
        raise ConfigurationError(
            "only `ParetoClassifier`, `ParetoRegressor` or a pipeline that ends in one has a "
            f"front, found {type(last).__name__}"
        )
    return last
