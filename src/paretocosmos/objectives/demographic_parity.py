"""Demographic parity: the same rate of positive predictions in every group."""

from torch import Tensor

from paretocosmos.errors import ConfigurationError
from paretocosmos.objectives._base import logits_of
from paretocosmos.objectives._groups import GroupObjective, gap, mean_gap, sums_and_sizes
from paretocosmos.types import Outputs, Targets

__all__ = ["DemographicParity"]


class DemographicParity(GroupObjective):
    r"""The gap between groups in the share that is predicted positive.

    .. math:: \max_g \frac{\sum_{a=g} t}{\#\{a=g\}} - \min_g \frac{\sum_{a=g} t}{\#\{a=g\}}

    with t = σ(logit / s) as the loss, s being the `sharpness`, and t = [logit > 0] as the score,
    which is fairlearn's `demographic_parity_difference`. A group that is absent is left out in a
    training batch; in the score of a whole split it makes the gap NaN, because nothing can be
    said. Several classes: the largest gap of one against the rest.

    Args:
        name: how fronts call it; the file's name by default.
        output: which head it reads, where the network has several.
        target: the label, which it does not need.
        sensitive: which target holds the groups, numbered from 0.
        groups: how many groups there are.
        sharpness: how close the relaxed decision is to the hard one: smaller is closer. Plain
            probabilities (1) narrow a gap that the decisions do not have.

    >>> import torch
    >>> DemographicParity().score(torch.ones(4), {"sensitive": torch.tensor([0, 0, 0, 1])})
    tensor(0., dtype=torch.float64)
    """

    meaning = (
        "the share that is predicted positive, largest minus smallest over the groups, whether "
        "rightly or not"
    )

    def __init__(
        self,
        *,
        name: str | None = None,
        output: str | None = None,
        target: str = "label",
        sensitive: str = "sensitive",
        groups: int = 2,
        # On Adult the rank correlation of weight and minus the gap, on validation, is 1.00 with
        # 0.15, 0.97 with 0.3 and 0.75 with 0.5 (results/fronts_trials.json, wd 0.3).
        sharpness: float = 0.15,
    ) -> None:
        super().__init__(
            name=name, output=output, target=target, sensitive=sensitive, groups=groups
        )
        if not sharpness > 0:
            raise ConfigurationError(f"`sharpness` must be above 0, found {sharpness}: try 0.15")
        self.sharpness = sharpness

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        return super().loss(logits_of(outputs, self.output) / self.sharpness, targets)

    def between(self, positive: Tensor, targets: Targets) -> Tensor:
        return mean_gap(*sums_and_sizes(positive, targets, self.sensitive, self.groups))

    def decided(self, positive: Tensor, targets: Targets) -> Tensor:
        sums, there = sums_and_sizes(positive, targets, self.sensitive, self.groups)
        return gap(sums / there)
