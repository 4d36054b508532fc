"""Errors of numbers: squared, absolute, to one side, and a bounded one with a concave front."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from paretocosmos.errors import ConfigurationError
from paretocosmos.objectives.base import (
    LabelMean,
    Objective,
    Parts,
    align,
    known_numbers,
    logits_of,
    pick,
    sample_weights,
    weighted_mean,
    weighted_sums,
)
from paretocosmos.types import Measure, Outputs, Targets


@dataclass(kw_only=True, eq=False, repr=False)
class NumberMean(LabelMean):
    """The mean of a distance between outputs and numbers, which may be NaN if `ignore_nan`."""

    # off by default, so that a NaN in the data is noticed
    ignore_nan: bool = False

    @property
    def missing(self) -> float | None:
        return float("nan") if self.ignore_nan else None

    @abstractmethod
    def distance(self, difference: Tensor) -> Tensor:
        """Return the error of every output, given its signed difference from the target."""

    def parts(self, outputs: Outputs, targets: Targets) -> Parts:
        output = pick(outputs, self.output)
        target, present = known_numbers(targets[self.target], self.ignore_nan)
        # aligned first: `[B]` minus `[B, 1]` would broadcast to `[B, B]`
        errors = self.distance(output - align(target, output, self.target))
        if present is not None:
            # `align` has made sure that only axes of length 1 differ
            present = present.reshape(output.shape)
        return Parts(errors, present, sample_weights(errors, targets, self.weight))


@dataclass(kw_only=True, eq=False, repr=False)
class MeanSquaredError(NumberMean):
    """Squared distance of outputs and targets, averaged over samples and components.

    Args:
        ignore_nan: whether a target may be NaN where there is none; it counts for nothing.
        weight: the target that says what each sample counts for, where there is one of that name.

    >>> import torch
    >>> MeanSquaredError().loss(torch.zeros(2, 3), {"label": torch.ones(2, 3)})
    tensor(1.)
    """

    measure = Measure(
        "squared error",
        "smaller errors",
        "The mean squared distance of predictions from the truth, in units of the variance.",
    )

    def distance(self, difference: Tensor) -> Tensor:
        return difference.square()

    def unit(self, scale: float) -> float:
        return scale**2


@dataclass(kw_only=True, eq=False, repr=False)
class MeanAbsoluteError(NumberMean):
    """Absolute distance of outputs and targets, averaged over samples and components.

    Args:
        ignore_nan: whether a target may be NaN where there is none; it counts for nothing.
        weight: the target that says what each sample counts for, where there is one of that name.

    >>> import torch
    >>> MeanAbsoluteError().loss(torch.zeros(2, 3), {"label": -torch.ones(2, 3)})
    tensor(1.)
    """

    measure = Measure(
        "average error",
        "a smaller average error",
        "The average distance of a prediction from the truth, in units of the target's deviation.",
    )

    def distance(self, difference: Tensor) -> Tensor:
        return difference.abs()

    def unit(self, scale: float) -> float:
        return scale


@dataclass(kw_only=True, eq=False, repr=False)
class OneSidedError(Objective):
    r"""The mean of the positive, or of the negative part of prediction - target, to a power.

    .. math:: \frac1B \sum \max(0, \hat y - y)^p \quad\text{or}\quad
              \frac1B \sum \max(0, y - \hat y)^p

    The two against each other: their sum weighted by (1 - t, t) is smallest at the t-quantile of
    the target for p = 1, and at its t-expectile for p = 2 (Newey and Powell 1987).

    Args:
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
    # squares are smooth at 0, where absolute errors have a kink
    power: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.side not in ("over", "under"):
            raise ConfigurationError(f"`side` must be `over` or `under`, found `{self.side}`")
        check_power(self.power)

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        return weighted_mean(self._compute_errors(outputs, targets), targets)

    def sums(self, outputs: Outputs, targets: Targets) -> Tensor:
        return weighted_sums(self._compute_errors(outputs, targets), targets)

    def _compute_errors(self, outputs: Outputs, targets: Targets) -> Tensor:
        """Return the error of every prediction on the counted side."""
        output = logits_of(outputs, self.output)
        above = output - align(targets[self.target], output, self.target)
        error = F.relu(above if self.side == "over" else -above)
        return error.square() if self.power == 2 else error

    def unit(self, scale: float) -> float:
        return scale**self.power


def check_power(power: int) -> None:
    """Validate the power of an error."""
    # 1 leads to quantiles, 2 to expectiles; other powers have no such meaning
    if power not in (1, 2):
        raise ConfigurationError(f"`power` must be 1 or 2, found {power}")


class GaussianWell(Objective):
    """1 - exp(-‖output - target‖²): flat far away, a well at the target (Fonseca and Fleming 1995).

    Two of them with targets far enough apart (a distance of 2) have a concave front, which no
    weighted sum can follow; with close ones, below about 1.6, its middle is convex.

    >>> import torch
    >>> GaussianWell().loss(torch.ones(2, 3), {"label": torch.ones(2, 3)})
    tensor(0.)
    """

    measure = Measure(
        "distance from a point",
        "closer to a point",
        "A made-up loss with a known front.",
    )

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        return weighted_mean(self._compute_depths(outputs, targets), targets)

    def sums(self, outputs: Outputs, targets: Targets) -> Tensor:
        return weighted_sums(self._compute_depths(outputs, targets), targets)

    def _compute_depths(self, outputs: Outputs, targets: Targets) -> Tensor:
        """Return the depth of every sample in the well."""
        output = pick(outputs, self.output)
        squared = (output - align(targets[self.target], output, self.target)).square()
        distance = squared.flatten(1).sum(dim=1) if squared.ndim > 1 else squared
        # not 1 - exp(...): near the target that difference loses its digits
        return -torch.expm1(-distance)
