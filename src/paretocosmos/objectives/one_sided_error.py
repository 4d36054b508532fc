"""The error of predictions that are too high, or of those that are too low."""

from dataclasses import dataclass
from typing import Literal

import torch.nn.functional as F
from torch import Tensor

from paretocosmos.errors import ConfigurationError
from paretocosmos.objectives._averages import weighted_mean, weighted_sums
from paretocosmos.objectives._base import Objective, logits_of
from paretocosmos.objectives._shapes import aligned
from paretocosmos.types import Measure, Outputs, Targets

__all__ = ["OneSidedError"]


@dataclass(kw_only=True, eq=False, repr=False)
class OneSidedError(Objective):
    r"""The mean of the positive, or of the negative part of prediction - target, to a power.

    .. math:: \frac1B \sum \max(0, \hat y - y)^p \quad\text{or}\quad
              \frac1B \sum \max(0, y - \hat y)^p

    The two against each other: their sum weighted by (1 - t, t) is smallest at the t-quantile of
    the target for p = 1, and at its t-expectile for p = 2 (Newey and Powell 1987).

    Args:
        name: how fronts call it; the file's name by default.
        output: which head it reads, where the network has several.
        target: which target it compares with.
        side: ``"over"`` counts predictions above the target, ``"under"`` those below.
        power: p, 1 or 2.

    >>> import torch
    >>> outputs, targets = torch.tensor([3.0, 0.0]), {"label": torch.tensor([1.0, 1.0])}
    >>> OneSidedError(side="over").loss(outputs, targets)
    tensor(2.)
    """

    measure = Measure(
        "error to one side",
        "less error to one side",
        "The mean distance of predictions from the truth on one side of it: too high, or too low.",
    )

    side: Literal["over", "under"] = "over"
    power: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.side not in ("over", "under"):
            raise ConfigurationError(f"`side` must be `over` or `under`, found `{self.side}`")
        if self.power not in (1, 2):
            raise ConfigurationError(f"`power` must be 1 or 2, found {self.power}")

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        return weighted_mean(self._each(outputs, targets), targets)

    def sums(self, outputs: Outputs, targets: Targets) -> Tensor:
        return weighted_sums(self._each(outputs, targets), targets)

    def _each(self, outputs: Outputs, targets: Targets) -> Tensor:
        """The error of every prediction on the counted side."""
        output = logits_of(outputs, self.output)
        above = output - aligned(targets[self.target], output, self.target)
        part = F.relu(above if self.side == "over" else -above)
        return part.square() if self.power == 2 else part

    def unit(self, scale: float) -> float:
        return scale**self.power
