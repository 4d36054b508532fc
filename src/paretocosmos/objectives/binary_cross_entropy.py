"""Binary cross-entropy on logits."""

import torch.nn.functional as F
from torch import Tensor

from paretocosmos.objectives._averages import weighted_mean, weighted_sums
from paretocosmos.objectives._base import Objective, logits_of
from paretocosmos.objectives._shapes import aligned
from paretocosmos.types import Measure, Outputs, Targets

__all__ = ["BinaryCrossEntropy"]


class BinaryCrossEntropy(Objective):
    """Binary cross-entropy of logits ``[B]`` or ``[B, 1]`` with labels in {0, 1}.

    >>> import torch
    >>> BinaryCrossEntropy().loss(torch.zeros(4), {"label": torch.tensor([0.0, 1.0, 1.0, 0.0])})
    tensor(0.6931)
    """

    measure = Measure(
        "loss (cross-entropy)",
        "fewer and less certain mistakes",
        "How surprised the answers are by the truth: a sure mistake costs most.",
    )

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        if "weight" not in targets:
            return F.binary_cross_entropy_with_logits(*self._compared(outputs, targets))
        return weighted_mean(self._each(outputs, targets), targets)

    def sums(self, outputs: Outputs, targets: Targets) -> Tensor:
        return weighted_sums(self._each(outputs, targets), targets)

    def _each(self, outputs: Outputs, targets: Targets) -> Tensor:
        """Of every label."""
        logits, label = self._compared(outputs, targets)
        return F.binary_cross_entropy_with_logits(logits, label, reduction="none")

    def _compared(self, outputs: Outputs, targets: Targets) -> tuple[Tensor, Tensor]:
        logits = logits_of(outputs, self.output)
        return logits, aligned(targets[self.target].to(logits.dtype), logits, self.target)
