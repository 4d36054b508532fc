"""Predictive equality: the same false-positive rate in every group."""

from paretocosmos.objectives._rates import RateObjective
from paretocosmos.types import Measure

__all__ = ["FprGap"]


class FprGap(RateObjective):
    r"""The gap between groups in the share of negatives that are predicted positive.

    .. math:: \max_g \frac{\sum_{a=g,\,y=0} t}{\#\{a=g,\,y=0\}}
              - \min_g \frac{\sum_{a=g,\,y=0} t}{\#\{a=g,\,y=0\}}

    with t = σ(logit / `sharpness`) as the loss and t = [logit > 0] as the score, which is
    fairlearn's `false_positive_rate_difference`. A group without negatives is left out in a
    training batch; in the score of a whole split it makes the gap NaN. Several classes: the largest
    gap of one against the rest.

    >>> import torch
    >>> targets = {"label": torch.zeros(4), "sensitive": torch.tensor([0, 0, 1, 1])}
    >>> FprGap().score(torch.tensor([1.0, -1.0, -1.0, -1.0]), targets)
    tensor(0.5000, dtype=torch.float64)
    """

    over = ("negatives",)
    measure = Measure(
        "gap in who is wrongly selected",
        "a smaller gap in who is wrongly selected",
        unit="points",
    )
    meaning = (
        "of those who do not belong to the positive class, the share that is wrongly taken for "
        "positive, largest minus smallest over the groups (predictive equality). It says nothing "
        "of those who are missed"
    )
