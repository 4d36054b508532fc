"""Objectives of an estimator: the policy of tables, the caller's own, and units of a target."""

import copy
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from paretocosmos.config.plan import keeps_promise
from paretocosmos.errors import ConfigurationError, check_choice
from paretocosmos.estimators.targets import LABEL, Classes, Numbers
from paretocosmos.objectives import (
    GroupObjective,
    MeanAbsoluteError,
    MeanSquaredError,
    Objective,
    accuracy,
    calibration_error,
    decides,
    fairness_objective,
    fairness_objectives,
    largest_share,
    logits_of,
    recall,
    weighted_mean,
)
from paretocosmos.problems.tables import (
    build_decision_metrics,
    build_gap,
    build_loss,
    build_objectives,
)
from paretocosmos.types import Metric, Outputs, Targets, map_tensors

OwnObjective = Callable[[Any, Any], Tensor] | Objective
"""An objective of the caller's: a function of outputs and targets that gives one number."""

GivenObjectives = Mapping[str, OwnObjective] | Sequence[Objective]
"""Several of them, by name; or objectives, which have names."""

POWERS = {"squared": 2, "absolute": 1}


class InUnit(Objective):
    """An objective of standardised numbers, whose score is in the unit of the target.

    Args:
        inner: the objective.
        scale: the target's deviation.
    """

    per_head = False  # it reads what another objective reads

    def __init__(self, inner: Objective, scale: float) -> None:
        super().__init__(name=inner.name, output=inner.output, target=inner.target)
        self.wrapped, self.traceable = inner, keeps_promise(inner)
        self.inner, self.factor = inner, inner.unit(scale)

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        return self.inner.loss(outputs, targets)

    def score(self, outputs: Outputs, targets: Targets) -> Tensor:
        return self.inner.score(outputs, targets) * self.factor

    def moments(self, outputs: Outputs, targets: Targets) -> Tensor | None:
        moments = self.inner.moments(outputs, targets)
        # of sums, of sums of squares, and of counts
        unit = torch.tensor([self.factor, self.factor**2, 1.0], dtype=torch.float64)
        return None if moments is None else moments * unit.to(moments.device)


class _WrappedObjective(Objective):
    """An objective of the caller's, which sees numbers in the targets' unit, ``[B]`` each."""

    per_head = False  # it reads what another objective reads

    def __init__(self, name: str, own: OwnObjective, numbers: Sequence[Numbers]) -> None:
        super().__init__(name=name)
        # it may branch on values in Python, which tracing would freeze
        self.wrapped, self.traceable = own, keeps_promise(own)
        loss, score = (own.loss, own.score) if isinstance(own, Objective) else (own, own)
        self.decides = decides(score)
        self._loss, self._score = (_wrap_metric(f, name, numbers) for f in (loss, score))

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        return self._loss(outputs, targets)

    def score(self, outputs: Outputs, targets: Targets) -> Tensor:
        return self._score(outputs, targets)


def wrap_objectives(
    objectives: GivenObjectives, numbers: Sequence[Numbers]
) -> tuple[Objective, ...]:
    """Return the caller's objectives as a training takes them.

    Args:
        objectives: the estimator's argument.
        numbers: the targets of a regressor; none for a classifier.
    """
    by_name: Mapping[str, OwnObjective] = {}
    if isinstance(objectives, Mapping):
        by_name = objectives
    elif isinstance(objectives, Sequence):
        by_name = {getattr(own, "name", str(own)): own for own in objectives}
    if not by_name or not all(callable(o) or isinstance(o, Objective) for o in by_name.values()):
        raise ConfigurationError(
            "`objectives` must be functions of outputs and targets by name, or objectives, found "
            f"{objectives!r}: try {{'cost': lambda outputs, targets: ...}}"
        )
    if len(by_name) < 2:
        raise ConfigurationError(
            f"`objectives` must be at least two, found {len(by_name)}: give another"
        )
    return tuple(_WrappedObjective(n, copy.copy(own), numbers) for n, own in by_name.items())


def _wrap_metric(metric: Metric, name: str, numbers: Sequence[Numbers]) -> Metric:
    """Return a metric that is given what its author expects, and checked.

    One number per sample comes as ``[B]``, since ``[B]`` minus ``[B, 1]`` is ``[B, B]``; numbers
    come in their unit; the result must be one number.
    """
    by_name = {target.name: target for target in numbers}

    def squeeze(values: Tensor) -> Tensor:
        return values.squeeze(-1) if values.ndim > 1 and values.shape[-1] == 1 else values

    def restore_unit(key: str, values: Tensor) -> Tensor:
        target = by_name.get(key)
        return values if target is None else values * target.scale + target.mean

    def compute(outputs: Outputs, targets: Targets) -> Tensor:
        heads = {LABEL: outputs} if isinstance(outputs, Tensor) else outputs
        if by_name:
            heads = {key: restore_unit(key, head) for key, head in heads.items()}
        plain = heads[LABEL] if isinstance(outputs, Tensor) else heads
        truth = {key: restore_unit(key, values) for key, values in targets.items()}
        result = metric(map_tensors(squeeze, plain), truth)
        if not isinstance(result, Tensor) or result.ndim:
            shape = f"shape {tuple(result.shape)}" if isinstance(result, Tensor) else repr(result)
            raise ConfigurationError(
                f"the objective `{name}` must return one number for all rows, as a tensor, "
                f"found {shape}: take the mean"
            )
        return result

    return compute


def build_class_objectives(
    targets: Sequence[Classes], groups: int, fairness: str | type[GroupObjective]
) -> tuple[Objective, ...]:
    """Return a classifier's objectives: loss and gap, a loss per target, or a loss per class.

    Args:
        targets: what is predicted.
        groups: how many groups of people there are, 0 if they are not known.
        fairness: the gap, by name or its class.
    """
    # looked up even without groups: a name that is misspelt is refused in any case
    kind = fairness_objective(fairness, "classes", "`fairness` of a classifier")
    if len(targets) > 1:
        return tuple(build_loss(t.answer, head=t.name) for t in targets)
    (target,) = targets
    gap = build_gap(kind, groups) if groups else None
    return build_objectives(target.answer, gap, classes=list(target.classes), shares=target.shares)


def build_class_metrics(targets: Sequence[Classes], groups: int) -> dict[str, Metric]:
    """Return the further numbers of a classifier's front."""
    metrics: dict[str, Metric] = {}
    if len(targets) > 1:
        for target in targets:
            name = target.name
            metrics[f"accuracy_{name}"] = partial(accuracy, output=name, target=name)
            metrics[f"largest_share_{name}"] = partial(largest_share, output=name)
        return metrics
    (target,) = targets
    metrics |= build_decision_metrics(target.answer, groups)
    if not groups:
        for code, label in enumerate(target.classes):
            metrics[f"recall_{label}"] = partial(recall, of=code)
    return (
        metrics if len(target.classes) > 2 else metrics | {"calibration_error": calibration_error}
    )


def build_number_objectives(
    targets: Sequence[Numbers], groups: int, fairness: str | type[GroupObjective], loss: str
) -> tuple[Objective, ...]:
    """Return a regressor's objectives: loss and gap, a loss per target, or too high and too low.

    Args:
        targets: what is predicted.
        groups: how many groups of people there are, 0 if they are not known.
        fairness: the gap, by name or its class; one that takes a `power` gets the loss's.
        loss: ``"squared"`` or ``"absolute"``.
    """
    kind = fairness_objective(fairness, "numbers", "`fairness` of a regressor")
    power = _get_power(loss)
    if len(targets) > 1:
        return tuple(
            InUnit(build_loss(t.answer, power=power, head=t.name), t.scale) for t in targets
        )
    (target,) = targets
    gap = build_gap(kind, groups, power) if groups else None
    objectives = build_objectives(target.answer, gap, power=power)
    return tuple(InUnit(objective, target.scale) for objective in objectives)


def build_number_metrics(targets: Sequence[Numbers], groups: int, loss: str) -> dict[str, Metric]:
    """Return the further numbers of a regressor's front, in the targets' units."""
    metrics: dict[str, Metric] = {}
    for target in targets:
        single, scale = len(targets) == 1, target.scale
        output, label = (None, LABEL) if single else (target.name, target.name)
        suffix = "" if single else f"_{target.name}"
        squared = MeanSquaredError(output=output, target=label)
        absolute = MeanAbsoluteError(output=output, target=label)
        metrics[f"rmse{suffix}"] = partial(_compute_root, objective=InUnit(squared, scale))
        metrics[f"mae{suffix}"] = InUnit(absolute, scale).score
        metrics[f"bias{suffix}"] = partial(_compute_bias, output=output, target=label, scale=scale)
        metrics[f"over_rate{suffix}"] = partial(_compute_over_rate, output=output, target=label)
    if groups and len(targets) == 1:
        for name, gap in fairness_objectives("numbers").items():
            # both gaps, whichever of them is traded
            objective = build_gap(gap, groups, _get_power(loss))
            metrics[name] = InUnit(objective, targets[0].scale).score
    return metrics


def _get_power(loss: str) -> int:
    check_choice("`loss`", loss, POWERS)
    return POWERS[loss]


def _compute_root(outputs: Outputs, targets: Targets, *, objective: Objective) -> Tensor:
    """Compute the square root of a score: RMSE from the mean squared error."""
    return objective.score(outputs, targets).sqrt()


def _compute_bias(
    outputs: Outputs, targets: Targets, *, output: str | None, target: str, scale: float
) -> Tensor:
    """Compute how far predictions lie above the targets, in the mean."""
    predicted = logits_of(outputs, output)
    return weighted_mean(predicted - targets[target].reshape(predicted.shape), targets) * scale


def _compute_over_rate(
    outputs: Outputs, targets: Targets, *, output: str | None, target: str
) -> Tensor:
    """Compute the share of samples predicted above their target."""
    predicted = logits_of(outputs, output)
    over = predicted > targets[target].reshape(predicted.shape)
    return weighted_mean(over.to(predicted.dtype), targets)
