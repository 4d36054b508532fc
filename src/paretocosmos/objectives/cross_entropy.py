"""Cross-entropy over classes."""

from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor

from paretocosmos.objectives._averages import weighted_mean, weighted_sums
from paretocosmos.objectives._base import Objective, pick
from paretocosmos.objectives._shapes import check_axis, classes_last
from paretocosmos.types import Measure, Outputs, Targets

__all__ = ["CrossEntropy"]


@dataclass(kw_only=True, eq=False, repr=False)
class CrossEntropy(Objective):
    """Cross-entropy of class logits ``[B, K]`` with labels ``[B]``, averaged over all labels.

    Dense labels ``[B, ...]`` take logits with the classes second, ``[B, K, ...]``, as torch has
    them, or last, ``[B, ..., K]``, as language models give them.

    Args:
        name: how fronts call it; the file's name by default.
        output: which head it reads, where the network has several.
        target: which target it compares with.
        axis: of the classes, 1 or -1; the one that fits the labels if `None`.

    >>> import torch
    >>> CrossEntropy().loss(torch.zeros(4, 2), {"label": torch.tensor([0, 1, 1, 0])})
    tensor(0.6931)
    """

    measure = Measure(
        "loss (cross-entropy)",
        "fewer and less certain mistakes",
        "How surprised the answers are by the truth: a sure mistake costs most.",
    )

    axis: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_axis(self.axis)

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        return weighted_mean(self._each(outputs, targets), targets)

    def sums(self, outputs: Outputs, targets: Targets) -> Tensor:
        return weighted_sums(self._each(outputs, targets), targets)

    def _each(self, outputs: Outputs, targets: Targets) -> Tensor:
        """Minus the logarithm of every label's probability."""
        labels = targets[self.target].long()
        logits = classes_last(pick(outputs, self.output), labels, self.axis, self.target)
        # not F.cross_entropy, which under vmap asks twice for labels to ignore: on a GPU half of
        # the kernels of a small network's loss
        logarithms = F.log_softmax(logits, dim=-1)
        return -logarithms.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
