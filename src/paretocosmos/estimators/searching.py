"""Pipelines and searches: scores of a whole front, and a choice in a pipeline's last step."""

import copy
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from paretocosmos.errors import ConfigurationError, InfeasibleError
from paretocosmos.estimators._choosing import Chooses
from paretocosmos.pareto.metrics import hypervolume

__all__ = ["best_within", "choose_in", "front_hypervolume"]

Scorer = Callable[..., float]


def front_hypervolume(estimator: Any, X: Any = None, y: Any = None) -> float:  # noqa: ARG001, N803
    """The hypervolume of a fitted estimator's front: a scorer for `GridSearchCV`.

    It is that of the rows which `fit` kept for validation, so what is held out by the search is not
    needed. Compare fits of the same objectives only.

    Args:
        estimator: fitted, or a pipeline that ends in it.
        X: not read.
        y: not read.
    """
    return hypervolume(_last(estimator).front_)


def best_within(
    *,
    max: Mapping[str, float] | None = None,  # noqa: A002
    min: Mapping[str, float] | None = None,  # noqa: A002
    maximize: str = "accuracy",
) -> Scorer:
    """A scorer for `GridSearchCV`: the best value of a front within bounds, such as a largest gap.

    Args:
        max: the largest value allowed, by the name of an objective or a metric.
        min: the smallest value allowed, likewise.
        maximize: what is to be large.

    Returns:
        A function of a fitted estimator, or of a pipeline that ends in one; minus infinity where no
        ray of its front keeps the bounds. It reads the rows which `fit` kept for validation.

    >>> scorer = best_within(max={"tpr_gap": 0.05})
    """

    def score(estimator: Any, X: Any = None, y: Any = None) -> float:  # noqa: ARG001, N803
        try:
            point = _last(estimator).front_.choose(max=max, min=min, maximize=maximize)
        except InfeasibleError:
            return -np.inf
        return float(point[maximize])

    return score


def choose_in(pipeline: Any, **criteria: Any) -> Any:
    """A fitted pipeline whose last step predicts at the preference that meets the criteria best.

    Args:
        pipeline: fitted; its last step is one of this package's estimators.
        criteria: what `choose` takes: `max`, `min`, `minimize`, `maximize`, ...

    Returns:
        A copy with the other last step; the steps before it are shared.
    """
    chosen = _last(pipeline).choose(**criteria)
    if not isinstance(pipeline, Pipeline):
        return chosen
    changed = copy.copy(pipeline)
    changed.steps = [*pipeline.steps[:-1], (pipeline.steps[-1][0], chosen)]
    return changed


def _last(estimator: Any) -> Any:
    """An estimator of this package, itself or at the end of a pipeline."""
    last = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
    if not isinstance(last, Chooses):
        raise ConfigurationError(
            "only `ParetoClassifier`, `ParetoRegressor` or a pipeline that ends in one has a "
            f"front, found {type(last).__name__}"
        )
    return last
