"""Equalized odds: the same true-positive and false-positive rates in every group."""

from paretocosmos.objectives._rates import RateObjective
from paretocosmos.types import Measure

__all__ = ["EqualizedOdds"]


class EqualizedOdds(RateObjective):
    r"""The larger of two gaps between groups: of true-positive and of false-positive rates.

    .. math:: \max\big(\texttt{tpr\_gap},\ \texttt{fpr\_gap}\big)

    with decisions relaxed by `sharpness` in the loss and counted in the score, which is fairlearn's
    `equalized_odds_difference`. A group without positives, or without negatives, is left out of
    that rate in a training batch; in the score of a whole split it makes the gap NaN. Several
    classes: the largest gap of one against the rest.

    >>> import torch
    >>> label, sensitive = torch.tensor([1, 1, 0, 0]), torch.tensor([0, 1, 0, 1])
    >>> targets = {"label": label, "sensitive": sensitive}
    >>> EqualizedOdds().score(torch.tensor([1.0, 1.0, 1.0, -1.0]), targets)
    tensor(1., dtype=torch.float64)
    """

    over = ("positives", "negatives")
    measure = Measure(
        "larger gap in who is found or wrongly selected",
        "smaller gaps in who is found and who is wrongly selected",
        unit="points",
    )
    meaning = (
        "the share that is predicted positive, once among those who belong to the positive class "
        "and once among the others: the larger of the two gaps, each the largest rate minus the "
        "smallest over the groups"
    )
