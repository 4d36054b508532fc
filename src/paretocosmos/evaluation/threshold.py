"""Decisions at another probability than 0.5, the same for everybody."""

import dataclasses
import math
from collections.abc import Mapping
from functools import partial
from numbers import Real

from torch import Tensor

from paretocosmos.errors import ConfigurationError
from paretocosmos.objectives import Objective, decides
from paretocosmos.problems import Problem
from paretocosmos.types import Metric, Outputs, Targets, map_tensors

__all__ = [
    "MIDDLE",
    "AtThreshold",
    "at_threshold",
    "check_threshold",
    "logit_of",
    "scores_of",
    "takes_threshold",
]

MIDDLE = 0.5


class AtThreshold(Objective):
    """An objective whose score is of decisions at a threshold; its loss is as before.

    Args:
        inner: the objective.
        offset: the logit from which a decision is positive.
    """

    per_head = False  # it reads what another objective reads

    def __init__(self, inner: Objective, offset: float) -> None:
        super().__init__(name=inner.name, output=inner.output, target=inner.target)
        self.wrapped, self.inner, self.offset = inner, inner, offset
        self.over = getattr(inner, "over", ())

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        return self.inner.loss(outputs, targets)

    def score(self, outputs: Outputs, targets: Targets) -> Tensor:
        return self.inner.score(_moved(outputs, self.offset), targets)

    def moments(self, outputs: Outputs, targets: Targets) -> Tensor | None:
        return self.inner.moments(_moved(outputs, self.offset), targets)


def takes_threshold(problem: Problem) -> bool:
    """Whether decisions are made of one logit, so that they can be made at another probability."""
    return problem.outputs == 1 and any(map(decides, scores_of(problem).values()))


def check_threshold(threshold: object, *, decided: bool, what: str) -> None:
    """Refuse what is no probability, and a threshold where nothing is decided by one.

    Args:
        threshold: what was given.
        decided: whether decisions between two classes are made.
        what: it was given for.
    """
    number = float(threshold) if isinstance(threshold, Real) else 0.0
    if isinstance(threshold, bool) or not 0 < number < 1:
        raise ConfigurationError(
            "`threshold` must be a probability above 0 and below 1, such as 0.3, found "
            f"{threshold!r}"
        )
    if threshold != MIDDLE and not decided:
        raise ConfigurationError(
            f"`{what}` does not decide between two classes, so it takes no `threshold`: leave it "
            "out"
        )


def at_threshold(problem: Problem, threshold: float) -> Problem:
    """The problem with all that is of decisions (`objectives.decides`) at another probability.

    Losses, and metrics of probabilities, are as they were.

    >>> import torch, warnings
    >>> from paretocosmos import load_problem
    >>> with warnings.catch_warnings(action="ignore"):
    ...     strict = at_threshold(load_problem("compas"), 0.9)
    >>> targets = {"label": torch.ones(2)}
    >>> strict.metrics["accuracy"](torch.tensor([1.0, 3.0]), targets)
    tensor(0.5000, dtype=torch.float64)
    """
    check_threshold(threshold, decided=takes_threshold(problem), what=problem.name)
    if threshold == MIDDLE:
        return problem
    offset = logit_of(threshold)

    def metric(one: Metric) -> Metric:
        owner = getattr(one, "__self__", None)
        if not decides(one):
            return one
        if isinstance(owner, Objective):  # which may know its moments
            return AtThreshold(owner, offset).score
        return partial(_metric, one=one, offset=offset)

    return dataclasses.replace(
        problem,
        objectives=tuple(
            AtThreshold(o, offset) if decides(o.score) else o for o in problem.objectives
        ),
        metrics={name: metric(one) for name, one in problem.metrics.items()},
    )


def scores_of(problem: Problem) -> Mapping[str, Metric]:
    """Everything that a front reports, by name."""
    return dict(problem.metrics) | {o.name: o.score for o in problem.objectives}


def logit_of(threshold: float) -> float:
    """The logit of a probability."""
    return math.log(threshold / (1 - threshold))


def _metric(outputs: Outputs, targets: Targets, *, one: Metric, offset: float) -> Tensor:
    return one(_moved(outputs, offset), targets)


def _moved(outputs: Outputs, offset: float) -> Outputs:
    moved: Outputs = map_tensors(lambda out: out - offset, outputs)
    return moved
