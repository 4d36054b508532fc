"""The policy of tables and estimators: what is traded, and what else their fronts report."""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from paretocosmos.objectives import (
    BinaryCrossEntropy,
    ClassLoss,
    CrossEntropy,
    DemographicParity,
    ErrorGap,
    GroupObjective,
    MeanAbsoluteError,
    MeanSquaredError,
    Measure,
    Objective,
    OneSidedError,
    TprGap,
    accuracy,
    calibration_error,
    deciding,
    fairness_objective,
    fairness_objectives,
    logits_of,
    misclassification,
    pick,
    weighted_mean,
)
from paretocosmos.problems.base import CROSS_ENTROPY, Wording
from paretocosmos.problems.tables.groups import Grouping
from paretocosmos.problems.tables.targets import Answer
from paretocosmos.registry import parameters
from paretocosmos.types import Metric, Outputs, Targets

DEFAULT_GAPS = {"classes": "tpr_gap", "number": "error_gap"}


def build_loss(answer: Answer, *, power: int = 2, head: str | None = None) -> Objective:
    """Return the loss of a target: a cross-entropy, or an error of numbers.

    Args:
        answer: what is predicted.
        power: of a number's error: 2 for squared, 1 for absolute.
        head: the name of the target and of its head, if there are several.
    """
    names: dict[str, Any] = (
        {} if head is None else dict.fromkeys(("name", "output", "target"), head)
    )
    if answer.task == "number":
        return (MeanSquaredError if power == 2 else MeanAbsoluteError)(**names)
    return (BinaryCrossEntropy if answer.task == "binary" else CrossEntropy)(**names)


def find_gap(
    answer: Answer, fairness: str | type[GroupObjective] | None, what: str = "fairness objective"
) -> type[GroupObjective]:
    """Return the objective that compares groups; the usual one of the task if `None`.

    Args:
        answer: what is predicted.
        fairness: its name or class.
        what: what the setting is called in an error message.
    """
    number = answer.task == "number"
    fairness = fairness or DEFAULT_GAPS["number" if number else "classes"]
    return fairness_objective(fairness, "numbers" if number else "classes", what=what)


def build_gap(kind: type[GroupObjective], groups: int, power: int = 2) -> GroupObjective:
    """Build a gap between groups, of errors to some power if it takes one."""
    settings: dict[str, Any] = {"power": power} if "power" in parameters(kind) else {}
    return kind(groups=groups, **settings)


def build_objectives(
    answer: Answer,
    gap: GroupObjective | None,
    *,
    classes: Sequence[object] = (),
    shares: Sequence[float] = (),
    power: int = 2,
) -> tuple[Objective, ...]:
    """Return what is traded for one target: a loss and the gap between groups.

    Without groups, the loss of each class, or too high against too low predictions.

    Args:
        answer: what is predicted.
        gap: the gap between groups; `None` where none are compared.
        classes: the names of the classes, if no groups are compared.
        shares: of the classes among the rows to train on, likewise.
        power: of a number's error.
    """
    if gap is not None:
        return build_loss(answer, power=power), gap
    if answer.task == "number":
        return (
            OneSidedError(name="over_prediction", side="over", power=power),
            OneSidedError(name="under_prediction", side="under", power=power),
        )
    return tuple(
        ClassLoss(name=f"loss_{name}", of=code, share=share)
        for code, (name, share) in enumerate(zip(classes, shares, strict=True))
    )


def compute_shares(
    codes: npt.NDArray[Any], classes: int, weight: npt.NDArray[np.float64] | None = None
) -> tuple[float, ...]:
    """Return the share of every class among some rows."""
    counts = np.bincount(codes.astype(np.int64), weight, minlength=classes)
    return tuple((counts / counts.sum()).tolist())


def build_metrics(
    answer: Answer, grouping: Grouping | None, objectives: Sequence[Objective]
) -> dict[str, Metric]:
    """Return the further numbers of a front; of several sensitive columns, the gap by each too."""
    metrics: dict[str, Metric] = {}
    groups = 0 if grouping is None else len(grouping.names)
    if answer.task == "number":
        metrics["rmse"] = partial(_rmse, scale=answer.scale)
        metrics["mae"] = partial(_scaled, of=MeanAbsoluteError(), by=answer.scale)
        for name, kind in fairness_objectives("numbers").items() if groups else ():
            gap = kind(groups=groups)
            metrics[f"{name}_in_units"] = partial(_scaled, of=gap, by=gap.unit(answer.scale))
        return metrics
    metrics |= {"accuracy": accuracy, "misclassification": misclassification}
    if answer.task == "binary" and grouping is not None:
        metrics["tpr_gap"] = TprGap(groups=groups).score
        metrics["demographic_parity"] = DemographicParity(groups=groups).score
        metrics["positive_rate"] = positive_rate
        for code, group in enumerate(grouping.names):
            metrics[f"selection_rate_{group}"] = partial(selection_rate, group=code)
        metrics["calibration_error"] = calibration_error
    else:
        for code, name in enumerate(answer.classes):
            metrics[f"recall_{name}"] = partial(recall, of=code)
        if answer.task == "binary":
            metrics["positive_rate"] = positive_rate
        else:
            metrics["largest_share"] = largest_share
    if grouping is not None and len(grouping.attributes) > 1:
        compared = type(objectives[-1])
        assert issubclass(compared, GroupObjective)
        for attribute in grouping.attributes:
            alone = compared(groups=len(attribute.labels), sensitive=f"sensitive_{attribute.name}")
            metrics[f"{alone.name}_{attribute.name}"] = alone.score
    traded = [objective.name for objective in objectives]
    return {name: metric for name, metric in metrics.items() if name not in traded}


def get_reference(objective: Objective, answer: Answer) -> float:
    """Return twice what a network without weights reaches, at least 2."""
    losses = isinstance(objective, CrossEntropy | ClassLoss)
    return max(2.0, round(2 * math.log(answer.outputs), 2)) if losses else 2.0


def build_wording(answer: Answer, objectives: Sequence[Objective]) -> Wording:
    """Describe what is traded where it is not a loss against a gap between rates."""
    names = {objective.name for objective in objectives}
    measures = {
        "over_prediction": Measure(
            "predictions that are too high",
            "fewer predictions that are too high",
            "By how much, on average.",
        ),
        "under_prediction": Measure(
            "predictions that are too low",
            "fewer predictions that are too low",
            "By how much, on average.",
        ),
    }
    if any(isinstance(one, ErrorGap) and one.power == 2 for one in objectives):
        squared = Measure(
            "gap in squared errors",
            "a smaller gap in squared errors",
            "The mean squared error of a group, largest minus smallest over the groups.",
        )
        measures |= {"error_gap": squared, "error_gap_in_units": squared}
    instead = {}
    for name in answer.classes:
        measures[f"recall_{name}"] = recalled = Measure(
            f"“{name}” that are found",
            f"fewer missed “{name}”",
            f"Of the rows that are “{name}”, the share that is predicted as such.",
            "of 100",
            larger=True,
        )
        if f"loss_{name}" in names:
            measures[f"loss_{name}"] = Measure(f"loss on “{name}”", recalled.goal, CROSS_ENTROPY)
            instead[f"loss_{name}"] = f"recall_{name}"
    return Wording(measures=measures, instead=instead)


@deciding
def positive_rate(outputs: Outputs, targets: Targets) -> Tensor:
    """Return the share of samples predicted positive: 0 or 1 means a constant classifier.

    >>> import torch
    >>> positive_rate(torch.tensor([1.0, -1.0, 2.0, 3.0]), {})
    tensor(0.7500, dtype=torch.float64)
    """
    return weighted_mean((logits_of(outputs, None) > 0).double(), targets)


@deciding
def selection_rate(outputs: Outputs, targets: Targets, *, group: int) -> Tensor:
    """Return the share of a group that is predicted positive; NaN where nobody is of that group.

    >>> import torch
    >>> targets = {"sensitive": torch.tensor([0, 0, 1, 1])}
    >>> selection_rate(torch.tensor([1.0, -1.0, 2.0, 3.0]), targets, group=0)
    tensor(0.5000, dtype=torch.float64)
    """
    chosen = (logits_of(outputs, None) > 0).double()
    member = (targets["sensitive"].reshape(chosen.shape) == group).double()
    if "weight" in targets:
        member = member * targets["weight"].reshape(chosen.shape)
    return (chosen * member).sum() / member.sum()


@deciding
def recall(outputs: Outputs, targets: Targets, *, of: int) -> Tensor:
    """Return the share of a class that is found; NaN where it is missing.

    >>> recall(torch.tensor([1.0, -1.0, 2.0]), {"label": torch.tensor([1.0, 1.0, 0.0])}, of=1)
    tensor(0.5000)
    """
    scores = logits_of(outputs, None)
    chosen = scores.argmax(dim=-1) == of if scores.ndim > 1 else (scores > 0) == bool(of)
    member = (targets["label"].reshape(chosen.shape) == of).to(scores.dtype)
    if "weight" in targets:
        member = member * targets["weight"]
    return (chosen * member).sum() / member.sum()


@deciding
def largest_share(outputs: Outputs, targets: Targets, *, output: str | None = None) -> Tensor:
    """Return the share of the class that is predicted most: 1 means a constant classifier.

    >>> largest_share(torch.eye(4)[:, :2], {})
    tensor(0.7500)
    """
    scores = pick(outputs, output)
    if scores.ndim == 1 or scores.shape[-1] == 1:  # one logit stands for two classes
        scores = torch.stack([-scores.flatten(), scores.flatten()], dim=-1)
    classes = torch.arange(scores.shape[-1], device=scores.device)
    chosen = (scores.argmax(dim=-1, keepdim=True) == classes).to(scores.dtype)
    return torch.stack([weighted_mean(column, targets) for column in chosen.unbind(-1)]).amax()


def _rmse(outputs: Outputs, targets: Targets, *, scale: float) -> Tensor:
    return MeanSquaredError().score(outputs, targets).sqrt() * scale


def _scaled(outputs: Outputs, targets: Targets, *, of: Objective, by: float) -> Tensor:
    return of.score(outputs, targets) * by
