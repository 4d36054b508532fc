"""What an estimator trades: the policy of tables, the caller's objectives, units of a target."""

import copy
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from paretocosmos.config.promises import promised
from paretocosmos.errors import ConfigurationError, unknown
from paretocosmos.estimators.inputs import LABEL, Classes, Numbers
from paretocosmos.objectives import (
    GroupObjective,
    MeanAbsoluteError,
    MeanSquaredError,
    Objective,
    TprGap,
    accuracy,
    calibration_error,
    decides,
    fairness_objectives,
    logits_of,
    misclassification,
    weighted_mean,
)
from paretocosmos.problems.tables.policy import (
    build_gap,
    build_loss,
    build_objectives,
    find_gap,
    largest_share,
    positive_rate,
    recall,
)
from paretocosmos.types import Metric, Outputs, Targets, map_tensors

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


POWERS = {"squared": 2, "absolute": 1}


def class_trade(
    targets: Sequence[Classes], groups: int, fairness: str | type[GroupObjective]
) -> tuple[Objective, ...]:
    """A classifier's objectives: loss and gap, a loss per target, or a loss per class.

    Args:
        targets: what is predicted.
        groups: how many groups of people there are, 0 if they are not known.
        fairness: the gap, by name or its class.
    """
    kind = find_gap(targets[0].answer, fairness, "`fairness` of a classifier")
    if len(targets) > 1:
        return tuple(build_loss(t.answer, head=t.name) for t in targets)
    (target,) = targets
    gap = build_gap(kind, groups) if groups else None
    return build_objectives(target.answer, gap, classes=list(target.classes), shares=target.shares)


def class_metrics(targets: Sequence[Classes], groups: int) -> dict[str, Metric]:
    """What else a classifier's front tells."""
    if len(targets) > 1:
        every: dict[str, Metric] = {}
        for one in targets:
            every[f"accuracy_{one.name}"] = partial(accuracy, output=one.name, target=one.name)
            every[f"largest_share_{one.name}"] = partial(largest_share, output=one.name)
        return every
    (target,) = targets
    found: dict[str, Metric] = {"accuracy": accuracy, "misclassification": misclassification}
    if groups:
        found["tpr_gap"] = TprGap(groups=groups).score
    else:
        for place, name in enumerate(target.classes):
            found[f"recall_{name}"] = partial(recall, of=place)
    if len(target.classes) == 2:
        rates = {"positive_rate": positive_rate, "calibration_error": calibration_error}
        return found | rates
    return found | {"largest_share": largest_share}


def number_trade(
    targets: Sequence[Numbers], groups: int, fairness: str | type[GroupObjective], loss: str
) -> tuple[Objective, ...]:
    """A regressor's objectives: loss and gap, a loss per target, or too high and too low.

    Args:
        targets: what is predicted.
        groups: how many groups of people there are, 0 if they are not known.
        fairness: the gap, by name or its class; one that takes a `power` gets the loss's.
        loss: ``"squared"`` or ``"absolute"``.
    """
    kind = find_gap(targets[0].answer, fairness, "`fairness` of a regressor")
    power = _power(loss)
    if len(targets) > 1:
        return tuple(
            in_unit(build_loss(t.answer, power=power, head=t.name), t.scale) for t in targets
        )
    (target,) = targets
    gap = build_gap(kind, groups, power) if groups else None
    traded = build_objectives(target.answer, gap, power=power)
    return tuple(in_unit(objective, target.scale) for objective in traded)


def number_metrics(targets: Sequence[Numbers], groups: int, loss: str) -> dict[str, Metric]:
    """What else a regressor's front tells, in the targets' units."""
    found: dict[str, Metric] = {}
    for target in targets:
        alone, scale = len(targets) == 1, target.scale
        output, label = (None, LABEL) if alone else (target.name, target.name)
        end = "" if alone else f"_{target.name}"
        squared = MeanSquaredError(output=output, target=label)
        found[f"rmse{end}"] = partial(_root, of=in_unit(squared, scale))
        found[f"mae{end}"] = in_unit(MeanAbsoluteError(output=output, target=label), scale).score
        found[f"bias{end}"] = partial(_bias, output=output, target=label, unit=scale)
        found[f"over_rate{end}"] = partial(_over_rate, output=output, target=label)
    if groups and len(targets) == 1:
        for name, gap in fairness_objectives("numbers").items():
            found[name] = in_unit(build_gap(gap, groups, _power(loss)), targets[0].scale).score
    return found


def _power(loss: str) -> int:
    if loss not in POWERS:
        raise unknown("`loss`", loss, POWERS)
    return POWERS[loss]


def _root(outputs: Outputs, targets: Targets, *, of: Objective) -> Tensor:
    return of.score(outputs, targets).sqrt()


def _bias(
    outputs: Outputs, targets: Targets, *, output: str | None, target: str, unit: float
) -> Tensor:
    """How far predictions lie above the targets, in the mean."""
    predicted = logits_of(outputs, output)
    return weighted_mean(predicted - targets[target].reshape(predicted.shape), targets) * unit


def _over_rate(outputs: Outputs, targets: Targets, *, output: str | None, target: str) -> Tensor:
    """The share of samples predicted above their target."""
    predicted = logits_of(outputs, output)
    over = predicted > targets[target].reshape(predicted.shape)
    return weighted_mean(over.to(predicted.dtype), targets)
