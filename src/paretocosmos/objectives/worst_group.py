"""As few wrong decisions as possible in the group that has most of them."""

import torch
from torch import Tensor

from paretocosmos.objectives._rates import ErrorRates

__all__ = ["WorstGroup"]


class WorstGroup(ErrorRates):
    r"""The largest share of a group that is classified wrongly.

    .. math:: \max_g \frac{\sum_{a=g} |y - t|}{\#\{a=g\}}

    with t = σ(logit / `sharpness`) as the loss and t = [logit > 0] as the score, which is
    fairlearn's `zero_one_loss_group_max`. No gap: it is not made smaller by worse decisions for
    others. A group that is absent is left out in a training batch; in the score of a whole split it
    makes the value NaN. Several classes: wrong is who is not given his own.

    >>> import torch
    >>> targets = {"label": torch.ones(4), "sensitive": torch.tensor([0, 0, 1, 1])}
    >>> WorstGroup().score(torch.tensor([1.0, 1.0, 1.0, -1.0]), targets)
    tensor(0.5000, dtype=torch.float64)
    """

    meaning = (
        "the share that is classified wrongly in the group where it is largest. It says nothing of "
        "the other groups but that they fare no worse"
    )

    def compared(self, rates: Tensor) -> Tensor:
        return rates.amax()

    def leanings(self, rates: Tensor, heat: Tensor, known: Tensor) -> tuple[Tensor, Tensor]:
        # τ log Σ exp(rate / τ) over the groups
        taking_part = known | ~known.any()
        share = torch.where(taking_part, rates / heat, -torch.inf).flatten().softmax(dim=0)
        share = share.reshape(rates.shape)
        return share, (share - share.square()) / heat
