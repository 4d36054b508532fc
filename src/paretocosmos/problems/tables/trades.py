"""What tables of classes or numbers trade, and the further numbers of their fronts."""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from paretocosmos.errors import DataError
from paretocosmos.objectives import (
    ClassLoss,
    CrossEntropy,
    GroupObjective,
    MeanAbsoluteError,
    MeanSquaredError,
    Objective,
    OneSidedError,
    accuracy,
    deciding,
    fairness_objective,
    fairness_objectives,
    logits_of,
    misclassification,
    pick,
    weighted_mean,
)
from paretocosmos.problems.tables.answers import Answer
from paretocosmos.problems.tables.groups import Grouping
from paretocosmos.problems.tables.tabular import positive_rate
from paretocosmos.types import Metric, Outputs, Targets

__all__ = ["largest_share", "metrics_of", "objectives_of", "recall", "reference_of"]


def objectives_of(
    answer: Answer,
    grouping: Grouping | None,
    fairness: str | None,
    label: npt.NDArray[Any],
) -> tuple[Objective, ...]:
    """What is traded.

    Args:
        answer: what is predicted.
        grouping: the groups that are compared, if any.
        fairness: the gap between them, by name; the usual one if `None`.
        label: of the rows to train on.
    """
    if answer.task == "number":
        if grouping is None:
            return (
                OneSidedError(name="over_prediction", side="over"),
                OneSidedError(name="under_prediction", side="under"),
            )
        gap = fairness_objective(fairness or "error_gap", "numbers", what="fairness objective")
        return MeanSquaredError(), gap(groups=len(grouping.names))
    if grouping is None:
        counts = np.bincount(label.astype(np.int64), minlength=len(answer.classes))
        if not counts.all():
            lost = answer.classes[int(counts.argmin())]
            raise DataError(f"no training row has the class `{lost}`: add some")
        return tuple(
            ClassLoss(name=f"loss_{one}", of=at, share=float(counts[at] / counts.sum()))
            for at, one in enumerate(answer.classes)
        )
    gap = fairness_objective(fairness or "tpr_gap", "classes", what="fairness objective")
    return CrossEntropy(), gap(groups=len(grouping.names))


def metrics_of(
    answer: Answer, grouping: Grouping | None, objectives: Sequence[Objective]
) -> dict[str, Metric]:
    """The further numbers of a front."""
    found: dict[str, Metric] = {}
    groups = 0 if grouping is None else len(grouping.names)
    if answer.task == "number":
        found["rmse"] = partial(_rmse, scale=answer.scale)
        found["mae"] = partial(_scaled, of=MeanAbsoluteError(), by=answer.scale)
        for name, kind in fairness_objectives("numbers").items() if groups else ():
            gap = kind(groups=groups)
            found[f"{name}_in_units"] = partial(_scaled, of=gap, by=gap.unit(answer.scale))
        return found
    found |= {"accuracy": accuracy, "misclassification": misclassification}
    found |= {f"recall_{one}": partial(recall, of=at) for at, one in enumerate(answer.classes)}
    found |= (
        {"positive_rate": positive_rate}
        if answer.task == "binary"
        else {"largest_share": largest_share}
    )
    if grouping is not None and len(grouping.attributes) > 1:
        compared = type(objectives[-1])
        assert issubclass(compared, GroupObjective)
        for one in grouping.attributes:
            alone = compared(groups=len(one.labels), sensitive=f"sensitive_{one.name}")
            found[f"{alone.name}_{one.name}"] = alone.score
    return found


def reference_of(objective: Objective, answer: Answer) -> float:
    """Twice what a network without weights reaches, at least 2."""
    losses = isinstance(objective, CrossEntropy | ClassLoss)
    return max(2.0, round(2 * math.log(answer.outputs), 2)) if losses else 2.0


@deciding
def recall(outputs: Outputs, targets: Targets, *, of: int) -> Tensor:
    """The share of a class that is found; NaN where it is missing.

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
    """The share of samples predicted as the class predicted most: 1 betrays a constant one.

    >>> largest_share(torch.eye(4)[:, :2], {})
    tensor(0.7500)
    """
    scores = pick(outputs, output)
    if scores.ndim == 1 or scores.shape[-1] == 1:  # one logit stands for two classes
        scores = torch.stack([-scores.flatten(), scores.flatten()], dim=-1)
    classes = torch.arange(scores.shape[-1], device=scores.device)
    chosen = (scores.argmax(dim=-1, keepdim=True) == classes).to(scores.dtype)
    return torch.stack([weighted_mean(one, targets) for one in chosen.unbind(-1)]).amax()


def _rmse(outputs: Outputs, targets: Targets, *, scale: float) -> Tensor:
    return MeanSquaredError().score(outputs, targets).sqrt() * scale


def _scaled(outputs: Outputs, targets: Targets, *, of: Objective, by: float) -> Tensor:
    return of.score(outputs, targets) * by
