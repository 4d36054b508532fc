"""Equal opportunity: the same true-positive rate in every group."""

from paretocosmos.objectives._rates import RateObjective
from paretocosmos.types import Measure

__all__ = ["TprGap"]


class TprGap(RateObjective):
    r"""Equal opportunity: the gap between groups in the share of positives that are found.

    .. math:: \max_g \frac{\sum_{a=g,\,y=1} t}{\#\{a=g,\,y=1\}}
              - \min_g \frac{\sum_{a=g,\,y=1} t}{\#\{a=g,\,y=1\}}

    with t = σ(logit / `sharpness`) as the loss and t = [logit > 0] as the score, which is
    fairlearn's `equal_opportunity_difference`. A group without positives is left out in a training
    batch; in the score of a whole split it makes the gap NaN. Several classes: the largest gap of
    one against the rest, among the classes that every group has.

    >>> import torch
    >>> targets = {"label": torch.ones(4), "sensitive": torch.tensor([0, 0, 0, 1])}
    >>> TprGap().score(torch.tensor([1.0, 1.0, 1.0, -1.0]), targets)
    tensor(1., dtype=torch.float64)
    """

    over = ("positives",)
    measure = Measure("gap in who is found", "a smaller gap in who is found", unit="points")
    meaning = (
        "of those who belong to the positive class, the share that is found, largest minus "
        "smallest over the groups (equal opportunity). It says nothing of those wrongly taken for "
        "positive, of how well the probabilities are calibrated, or of how the groups came to "
        "differ"
    )
