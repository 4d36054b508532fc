"""What is as good as a run: an estimator, or a pipeline that ends in one."""

import warnings
from typing import Any, NamedTuple, Protocol, runtime_checkable

from paretocosmos.errors import ConfigurationError, DataWarning
from paretocosmos.evaluation.threshold import MIDDLE
from paretocosmos.runs.run import Run

__all__ = ["PredictsAt", "RunLike", "as_run", "predicts_at"]


@runtime_checkable
class RunLike(Protocol):
    """Something fitted that gives a run, such as an estimator."""

    def to_run(self) -> Run:
        """The run: its network, its fronts, and what it predicts at."""


def as_run(given: Any) -> Run:
    """A run, or that of an estimator, or that of the estimator a pipeline ends in.

    Args:
        given: any of them, fitted. What a pipeline does before its last step is no part of a run,
            which is warned of.
    """
    if isinstance(given, Run):
        return given
    steps = getattr(given, "steps", None) or [("", given)]
    name, last = steps[-1]
    if not isinstance(last, RunLike):
        raise ConfigurationError(
            "this needs a run, a `ParetoClassifier` or `ParetoRegressor`, or a pipeline that ends "
            f"in one, found {type(last).__name__}: give what `fit` or `load_run` returned"
        )
    run = last.to_run()
    if len(steps) > 1:
        warnings.warn(
            f"the steps before `{name}` are not included: pass the rows that "
            "`pipeline[:-1].transform(rows)` returns",
            DataWarning,
            stacklevel=3,
        )
    return run


class PredictsAt(NamedTuple):
    """Where a run answers if nothing is asked.

    Attributes:
        ray: the preference of the estimator whose run it is; `None` of any other.
        threshold: the probability above which a decision between two classes is positive.
    """

    ray: tuple[float, ...] | None
    threshold: float


def predicts_at(run: Run) -> PredictsAt:
    """The preference and the threshold of the estimator that a run is of."""
    said = run.record.get("predicts_at")
    if said is None:
        return PredictsAt(None, MIDDLE)
    return PredictsAt(tuple(said["ray"]), said["threshold"])
