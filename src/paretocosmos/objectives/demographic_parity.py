"""Demographic parity: the same rate of positive predictions in every group."""

from paretocosmos.objectives._rates import RateObjective
from paretocosmos.types import Measure

__all__ = ["DemographicParity"]


class DemographicParity(RateObjective):
    r"""The gap between groups in the share that is predicted positive.

    .. math:: \max_g \frac{\sum_{a=g} t}{\#\{a=g\}} - \min_g \frac{\sum_{a=g} t}{\#\{a=g\}}

    with t = σ(logit / `sharpness`) as the loss and t = [logit > 0] as the score, which is
    fairlearn's `demographic_parity_difference`. A group that is absent is left out in a training
    batch; in the score of a whole split it makes the gap NaN. Several classes: the largest gap of
    one against the rest. It needs no label.

    >>> import torch
    >>> DemographicParity().score(torch.ones(4), {"sensitive": torch.tensor([0, 0, 0, 1])})
    tensor(0., dtype=torch.float64)
    """

    measure = Measure("gap in who is selected", "a smaller gap in who is selected", unit="points")
    meaning = (
        "the share that is predicted positive, largest minus smallest over the groups, whether "
        "rightly or not"
    )
