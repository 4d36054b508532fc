"""Metrics that are reported but never trained on, what is known of them, and their words."""

import dataclasses
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from paretocosmos import registry
from paretocosmos.objectives.base import (
    Objective,
    align,
    classes_last,
    logits_of,
    mean_of,
    pick,
    weighted_mean,
    weighted_sums,
)
from paretocosmos.types import Measure, Metric, Outputs, Targets

Declared = TypeVar("Declared", bound=Callable[..., Any])

# Methods that change the score where a subclass overrides them; its `sums` must follow.
HOOKS = ("score", "decided", "rates")


class Streamed(NamedTuple):
    """A number in two steps.

    Attributes:
        sums: of outputs and targets, a tensor that samples add to.
        finish: from the sums of a whole split to the number.
    """

    sums: Metric
    finish: Callable[[Tensor], Tensor]


def streaming(
    sums: Callable[..., Tensor], finish: Callable[[Tensor], Tensor] = mean_of
) -> Callable[[Declared], Declared]:
    """Declare that a metric adds up over samples.

    Args:
        sums: takes what the metric takes, and gives a tensor of fixed shape that samples add to.
        finish: makes the number of it; by default the mean, of a total and a weight ``[2]``.

    >>> import torch
    >>> @streaming(lambda outputs, targets: torch.stack([outputs.sum(), outputs.new_tensor(2.0)]))
    ... def half(outputs, targets):
    ...     return outputs.sum() / 2
    >>> streamed(half).sums(torch.ones(4), {})
    tensor([4., 2.])
    """

    def declared(metric: Declared) -> Declared:
        vars(metric)["streamed"] = Streamed(sums, finish)
        return metric

    return declared


def streamed(metric: Callable[..., Any]) -> Streamed | None:
    """Return the declared sums of a metric or of the score of an objective; `None` without any.

    An objective says so with `sums`; a subclass with a score of its own declares it anew.

    >>> from paretocosmos.objectives import accuracy, roc_auc
    >>> streamed(accuracy) is None, streamed(roc_auc) is None
    (False, True)
    """
    if isinstance(metric, partial):
        inner = streamed(metric.func)
        if inner is None:
            return None
        # a partial adds up as its metric does, with the same arguments
        return Streamed(partial(inner.sums, *metric.args, **metric.keywords), inner.finish)
    owner = getattr(metric, "__self__", None)
    # `!=`, since each access to a method binds it anew
    if not isinstance(owner, Objective) or metric != owner.score:
        declared: Streamed | None = getattr(metric, "streamed", None)
        return declared
    # the inherited score is the loss, so a new loss changes it too
    of_loss = type(owner).score is Objective.score
    # the most derived class that touches the score decides, as Python looks names up
    for holder in (owner, *type(owner).__mro__):
        attributes = vars(holder)
        if holder is Objective:
            return None
        if "sums" in attributes:
            return Streamed(owner.sums, owner.from_sums)  # type: ignore[arg-type]
        if any(hook in attributes for hook in HOOKS) or (of_loss and "loss" in attributes):
            return None
    return None


def deciding(metric: Declared) -> Declared:
    """Declare that a metric is of decisions: of one logit per sample it reads ``logit > 0`` alone.

    So it can be had at another threshold, by moving the logits. What reads probabilities, as a
    cross-entropy or a calibration error, must not be declared so.
    """
    vars(metric)["decides"] = True
    return metric


def decides(metric: Callable[..., Any]) -> bool:
    """Return True if a metric, or the score of an objective, is declared to be of decisions.

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
        attributes = vars(holder)
        if "decides" in attributes or "score" in attributes:
            return bool(attributes.get("decides", False))
    return False


# Bins of a calibration error: the usual number (Guo et al. 2017), of equal mass.
BINS = 15


def _count_right(
    outputs: Outputs,
    targets: Targets,
    *,
    output: str | None = None,
    target: str = "label",
    axis: int | None = None,
) -> Tensor:
    """Return the weight of the right answers, and of all: ``[2]``."""
    scores, truth = pick(outputs, output), targets[target]
    # `[B, 1]` for labels `[B]` is one logit, not a single class
    if scores.ndim == truth.ndim + 1 and scores.numel() > truth.numel():
        right = classes_last(scores, truth, axis, target).argmax(dim=-1) == truth
    else:
        logits = logits_of(outputs, output)
        right = (logits > 0) == (align(truth, logits, target) > 0.5)
    # float64, since float32 counts only to 16 million
    return weighted_sums(right.double(), targets)


@deciding
@streaming(_count_right)
def accuracy(
    outputs: Outputs,
    targets: Targets,
    *,
    output: str | None = None,
    target: str = "label",
    axis: int | None = None,
) -> Tensor:
    """Compute the share of samples that are classified correctly.

    One logit per sample is a binary decision at 0; several are classes, on the second axis or on
    the last: `axis` says which where both would fit.
    """
    return mean_of(_count_right(outputs, targets, output=output, target=target, axis=axis))


@deciding
@streaming(_count_right, lambda sums: 1 - mean_of(sums))
def misclassification(outputs: Outputs, targets: Targets, **settings: Any) -> Tensor:
    """Compute one minus the accuracy, with the settings of that."""
    return 1 - accuracy(outputs, targets, **settings)


def roc_auc(
    outputs: Outputs, targets: Targets, *, output: str | None = None, target: str = "label"
) -> Tensor:
    """Compute the area under the ROC curve of one logit per sample; NaN where a class is missing.

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
        torch.zeros_like(mass).scatter_add(0, step, mass.gather(0, order))
        for mass in (positive * weight, (1 - positive) * weight)
    )
    # half of the negatives in the same step are below
    below = right.cumsum(0) - right / 2
    # Mann and Whitney's U, divided by the number of pairs
    area = (up * below).sum() / (up.sum() * right.sum())
    # sorting puts NaN last, as if it were a certain positive
    return torch.where(logits.isnan().any(), torch.nan, area).to(logits.dtype)


def calibration_error(
    outputs: Outputs, targets: Targets, *, output: str | None = None, target: str = "label"
) -> Tensor:
    r"""Compute the mean distance of predicted probabilities from observed frequencies.

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
    # of cumulative sums a bin is a difference; that of an empty one is 0
    return torch.cat([sums[:1], sums.diff()]).abs().sum() / total


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
    # a masked sum: vmap and captured steps allow no selection by a mask
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
def balanced_accuracy(outputs: Outputs, targets: Targets) -> Tensor:
    """Return the mean over the classes of the share that is found; NaN where a class is missing.

    >>> targets = {"label": torch.tensor([1.0, 1.0, 0.0])}
    >>> balanced_accuracy(torch.tensor([1.0, -1.0, -2.0]), targets)
    tensor(0.7500)
    """
    scores = logits_of(outputs, None)
    classes = scores.shape[-1] if scores.ndim > 1 else 2
    return torch.stack([recall(outputs, targets, of=code) for code in range(classes)]).mean()


@deciding
def mistakes(outputs: Outputs, targets: Targets, *, of: int) -> Tensor:
    """Return the share of all samples that are of one of two classes and taken for the other.

    >>> targets = {"label": torch.tensor([1.0, 1.0, 0.0, 0.0])}
    >>> mistakes(torch.tensor([1.0, -1.0, -1.0, -2.0]), targets, of=1)
    tensor(0.2500, dtype=torch.float64)
    """
    logits = logits_of(outputs, None)
    member = targets["label"].reshape(logits.shape) == of
    return weighted_mean((member & ((logits > 0) != bool(of))).double(), targets)


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


_SHARE: Mapping[str, Measure] = {
    "accuracy": Measure(
        "right answers", "more right answers", "The share of right answers.", "of 100", True
    ),
    "misclassification": Measure(
        "wrong answers", "fewer wrong answers", "The share of wrong answers.", "of 100"
    ),
    "positive_rate": Measure(
        "selected", "", "The share of all rows that get the positive answer.", "of 100"
    ),
    "selection_rate": Measure(
        "selected", "", "The share of a group that gets the positive answer.", "of 100"
    ),
    "recall": Measure(
        "found", "", "Of those who belong to a class, the share that is found.", "of 100", True
    ),
    "balanced_accuracy": Measure(
        "right answers, all classes alike",
        "",
        "The share of a class that is found, averaged over the classes.",
        "of 100",
        True,
    ),
    "false_positives": Measure(
        "wrongly selected", "", "The share of rows that wrongly get the positive answer.", "of 100"
    ),
    "false_negatives": Measure(
        "missed", "", "The share of rows that wrongly get the negative answer.", "of 100"
    ),
    "lowest_tpr": Measure(
        "found in the group where fewest are",
        "",
        "Of the positives of a group, the share that is found: the lowest over the groups.",
        "of 100",
        True,
    ),
    "largest_share": Measure(
        "given the most common answer",
        "",
        "The share of rows that get the most common answer; at 100 of 100 everybody gets the same.",
        "of 100",
    ),
    "calibration_error": Measure(
        "calibration error",
        "",
        "How far the predicted probabilities lie from what happens, on average.",
        "points",
    ),
    "roc_auc": Measure(
        "area under the ROC curve",
        "",
        "The chance that a positive row is scored above a negative one.",
        larger=True,
    ),
    "rmse": Measure(
        "typical error (root mean square)",
        "a smaller typical error",
        "The square root of the mean squared error, in the unit of what is predicted.",
    ),
    "mae": Measure(
        "average error",
        "a smaller average error",
        "The average distance of a prediction from the truth, in the unit of what is predicted.",
    ),
}


def measure_of(name: str) -> Measure:
    """Return the words for an objective or a metric, by its name in a front.

    The rest of a name, as in ``accuracy_top_left``, is appended to the label; an unknown name is
    its own label.

    >>> measure_of("demographic_parity").unit, measure_of("accuracy_top_left").label
    ('points', 'right answers, top left')
    """
    if name in registry.names("objectives"):
        kind = registry.find("objectives", name)
        measure: Measure = getattr(kind, "measure", None) or Measure(name.replace("_", " "))
        meaning = measure.meaning or str(getattr(kind, "meaning", ""))
        return dataclasses.replace(measure, meaning=sentence(meaning))
    # heads and groups are appended to a metric's name, as in `accuracy_left`
    for prefix, measure in _SHARE.items():
        if name == prefix:
            return measure
        if name.startswith(f"{prefix}_"):
            member = name.removeprefix(f"{prefix}_").replace("_", " ")
            return dataclasses.replace(measure, label=f"{measure.label}, {member}", goal="")
    # tables report a gap between numbers twice: the second time in the target's own unit
    gap, _, rest = name.rpartition("_in_units")
    if gap and not rest and gap in registry.names("objectives"):
        return dataclasses.replace(measure_of(gap), unit="")
    return Measure(name.replace("_", " "))


def named_label(name: str, measure: Measure) -> str:
    """Return the label of a number, and its name in commands if that differs.

    >>> named_label("accuracy", measure_of("accuracy"))
    'right answers (accuracy)'
    """
    label = measure.label
    return label if label.replace(" ", "_") == name else f"{label} ({name})"


def sentence(text: str) -> str:
    """Return a text with a capital letter and a full stop.

    >>> sentence("the share that is found")
    'The share that is found.'
    """
    text = text.strip()
    return f"{text[:1].upper()}{text[1:].rstrip('.')}." if text else ""
