"""Rates of groups of people: means of decisions, sharp in training."""

from dataclasses import dataclass

import torch
from torch import Tensor

from paretocosmos.errors import ConfigurationError
from paretocosmos.objectives._base import logits_of
from paretocosmos.objectives._means import MeansObjective
from paretocosmos.types import Outputs, Targets

# The rank correlation of what is trained and what is counted: docs/decisions/0037-gaps-of-rates.md.
SHARPNESS = 0.05


@dataclass(kw_only=True, eq=False, repr=False)
class RateObjective(MeansObjective):
    r"""A gap between rates: a rate is the mean of something over some rows of a group.

    A subclass says which rows (`over`) and what is averaged (`counted`): by default all rows, and
    positive predictions. The value is the largest rate minus the smallest. If `over` names several
    kinds of rows, each has a gap, and the largest one counts.

    In training a decision is t = σ(logit / s), where s is the `sharpness`; in the score it is
    [logit > 0]. A group without such rows is left out of a training batch. In the score of a whole
    split it makes the value NaN, since nothing can be said. The noise of a
    batch makes its gap too large, except for a constant classifier; the gradient is corrected for
    that.

    Args:
        name: how fronts call it; the file's name by default.
        output: which head it reads, where the network has several.
        target: the label: 0 or 1, or a class.
        sensitive: which target holds the sensitive groups, numbered from 0.
        groups: how many sensitive groups there are.
        sharpness: how close the relaxed decision is to the hard one: smaller is closer. Plain
            probabilities (1) close a gap that the decisions still have.

    >>> class MissedGap(RateObjective):  # among those who should get a yes, how many do not?
    ...     over = ("positives",)
    ...
    ...     def counted(self, positive, targets):
    ...         return 1 - positive
    >>> targets = {"label": torch.tensor([1, 1, 1, 0]), "sensitive": torch.tensor([0, 0, 1, 1])}
    >>> MissedGap().score(torch.tensor([2.0, -1.0, 1.0, 1.0]), targets)  # 1 of 2 and 0 of 1
    tensor(0.5000, dtype=torch.float64)
    """

    sharpness: float = SHARPNESS

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.sharpness > 0:
            raise ConfigurationError(
                f"`sharpness` must be above 0, found {self.sharpness}: try {SHARPNESS}"
            )

    @property
    def linear(self) -> bool:
        """Whether it compares rates as they are, so that a formula says how to close the gap."""
        return type(self).compared is MeansObjective.compared

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        return super().loss(logits_of(outputs, self.output) / self.sharpness, targets)

    def moments(self, outputs: Outputs, targets: Targets) -> Tensor | None:
        if not self.linear:
            return None

        def of_one(positive: Tensor, targets: Targets) -> Tensor:
            total, there, squares, weights = self._sums(positive, targets)
            # rows count as many as tell as much
            scale = there / torch.where(weights > 0, weights, 1.0)
            found: Tensor = torch.stack([total, squares, there], dim=-1) * scale.unsqueeze(-1)
            return found

        decided = self.decisions(outputs)
        if decided.ndim == 1:
            return of_one(decided, targets)
        return self.each_class(decided, targets, of_one).flatten(0, 1)
