"""The standard true-positive-rate gap."""

from torch import Tensor

from paretocosmos.objectives._groups import GroupObjective, gap, group_sums, mean_gap
from paretocosmos.types import Targets

__all__ = ["TprGap"]


class TprGap(GroupObjective):
    r"""Equal opportunity: the gap between groups in the share of positives that are found.

    .. math:: \max_g \frac{\sum_{a=g,\,y=1} t}{\#\{a=g,\,y=1\}}
              - \min_g \frac{\sum_{a=g,\,y=1} t}{\#\{a=g,\,y=1\}}

    with t = σ(logit) as the loss, the gap of a classifier that decides by its probabilities, and
    t = [logit > 0] as the score, which is fairlearn's `equal_opportunity_difference`. A group
    without positives is left out in a training batch; in the score of a whole split it makes the
    gap NaN, because nothing can be said. Several classes: the largest gap of one against the rest,
    among the classes that every group has.

    >>> import torch
    >>> targets = {"label": torch.ones(4), "sensitive": torch.tensor([0, 0, 0, 1])}
    >>> TprGap().score(torch.tensor([1.0, 1.0, 1.0, -1.0]), targets)
    tensor(1., dtype=torch.float64)
    """

    needs_positives = True
    meaning = (
        "of those who belong to the positive class, the share that is found, largest minus "
        "smallest over the groups (equal opportunity). It says nothing of those wrongly taken for "
        "positive, of how well the probabilities are calibrated, or of how the groups came to "
        "differ"
    )

    def between(self, positive: Tensor, targets: Targets) -> Tensor:
        return mean_gap(*self._sums(positive, targets))

    def decided(self, positive: Tensor, targets: Targets) -> Tensor:
        found, there = self._sums(positive, targets)
        return gap(found / there)

    def _sums(self, positive: Tensor, targets: Targets) -> tuple[Tensor, Tensor]:
        label = self.label(targets, positive)
        found = group_sums(positive * label, targets, self.sensitive, self.groups)
        return found, group_sums(label, targets, self.sensitive, self.groups)
