"""Objectives of one's own, and objectives that are reported in the target's unit."""

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from paretocosmos.config.promises import promised
from paretocosmos.errors import ConfigurationError
from paretocosmos.estimators._targets import LABEL, Numbers
from paretocosmos.objectives import Objective, decides
from paretocosmos.types import Metric, Outputs, Targets, map_tensors

__all__ = ["Given", "InUnit", "Own", "in_unit", "own_objectives"]

Own = Callable[[Any, Any], Tensor] | Objective
"""An objective of one's own: a function of outputs and targets that gives one number."""

Given = Mapping[str, Own] | Sequence[Objective]
"""Several of them, by name; or objectives, which have names."""


class InUnit(Objective):
    """An objective whose score is in the target's unit, though a network's targets have none.

    Args:
        inner: the objective of standardised numbers.
        factor: what a score of 1 is in the target's unit: its deviation, or the square of it.
    """

    per_head = False  # it reads what another objective reads

    def __init__(self, inner: Objective, factor: float) -> None:
        super().__init__(name=inner.name, output=inner.output, target=inner.target)
        self.wrapped, self.traceable = inner, promised(inner)
        self.inner, self.factor = inner, factor

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        return self.inner.loss(outputs, targets)

    def score(self, outputs: Outputs, targets: Targets) -> Tensor:
        return self.inner.score(outputs, targets) * self.factor

    def moments(self, outputs: Outputs, targets: Targets) -> Tensor | None:
        found = self.inner.moments(outputs, targets)
        unit = torch.tensor([self.factor, self.factor**2, 1.0], dtype=torch.float64)
        return None if found is None else found * unit.to(found.device)


def in_unit(objective: Objective, scale: float) -> InUnit:
    """An objective of standardised numbers, reported in the unit of a target of that deviation."""
    return InUnit(objective, objective.unit(scale))


class _Wrapped(Objective):
    """An objective of one's own, which sees predictions and targets as its owner knows them."""

    per_head = False  # it reads what another objective reads

    def __init__(self, name: str, own: Own, numbers: Sequence[Numbers]) -> None:
        super().__init__(name=name)
        self.wrapped, self.traceable = own, promised(own)  # which may decide things in Python
        loss, score = (own.loss, own.score) if isinstance(own, Objective) else (own, own)
        self.decides = decides(score)
        self._loss, self._score = (_in_unit(_flat(f), numbers) for f in (loss, score))

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        return self._one(self._loss(outputs, targets))

    def score(self, outputs: Outputs, targets: Targets) -> Tensor:
        return self._one(self._score(outputs, targets))

    def _one(self, found: Tensor) -> Tensor:
        if not isinstance(found, Tensor) or found.ndim:
            shape = f"shape {tuple(found.shape)}" if isinstance(found, Tensor) else repr(found)
            raise ConfigurationError(
                f"the objective `{self.name}` must return one number for all rows, as a tensor, "
                f"found {shape}: take the mean"
            )
        return found


def own_objectives(given: Given, numbers: Sequence[Numbers]) -> tuple[Objective, ...]:
    """Objectives of one's own, as a training takes them.

    Args:
        given: what the estimator was given as `objectives`.
        numbers: the targets of a regressor; none for a classifier.
    """
    by_name: Mapping[str, Own] = {}
    if isinstance(given, Mapping):
        by_name = given
    elif isinstance(given, Sequence):
        by_name = {getattr(one, "name", str(one)): one for one in given}
    if not by_name or not all(callable(o) or isinstance(o, Objective) for o in by_name.values()):
        raise ConfigurationError(
            "`objectives` must be functions of outputs and targets by name, or objectives, found "
            f"{given!r}: try {{'cost': lambda outputs, targets: ...}}"
        )
    if len(by_name) < 2:
        raise ConfigurationError(
            f"`objectives` must be at least two, found {len(by_name)}: give another"
        )
    return tuple(_Wrapped(name, copy.copy(own), numbers) for name, own in by_name.items())


def _in_unit(metric: Metric, targets: Sequence[Numbers]) -> Metric:
    """A metric of numbers, given them standardised; of classes, as it is."""
    if not targets:
        return metric
    by_name = {target.name: target for target in targets}

    def back(name: str, values: Tensor) -> Tensor:
        return values * by_name[name].scale + by_name[name].mean

    def measured(outputs: Outputs, truth: Targets) -> Tensor:
        plain: Outputs = (
            {name: back(name, part) for name, part in outputs.items()}
            if isinstance(outputs, Mapping)
            else back(LABEL, outputs)
        )
        return metric(plain, {k: back(k, t) if k in by_name else t for k, t in truth.items()})

    return measured


def _flat(metric: Metric) -> Metric:
    """A metric that gets one number per sample as ``[B]``: minus ``[B]``, ``[B, 1]`` is a trap."""

    def squeezed(part: Tensor) -> Tensor:
        return part.squeeze(-1) if part.ndim > 1 and part.shape[-1] == 1 else part

    return lambda outputs, targets: metric(map_tensors(squeezed, outputs), targets)
