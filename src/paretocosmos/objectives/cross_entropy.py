"""Cross-entropy over classes."""

import torch.nn.functional as F
from torch import Tensor

from paretocosmos.objectives._base import Objective, pick, weighted_mean
from paretocosmos.types import Outputs, Targets

__all__ = ["CrossEntropy"]


class CrossEntropy(Objective):
    """Cross-entropy of class logits ``[B, K]`` with labels ``[B]``.

    >>> import torch
    >>> CrossEntropy().loss(torch.zeros(4, 2), {"label": torch.tensor([0, 1, 1, 0])})
    tensor(0.6931)
    """

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        logits = pick(outputs, self.output)
        each = F.cross_entropy(logits, targets[self.target].long(), reduction="none")
        return weighted_mean(each, targets)
