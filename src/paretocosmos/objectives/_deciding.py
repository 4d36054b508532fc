"""Which numbers are of decisions, and so depend on the threshold."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from paretocosmos.objectives._base import Objective

Declared = TypeVar("Declared", bound=Callable[..., Any])


def deciding(metric: Declared) -> Declared:
    """Declare that a metric is of decisions: of one logit per sample it reads ``logit > 0`` alone.

    So it can be had at another threshold, by moving the logits. What reads probabilities, as a
    cross-entropy or a calibration error, must not be declared so.
    """
    vars(metric)["decides"] = True
    return metric


def decides(metric: Callable[..., Any]) -> bool:
    """Whether a metric is declared to be of decisions: a function, or the score of an objective.

    An objective says so with `decides`; a subclass with a score of its own declares it anew.

    >>> from paretocosmos.objectives import RateObjective, accuracy, calibration_error
    >>> decides(accuracy), decides(calibration_error), decides(RateObjective().score)
    (True, False, True)
    """
    if isinstance(metric, partial):
        return decides(metric.func)
    owner = getattr(metric, "__self__", None)
    if not isinstance(owner, Objective) or metric != owner.score:
        return bool(getattr(metric, "decides", False))
    for holder in (owner, *type(owner).__mro__):
        held = vars(holder)
        if "decides" in held or "score" in held:
            return bool(held.get("decides", False))
    return False
