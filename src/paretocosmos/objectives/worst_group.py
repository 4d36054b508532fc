"""As small a loss as possible in the group that has the largest."""

import torch
import torch.nn.functional as F
from torch import Tensor

from paretocosmos.objectives._means import MeansObjective
from paretocosmos.types import Measure, Outputs, Targets

__all__ = ["WorstGroup"]


class WorstGroup(MeansObjective):
    r"""The largest cross-entropy of a group, as loss and as score.

    .. math:: \max_g \frac{1}{\#\{a=g\}} \sum_{a=g} -\log p(y)

    which is fairlearn's `log_loss_group_max`. It is not a gap: worse predictions for other groups
    do not make it smaller. The score is the cross-entropy, not the share of wrong decisions,
    because that is the training loss and can be compared with the overall cross-entropy on the
    other axis. A group that is absent
    is left out in a training batch; in the score of a whole split it makes the value NaN.

    >>> import torch
    >>> targets = {"label": torch.ones(3), "sensitive": torch.tensor([0, 0, 1])}
    >>> WorstGroup().score(torch.tensor([9.0, 9.0, 0.0]), targets)
    tensor(0.6931)
    """

    measure = Measure(
        "loss of the group that fares worst",
        "a smaller loss of the group that fares worst",
    )
    meaning = (
        "the cross-entropy in the group where it is largest. It says nothing of the other groups "
        "but that they fare no worse"
    )

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        return self.between(self._entropies(outputs, targets), targets)

    def score(self, outputs: Outputs, targets: Targets) -> Tensor:
        return self.decided(self._entropies(outputs, targets), targets)

    def sums(self, outputs: Outputs, targets: Targets) -> Tensor:
        return self._sums(self._entropies(outputs, targets), targets)[:2]

    def _entropies(self, outputs: Outputs, targets: Targets) -> Tensor:
        logits = self.read(outputs)
        if logits.ndim == 1:
            label = self.label(targets, logits)
            return F.binary_cross_entropy_with_logits(logits, label, reduction="none")
        return F.cross_entropy(logits, targets[self.target].reshape(-1).long(), reduction="none")

    def compared(self, rates: Tensor) -> Tensor:
        return rates.amax()

    def leanings(self, rates: Tensor, heat: Tensor, known: Tensor) -> tuple[Tensor, Tensor]:
        # τ log Σ exp(rate / τ) over the groups
        taking_part = known | ~known.any()
        share = torch.where(taking_part, rates / heat, -torch.inf).flatten().softmax(dim=0)
        share = share.reshape(rates.shape)
        return share, (share - share.square()) / heat
