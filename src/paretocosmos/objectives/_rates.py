"""Rates of groups of people, and what the objectives that compare them share."""

from collections.abc import Callable

import torch
from torch import Tensor

from paretocosmos.errors import ConfigurationError
from paretocosmos.objectives._base import logits_of
from paretocosmos.objectives._groups import GroupObjective, gap, group_means, group_sums
from paretocosmos.types import Outputs, Targets

# Rank correlation of what is trained and what is counted: docs/decisions/0035.
SHARPNESS = 0.15


class RateObjective(GroupObjective):
    r"""Rates of the groups, compared: the mean of something over some rows of every group.

    A subclass says which rows (`over`), what is averaged (`counted`) and how the groups' rates
    become one number (`compared`); by default all rows, positive predictions, and the largest rate
    minus the smallest. Where `over` names several kinds of rows, the largest number counts.

    In training a decision is t = σ(logit / s), s being the `sharpness`; in the score it is
    [logit > 0]. A group without such rows is left out in a training batch; in the score of a whole
    split it makes the value NaN, because nothing can be said.

    Args:
        name: how fronts call it; the file's name by default.
        output: which head it reads, where the network has several.
        target: the label: 0 or 1, or a class.
        sensitive: which target holds the sensitive groups, numbered from 0.
        groups: how many sensitive groups there are.
        sharpness: how close the relaxed decision is to the hard one: smaller is closer. Plain
            probabilities (1) close a gap that the decisions still have.
    """

    def __init__(
        self,
        *,
        name: str | None = None,
        output: str | None = None,
        target: str = "label",
        sensitive: str = "sensitive",
        groups: int = 2,
        sharpness: float = SHARPNESS,
    ) -> None:
        super().__init__(
            name=name, output=output, target=target, sensitive=sensitive, groups=groups
        )
        if not sharpness > 0:
            raise ConfigurationError(
                f"`sharpness` must be above 0, found {sharpness}: try {SHARPNESS}"
            )
        self.sharpness = sharpness

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        return super().loss(logits_of(outputs, self.output) / self.sharpness, targets)

    def counted(self, positive: Tensor, targets: Targets) -> Tensor:
        """What is averaged, given how positive each sample's prediction is: ``[B]`` to ``[B]``."""
        return positive

    def compared(self, rates: Tensor) -> Tensor:
        """What the groups' rates come to: ``[groups]`` to a scalar."""
        return gap(rates)

    def between(self, positive: Tensor, targets: Targets) -> Tensor:
        sums = self._sums(positive, targets)
        return torch.stack([self.compared(group_means(*each)) for each in sums]).amax()

    def decided(self, positive: Tensor, targets: Targets) -> Tensor:
        sums = self._sums(positive, targets)
        return torch.stack([self.compared(total / there) for total, there in sums]).amax()

    def _sums(self, positive: Tensor, targets: Targets) -> list[tuple[Tensor, Tensor]]:
        """Of each kind of rows the groups' sums and sizes."""
        counted, found = self.counted(positive, targets), []
        for rows in self.over:
            chosen = torch.ones_like(positive)
            if rows != "all":
                label = self.label(targets, positive)
                chosen = label if rows == "positives" else 1 - label
            total = group_sums(counted * chosen, targets, self.sensitive, self.groups)
            found.append((total, group_sums(chosen, targets, self.sensitive, self.groups)))
        return found


class ErrorRates(RateObjective):
    """Rates of wrong decisions: with several classes the share that is not given its own."""

    def of_classes(
        self, positive: Tensor, targets: Targets, between: Callable[[Tensor, Targets], Tensor]
    ) -> Tensor:
        label = targets[self.target].reshape(-1, 1).long()
        own = positive.gather(-1, label).squeeze(-1)
        return between(own, {**targets, self.target: torch.ones_like(own)})

    def counted(self, positive: Tensor, targets: Targets) -> Tensor:
        return (self.label(targets, positive) - positive).abs()
