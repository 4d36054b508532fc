"""Metrics that are reported but never trained on."""

import torch
from torch import Tensor

from paretocosmos.objectives._averages import weighted_sums
from paretocosmos.objectives._base import logits_of, mean_of, pick
from paretocosmos.objectives._deciding import deciding
from paretocosmos.objectives._shapes import aligned, classes_last
from paretocosmos.objectives._streaming import streaming
from paretocosmos.types import Outputs, Targets

# Of a calibration error: the usual number (Guo et al. 2017), of equal mass.
BINS = 15


def _right(
    outputs: Outputs,
    targets: Targets,
    *,
    output: str | None = None,
    target: str = "label",
    axis: int | None = None,
) -> Tensor:
    """How many labels are found, and how many there are: ``[2]``."""
    scores, truth = pick(outputs, output), targets[target]
    if scores.ndim == truth.ndim + 1 and scores.numel() > truth.numel():
        right = classes_last(scores, truth, axis, target).argmax(dim=-1) == truth
    else:
        logits = logits_of(outputs, output)
        right = (logits > 0) == (aligned(truth, logits, target) > 0.5)
    return weighted_sums(right.double(), targets)


@deciding
@streaming(_right)
def accuracy(
    outputs: Outputs,
    targets: Targets,
    *,
    output: str | None = None,
    target: str = "label",
    axis: int | None = None,
) -> Tensor:
    """The share of samples classified rightly.

    One logit per sample is a binary decision at 0; several are classes, on the second axis or on
    the last: `axis` says which where both would fit.
    """
    return mean_of(_right(outputs, targets, output=output, target=target, axis=axis))


@deciding
@streaming(_right, lambda sums: 1 - mean_of(sums))
def misclassification(
    outputs: Outputs,
    targets: Targets,
    *,
    output: str | None = None,
    target: str = "label",
    axis: int | None = None,
) -> Tensor:
    """One minus the accuracy."""
    return 1 - accuracy(outputs, targets, output=output, target=target, axis=axis)


def roc_auc(
    outputs: Outputs, targets: Targets, *, output: str | None = None, target: str = "label"
) -> Tensor:
    """The area under the ROC curve of one logit per sample; NaN where a class is missing.

    The chance that a positive sample has a higher logit than a negative one; equal logits count
    half. Weighted where the targets hold a ``weight``.

    >>> roc_auc(torch.tensor([0.1, 0.4, 0.35, 0.8]), {"label": torch.tensor([0, 0, 1, 1])})
    tensor(0.7500)
    """
    logits = logits_of(outputs, output)
    positive = (targets[target].reshape(logits.shape) > 0.5).double()
    weight = targets.get("weight")
    weight = torch.ones_like(positive) if weight is None else weight.reshape(logits.shape).double()
    ordered, order = logits.sort()
    # equal logits are one step of the curve: the number of each sample's
    changes = (ordered != ordered.roll(1)).long()
    step = changes.cumsum(0) - changes[:1]
    up, right = (
        torch.zeros_like(part).scatter_add(0, step, part.gather(0, order))
        for part in (positive * weight, (1 - positive) * weight)
    )
    below = right.cumsum(0) - right / 2
    area = (up * below).sum() / (up.sum() * right.sum())
    return torch.where(logits.isnan().any(), torch.nan, area).to(logits.dtype)


def calibration_error(
    outputs: Outputs, targets: Targets, *, output: str | None = None, target: str = "label"
) -> Tensor:
    r"""How far predicted probabilities of one logit per sample lie from what happens, in the mean.

    .. math:: \sum_{b=1}^{15} \frac{|\sum_{i \in b} (p_i - y_i)|}{n}

    over 15 bins of equally many samples, in the order of their probabilities (the expected
    calibration error). Equal probabilities share a bin. Weighted where the targets hold a
    ``weight``.

    >>> calibration_error(torch.zeros(4), {"label": torch.tensor([1.0, 0.0, 1.0, 1.0])})
    tensor(0.2500, dtype=torch.float64)
    """
    logits = logits_of(outputs, output)
    weight = targets.get("weight")
    weight = torch.ones_like(logits) if weight is None else weight.reshape(logits.shape)
    ordered, order = logits.double().sort()
    mass = weight.double().gather(0, order)
    truth = targets[target].reshape(logits.shape).double().gather(0, order)
    until = mass.cumsum(0)
    total = until[-1]
    # bins are runs of ordered samples: one begins at the first with at least its share before it
    shares = (torch.arange(1, BINS, device=logits.device) - 1e-9) * (total / BINS)
    last = torch.searchsorted(until, shares).clamp(max=len(order) - 1)
    # equal logits share a bin, so that a run ends with the last of them
    places = torch.arange(len(order), device=logits.device)
    ended = torch.cat([ordered[1:] != ordered[:-1], places[-1:] == places[-1:]])
    ends = torch.where(ended, places, len(order)).flip(0).cummin(0).values.flip(0)
    off = (mass * (ordered.sigmoid() - truth)).cumsum(0)
    sums = off.gather(0, torch.cat([ends.gather(0, last), places[-1:]]))
    return torch.cat([sums[:1], sums.diff()]).abs().sum() / total
