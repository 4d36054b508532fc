"""The paper's difference of equality of opportunity."""

from dataclasses import dataclass

import torch
from torch import Tensor

from paretocosmos.objectives._groups import GroupObjective, gap, group_sums, largest_known, samples
from paretocosmos.types import Measure, Outputs, Targets

__all__ = ["Deo"]


@dataclass(kw_only=True, eq=False, repr=False)
class Deo(GroupObjective):
    r"""Difference of equality of opportunity, counted over the batch as in the paper (section 5.3).

    .. math:: \frac1B \Big| \sum_{a=0,\,y=1} t - \sum_{a=1,\,y=1} t \Big|

    with t = tanh(c σ(logit)) as the loss and t = [logit > 0] as the score. The published code takes
    the absolute value and the sigmoid, which the printed equation leaves out.

    It compares *counts*: a fair classifier scores 0 only if the groups have equally many positives.
    Use `tpr_gap` or `demographic_parity` for differences of rates, as in the fairness literature;
    use this one to reproduce the paper. Several groups: largest minus smallest.

    Args:
        name: how fronts call it; the file's name by default.
        output: which head it reads, where the network has several.
        target: the label: 0 or 1, or a class.
        sensitive: which target holds the sensitive groups, numbered from 0.
        groups: how many sensitive groups there are.
        steepness: c.

    >>> import torch
    >>> targets = {"label": torch.ones(4), "sensitive": torch.tensor([0, 0, 0, 1])}
    >>> Deo().score(torch.ones(4), targets)
    tensor(0.5000, dtype=torch.float64)
    """

    over = ()  # a group that is absent counts 0
    measure = Measure(
        "gap in how many are found",
        "a smaller gap in how many are found",
        unit="points",
    )
    meaning = (
        "the difference of how many positives are found in the groups, over all rows. It compares "
        "counts: groups of different sizes have different ones even where their chances are equal, "
        "so read `tpr_gap` for the gap between rates"
    )

    steepness: float = 1.0

    def relax(self, probability: Tensor) -> Tensor:
        # The published code passes the probability through max(0, ·) too, which changes nothing.
        return torch.tanh(probability if self.steepness == 1 else self.steepness * probability)

    def sums(self, outputs: Outputs, targets: Targets) -> Tensor:
        """How many are found in every group, and how many samples there are: ``[groups + 1]``."""

        def of_one(positive: Tensor, targets: Targets) -> Tensor:
            found = positive * self.label(targets, positive)
            counts = group_sums(found, targets, self.sensitive, self.groups)
            weight = targets.get("weight")
            every = counts.new_full((), len(found)) if weight is None else weight.sum()
            return torch.cat([counts, every.to(counts.dtype).reshape(1)])

        decided = self.decisions(outputs)
        if decided.ndim == 1:
            return of_one(decided, targets)
        return self.each_class(decided, targets, of_one)

    def from_sums(self, sums: Tensor) -> Tensor:
        every = sums[..., -1]
        if sums.ndim == 1:
            return gap(sums[:-1]) / torch.where(every > 0, every, 1.0)
        return largest_known(torch.vmap(self.from_sums)(sums))

    def between(self, positive: Tensor, targets: Targets) -> Tensor:
        found = positive * self.label(targets, positive)
        if self.groups > 2:
            counts = group_sums(found, targets, self.sensitive, self.groups)
            return gap(counts) / samples(found, targets)
        # two groups are one signed sum: half the operations
        weight, group = targets.get("weight"), targets[self.sensitive].reshape(found.shape)
        signed = found * ((group == 0).to(found.dtype) - (group == 1).to(found.dtype))
        if weight is not None:
            signed = signed * weight.reshape(found.shape)
        return signed.sum().abs() / samples(found, targets)
