"""Cross-entropy over classes."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor

from paretocosmos.errors import ConfigurationError
from paretocosmos.objectives._base import Objective, pick, weighted_mean
from paretocosmos.objectives._labels import (
    as_class_weight,
    check_smoothing,
    mean_over,
    sample_weights,
)
from paretocosmos.types import Measure, Outputs, Targets

__all__ = ["CrossEntropy"]


@dataclass(kw_only=True, eq=False, repr=False)
class CrossEntropy(Objective):
    """Cross-entropy of class logits ``[B, ..., K]`` with labels ``[B, ...]``.

    Args:
        name: how fronts call it; the file's name by default.
        output: which head it reads, where the network has several.
        target: the label.
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
        "fewer and less certain mistakes",
        "How surprised the answers are by the truth: a sure mistake costs most.",
    )

    ignore_index: int | None = None
    class_weight: Sequence[float] | None = None
    label_smoothing: float = 0.0
    weight: str = "weight"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.class_weight = as_class_weight(self.class_weight)
        check_smoothing(self.label_smoothing)

    @property
    def missing(self) -> float | None:
        return self.ignore_index

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        return self._mean(outputs, targets, empty=0.0)

    def score(self, outputs: Outputs, targets: Targets) -> Tensor:
        if self.missing is None:
            return self.loss(outputs, targets)
        return self._mean(outputs, targets, empty=float("nan"))

    def _mean(self, outputs: Outputs, targets: Targets, *, empty: float) -> Tensor:
        # not F.cross_entropy, which under vmap asks twice for labels to ignore: on a GPU half of
        # the kernels of a small network's loss
        logarithms = F.log_softmax(pick(outputs, self.output), dim=-1)
        labels = targets[self.target].long()
        if self._plain:
            each = logarithms.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
            return -weighted_mean(each, targets)
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
        weights = sample_weights(each, targets, self.weight)
        return mean_over(each, known, weights, counted=own, empty=empty)

    def _of_class(self, logarithms: Tensor) -> Tensor:
        assert self.class_weight is not None
        classes = logarithms.shape[-1]
        if len(self.class_weight) != classes:
            raise ConfigurationError(
                f"`class_weight` of `{self.name}` has one number for each of the {classes} "
                f"classes, found {len(self.class_weight)}"
            )
        return logarithms.new_tensor(self.class_weight)

    @property
    def _plain(self) -> bool:
        asked = self.ignore_index, self.class_weight
        return asked == (None, None) and not self.label_smoothing and self.weight == "weight"
