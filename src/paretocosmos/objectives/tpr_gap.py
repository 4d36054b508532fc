"""The standard true-positive-rate gap."""

import torch
from torch import Tensor

from paretocosmos.objectives._base import logits_of
from paretocosmos.objectives._groups import GroupObjective, gap, group_sums
from paretocosmos.types import Outputs, Targets

__all__ = ["TprGap"]


class TprGap(GroupObjective):
    r"""Equal opportunity: the gap between groups in the share of positives that are found.

    .. math:: \max_g \frac{\sum_{a=g,\,y=1} t}{\#\{a=g,\,y=1\}}
              - \min_g \frac{\sum_{a=g,\,y=1} t}{\#\{a=g,\,y=1\}}

    with t = σ(logit) as the loss, the gap of a classifier that decides by its probabilities, and
    t = [logit > 0] as the score, which is fairlearn's `equal_opportunity_difference`. A group
    without positives is left out in a training batch; in the score of a whole split it makes the
    gap NaN, because nothing can be said.

    >>> import torch
    >>> targets = {"label": torch.ones(4), "sensitive": torch.tensor([0, 0, 0, 1])}
    >>> TprGap().score(torch.tensor([1.0, 1.0, 1.0, -1.0]), targets)
    tensor(1.)
    """

    def between(self, positive: Tensor, targets: Targets) -> Tensor:
        found, there = self._sums(positive, targets)
        rate = found / torch.where(there > 0, there, 1.0)
        # an absent group takes part with the mean rate, which is neither largest nor smallest
        mean = found.sum() / torch.where(there.sum() > 0, there.sum(), 1.0)
        return gap(torch.where(there > 0, rate, mean))

    def score(self, outputs: Outputs, targets: Targets) -> Tensor:
        found, there = self._sums((logits_of(outputs, self.output) > 0).float(), targets)
        return gap(found / there)

    def _sums(self, positive: Tensor, targets: Targets) -> tuple[Tensor, Tensor]:
        label = self.label(targets, positive)
        found = group_sums(positive * label, targets, self.sensitive, self.groups)
        return found, group_sums(label, targets, self.sensitive, self.groups)
