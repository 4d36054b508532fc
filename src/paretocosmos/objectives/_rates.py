"""Rates of groups of people, and what the objectives that compare them share."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from paretocosmos.errors import ConfigurationError
from paretocosmos.objectives._base import logits_of
from paretocosmos.objectives._groups import (
    GroupObjective,
    gap,
    group_means,
    group_moments,
    group_sums,
)
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

    def moments(self, outputs: Outputs, targets: Targets) -> Tensor | None:
        if type(self).compared is not RateObjective.compared:
            return None

        def of_one(positive: Tensor, targets: Targets) -> Tensor:
            counted, rows = self.counted(positive, targets), self._rows(positive, targets)
            return torch.stack([group_moments(counted, these, targets, self) for these in rows])

        logits = logits_of(outputs, self.output)
        if logits.ndim == 1:
            return of_one((logits > 0).double(), targets)
        classes = torch.arange(logits.shape[-1], device=logits.device)
        chosen = (logits.argmax(dim=-1, keepdim=True) == classes).double()
        return self.each_class(chosen, targets, of_one).flatten(0, 1)

    def _sums(self, positive: Tensor, targets: Targets) -> list[tuple[Tensor, Tensor]]:
        """Of each kind of rows the groups' sums and sizes."""
        counted, found = self.counted(positive, targets), []
        for chosen in self._rows(positive, targets):
            total = group_sums(counted * chosen, targets, self.sensitive, self.groups)
            found.append((total, group_sums(chosen, targets, self.sensitive, self.groups)))
        return found

    def _rows(self, positive: Tensor, targets: Targets) -> Iterator[Tensor]:
        """Of each kind of rows which they are, 0 or 1: ``[B]``."""
        for rows in self.over:
            if rows == "all":
                yield torch.ones_like(positive)
            else:
                label = self.label(targets, positive)
                yield label if rows == "positives" else 1 - label


class ErrorRates(RateObjective):
    """Rates of wrong decisions: with several classes the share that is not given its own."""

    def each_class(
        self, positive: Tensor, targets: Targets, function: Callable[[Tensor, Targets], Tensor]
    ) -> Tensor:
        label = targets[self.target].reshape(-1, 1).long()
        own = positive.gather(-1, label).squeeze(-1)
        return function(own, {**targets, self.target: torch.ones_like(own)}).unsqueeze(0)

    def counted(self, positive: Tensor, targets: Targets) -> Tensor:
        return (self.label(targets, positive) - positive).abs()
