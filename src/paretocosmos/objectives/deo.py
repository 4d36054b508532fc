"""The paper's difference of equality of opportunity."""

from torch import Tensor

from paretocosmos.objectives._groups import TanhRelaxed, count_gap
from paretocosmos.types import Targets

__all__ = ["Deo"]


class Deo(TanhRelaxed):
    r"""Difference of equality of opportunity, counted over the batch as in the paper (section 5.3).

    .. math:: \frac1B \Big| \sum_{a=0,\,y=1} t - \sum_{a=1,\,y=1} t \Big|

    with t = tanh(c σ(logit)) as the loss and t = [logit > 0] as the score. The published code takes
    the absolute value and the sigmoid, which the printed equation leaves out.

    It compares *counts*: a fair classifier scores 0 only if the groups have equally many positives.
    Use `tpr_gap` for the rate difference that fairness texts mean; use this one to reproduce the
    paper. Several groups: largest minus smallest.

    >>> import torch
    >>> targets = {"label": torch.ones(4), "sensitive": torch.tensor([0, 0, 0, 1])}
    >>> Deo().score(torch.ones(4), targets)
    tensor(0.5000, dtype=torch.float64)
    """

    meaning = (
        "the difference of how many positives are found in the groups, over all rows. It compares "
        "counts: groups of different sizes have different ones even where their chances are equal, "
        "so read `tpr_gap` for the gap between rates"
    )

    def between(self, positive: Tensor, targets: Targets) -> Tensor:
        found = positive * self.label(targets, positive)
        return count_gap(found, targets, self.sensitive, self.groups)
