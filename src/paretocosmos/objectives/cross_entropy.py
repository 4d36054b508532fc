"""Cross-entropy over classes."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor

from paretocosmos.errors import ConfigurationError
from paretocosmos.objectives._base import pick
from paretocosmos.objectives._labels import (
    LabelMean,
    Parts,
    as_class_weight,
    check_smoothing,
    sample_weights,
)
from paretocosmos.objectives._shapes import check_axis, classes_last
from paretocosmos.types import Measure, Outputs, Targets

__all__ = ["CrossEntropy"]


@dataclass(kw_only=True, eq=False, repr=False)
class CrossEntropy(LabelMean):
    """Cross-entropy of class logits ``[B, K]`` with labels ``[B]``, averaged over all labels.

    Dense labels ``[B, ...]`` take logits with the classes second, ``[B, K, ...]``, as torch has
    them, or last, ``[B, ..., K]``, as language models give them.

    Args:
        name: how fronts call it; the file's name by default.
        output: which head it reads, where the network has several.
        target: the label.
        axis: of the classes, 1 or -1; the one that fits the labels if `None`.
        ignore_index: the label that means there is none; such samples or pixels count for nothing.
        class_weight: what each class counts for, as in `torch.nn.CrossEntropyLoss`.
        label_smoothing: the share of the label that is spread over all classes.
        weight: the target that says what each sample counts for, where there is one of that name.

    >>> import torch
    >>> CrossEntropy().loss(torch.zeros(4, 2), {"label": torch.tensor([0, 1, 1, 0])})
    tensor(0.6931)
    """

    measure = Measure(
        "loss (cross-entropy)",
        "fewer and less confident mistakes",
        "How far the predicted probabilities are from the truth: a confident mistake costs most.",
    )

    axis: int | None = None
    ignore_index: int | None = None
    class_weight: Sequence[float] | None = None
    label_smoothing: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_axis(self.axis)
        self.class_weight = as_class_weight(self.class_weight)
        check_smoothing(self.label_smoothing)

    @property
    def missing(self) -> float | None:
        return self.ignore_index

    def parts(self, outputs: Outputs, targets: Targets) -> Parts:
        labels, logits = targets[self.target].long(), self._logits(outputs, targets)
        # not F.cross_entropy, which under vmap asks twice for labels to ignore: on a GPU half of
        # the kernels of a small network's loss
        logarithms = F.log_softmax(logits, dim=-1)
        known = None if self.ignore_index is None else labels != self.ignore_index
        if known is not None:
            labels = labels.where(known, 0)
        each, own = -logarithms.gather(-1, labels.unsqueeze(-1)).squeeze(-1), None
        spread = logarithms
        if self.class_weight is not None:
            of_class = self._of_class(logarithms)
            own, spread = of_class[labels], logarithms * of_class
            each = each * own
        if self.label_smoothing:
            each = each - self.label_smoothing * (each + spread.mean(dim=-1))
        return Parts(each, known, sample_weights(each, targets, self.weight), own)

    def classes(self, outputs: Outputs, targets: Targets) -> int:
        """How many classes a network tells apart, given its outputs for some targets."""
        return self._logits(outputs, targets).shape[-1]

    def _logits(self, outputs: Outputs, targets: Targets) -> Tensor:
        output, labels = pick(outputs, self.output), targets[self.target]
        return classes_last(output, labels, self.axis, self.target)

    def _of_class(self, logarithms: Tensor) -> Tensor:
        assert self.class_weight is not None
        classes = logarithms.shape[-1]
        if len(self.class_weight) != classes:
            raise ConfigurationError(
                f"`class_weight` of `{self.name}` must have one number for each of the {classes} "
                f"classes, found {len(self.class_weight)}"
            )
        return logarithms.new_tensor(self.class_weight)
