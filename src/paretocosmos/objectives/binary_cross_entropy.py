"""Binary cross-entropy on logits."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor

from paretocosmos.objectives._base import logits_of
from paretocosmos.objectives._labels import (
    LabelMean,
    Parts,
    as_class_weight,
    check_smoothing,
    known_numbers,
    sample_weights,
)
from paretocosmos.objectives._shapes import aligned
from paretocosmos.types import Measure, Outputs, Targets

__all__ = ["BinaryCrossEntropy"]


@dataclass(kw_only=True, eq=False, repr=False)
class BinaryCrossEntropy(LabelMean):
    """Binary cross-entropy of logits ``[B]`` or ``[B, 1]`` with labels in {0, 1}.

    Args:
        name: how fronts call it; the file's name by default.
        output: which head it reads, where the network has several.
        target: the label.
        ignore_nan: whether a label may be NaN, for samples that have none; they count for nothing.
        class_weight: what the negative and the positive class count for.
        label_smoothing: the share of the label that is spread over both classes.
        weight: the target that says what each sample counts for, where there is one of that name.

    >>> import torch
    >>> BinaryCrossEntropy().loss(torch.zeros(4), {"label": torch.tensor([0.0, 1.0, 1.0, 0.0])})
    tensor(0.6931)
    """

    measure = Measure(
        "loss (cross-entropy)",
        "fewer and less confident mistakes",
        "How far the predicted probabilities are from the truth: a confident mistake costs most.",
    )

    ignore_nan: bool = False
    class_weight: Sequence[float] | None = None
    label_smoothing: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.class_weight = as_class_weight(self.class_weight, classes=2)
        check_smoothing(self.label_smoothing)

    @property
    def missing(self) -> float | None:
        return float("nan") if self.ignore_nan else None

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        plain = self.class_weight is None and not (self.ignore_nan or self.label_smoothing)
        if plain and self.weight not in targets:
            return F.binary_cross_entropy_with_logits(*self._compared(outputs, targets))
        return super().loss(outputs, targets)

    def sums(self, outputs: Outputs, targets: Targets) -> Tensor:
        return super().sums(outputs, targets)  # of the loss above, too

    def parts(self, outputs: Outputs, targets: Targets) -> Parts:
        logits, label = self._compared(outputs, targets)
        label, known = known_numbers(label, self.ignore_nan)
        weights = sample_weights(logits, targets, self.weight)
        if self.class_weight is not None:
            negative, positive = self.class_weight
            own = negative + (positive - negative) * label
            weights = own if weights is None else own * weights
        if self.label_smoothing:
            label = label + self.label_smoothing * (0.5 - label)
        each = F.binary_cross_entropy_with_logits(logits, label, reduction="none")
        return Parts(each, known, weights)

    def _compared(self, outputs: Outputs, targets: Targets) -> tuple[Tensor, Tensor]:
        logits = logits_of(outputs, self.output)
        return logits, aligned(targets[self.target].to(logits.dtype), logits, self.target)
