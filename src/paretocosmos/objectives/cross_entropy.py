"""Cross-entropy over classes."""

import torch.nn.functional as F
from torch import Tensor

from paretocosmos.objectives._base import Objective, pick, weighted_mean
from paretocosmos.types import Measure, Outputs, Targets

__all__ = ["CrossEntropy"]


class CrossEntropy(Objective):
    """Cross-entropy of class logits ``[B, K]`` with labels ``[B]``.

    >>> import torch
    >>> CrossEntropy().loss(torch.zeros(4, 2), {"label": torch.tensor([0, 1, 1, 0])})
    tensor(0.6931)
    """

    measure = Measure(
        "loss (cross-entropy)",
        "fewer and less confident mistakes",
        "How far the predicted probabilities are from the truth: a confident mistake costs most.",
    )

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        # not F.cross_entropy, which under vmap asks twice for labels to ignore: on a GPU half of
        # the kernels of a small network's loss
        logarithms = F.log_softmax(pick(outputs, self.output), dim=-1)
        labels = targets[self.target].long().unsqueeze(-1)
        return -weighted_mean(logarithms.gather(-1, labels).squeeze(-1), targets)
