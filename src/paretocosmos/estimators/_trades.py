"""What an estimator trades, and the further numbers of its front."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from torch import Tensor

from paretocosmos.errors import unknown
from paretocosmos.estimators._own import in_unit
from paretocosmos.estimators._targets import LABEL, Classes, Numbers
from paretocosmos.objectives import (
    BinaryCrossEntropy,
    ClassLoss,
    CrossEntropy,
    GroupObjective,
    MeanAbsoluteError,
    MeanSquaredError,
    Objective,
    OneSidedError,
    accuracy,
    calibration_error,
    fairness_objective,
    fairness_objectives,
    logits_of,
    misclassification,
    weighted_mean,
)
from paretocosmos.problems.tables.policy import largest_share, positive_rate, recall
from paretocosmos.registry import find, parameters
from paretocosmos.types import Metric, Outputs, Targets

__all__ = ["class_metrics", "class_trade", "number_metrics", "number_trade"]

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
    gap = fairness_objective(fairness, "classes", what="`fairness` of a classifier")
    if len(targets) > 1:
        return tuple(_loss(t)(name=t.name, output=t.name, target=t.name) for t in targets)
    (target,) = targets
    if groups:
        return _loss(target)(), gap(groups=groups)
    every = enumerate(zip(target.classes, target.shares, strict=True))
    return tuple(ClassLoss(name=f"loss_{c}", of=k, share=share) for k, (c, share) in every)


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
        found["tpr_gap"] = find("objectives", "tpr_gap")(groups=groups).score
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
    gap = fairness_objective(fairness, "numbers", what="`fairness` of a regressor")
    power = _power(loss)
    error = MeanSquaredError if power == 2 else MeanAbsoluteError
    if len(targets) > 1:
        errors = (error(name=t.name, output=t.name, target=t.name) for t in targets)
        return tuple(in_unit(e, t.scale) for e, t in zip(errors, targets, strict=True))
    scale = targets[0].scale
    if not groups:
        over = OneSidedError(name="over_prediction", side="over", power=power)
        under = OneSidedError(name="under_prediction", side="under", power=power)
        return in_unit(over, scale), in_unit(under, scale)
    return in_unit(error(), scale), in_unit(_gap_of(gap, groups, power), scale)


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
            found[name] = in_unit(_gap_of(gap, groups, _power(loss)), targets[0].scale).score
    return found


def _gap_of(kind: type[GroupObjective], groups: int, power: int) -> Objective:
    """A gap between groups, of errors to some power if it takes one."""
    given: dict[str, Any] = {"power": power} if "power" in parameters(kind) else {}
    return kind(groups=groups, **given)


def _power(loss: str) -> int:
    if loss not in POWERS:
        raise unknown("`loss`", loss, POWERS)
    return POWERS[loss]


def _loss(target: Classes) -> type[Objective]:
    return BinaryCrossEntropy if target.width == 1 else CrossEntropy


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
