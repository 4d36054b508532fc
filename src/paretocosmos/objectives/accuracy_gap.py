"""The same share of right decisions in every group."""

from collections.abc import Callable

import torch
from torch import Tensor

from paretocosmos.objectives._rates import RateObjective
from paretocosmos.types import Measure, Targets

__all__ = ["AccuracyGap"]


class AccuracyGap(RateObjective):
    r"""The gap between groups in the share that is classified correctly.

    .. math:: \max_g \frac{\sum_{a=g} |y - t|}{\#\{a=g\}}
              - \min_g \frac{\sum_{a=g} |y - t|}{\#\{a=g\}}

    with t = σ(logit / `sharpness`) as the loss and t = [logit > 0] as the score, which is
    fairlearn's `accuracy_score_difference`. A group that is absent is left out in a training batch;
    in the score of a whole split it makes the gap NaN. With several classes, a decision is right
    if it is the row's own class.

    >>> import torch
    >>> targets = {"label": torch.ones(4), "sensitive": torch.tensor([0, 0, 1, 1])}
    >>> AccuracyGap().score(torch.tensor([1.0, 1.0, 1.0, -1.0]), targets)
    tensor(0.5000, dtype=torch.float64)
    """

    measure = Measure("gap in wrong answers", "a smaller gap in wrong answers", unit="points")
    meaning = (
        "the share that is classified rightly, largest minus smallest over the groups. It can be "
        "closed by more mistakes in the group that fares better, and says nothing of which "
        "mistakes are made"
    )

    def each_class(
        self, positive: Tensor, targets: Targets, function: Callable[[Tensor, Targets], Tensor]
    ) -> Tensor:
        label = targets[self.target].reshape(-1, 1).long()
        own = positive.gather(-1, label).squeeze(-1)
        return function(own, {**targets, self.target: torch.ones_like(own)}).unsqueeze(0)

    def counted(self, positive: Tensor, targets: Targets) -> Tensor:
        return (self.label(targets, positive) - positive).abs()
