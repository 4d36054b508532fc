"""Metrics that are reported but never trained on."""

from torch import Tensor

from paretocosmos.objectives._base import logits_of, pick, weighted_mean
from paretocosmos.types import Outputs, Targets

__all__ = ["accuracy", "misclassification"]


def accuracy(
    outputs: Outputs, targets: Targets, *, output: str | None = None, target: str = "label"
) -> Tensor:
    """The share of samples classified rightly.

    One logit per sample is a binary decision at 0; several are classes.
    """
    scores, truth = pick(outputs, output), targets[target]
    if scores.ndim == truth.ndim + 1 and scores.shape[-1] > 1:
        right = scores.argmax(dim=-1) == truth
    else:
        logits = logits_of(outputs, output)
        right = (logits > 0) == (truth.reshape(logits.shape) > 0.5)
    return weighted_mean(right.float(), targets)


def misclassification(
    outputs: Outputs, targets: Targets, *, output: str | None = None, target: str = "label"
) -> Tensor:
    """One minus the accuracy."""
    return 1 - accuracy(outputs, targets, output=output, target=target)
