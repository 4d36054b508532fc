"""Binary cross-entropy on logits."""

import torch.nn.functional as F
from torch import Tensor

from paretocosmos.objectives._base import Objective, logits_of, weighted_mean
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
        "fewer and less confident mistakes",
        "How far the predicted probabilities are from the truth: a confident mistake costs most.",
    )

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        logits = logits_of(outputs, self.output)
        label = targets[self.target].to(logits.dtype).reshape(logits.shape)
        if "weight" not in targets:
            return F.binary_cross_entropy_with_logits(logits, label)
        each = F.binary_cross_entropy_with_logits(logits, label, reduction="none")
        return weighted_mean(each, targets)
