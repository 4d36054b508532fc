"""Demographic parity: the same share of positive predictions in every group."""

from torch import Tensor

from paretocosmos.objectives._groups import TanhRelaxed, count_gap
from paretocosmos.types import Targets

__all__ = ["DemographicParity"]


class DemographicParity(TanhRelaxed):
    r"""Difference in predicted positives between groups, counted over the batch.

    .. math:: \frac1B \Big| \sum_{a=0} t - \sum_{a=1} t \Big|

    The paper's `deo` without the condition y = 1: t = tanh(c σ(logit)) as the loss and
    t = [logit > 0] as the score. Several groups: largest minus smallest.

    >>> import torch
    >>> DemographicParity().score(torch.ones(4), {"sensitive": torch.tensor([0, 0, 0, 1])})
    tensor(0.5000, dtype=torch.float64)
    """

    meaning = (
        "the share that is predicted positive, largest minus smallest over the groups, whether "
        "rightly or not"
    )

    def between(self, positive: Tensor, targets: Targets) -> Tensor:
        return count_gap(positive, targets, self.sensitive, self.groups)
