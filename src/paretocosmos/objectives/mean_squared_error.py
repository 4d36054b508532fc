"""Mean squared error."""

from torch import Tensor

from paretocosmos.objectives._averages import weighted_mean, weighted_sums
from paretocosmos.objectives._base import Objective, pick
from paretocosmos.objectives._shapes import aligned
from paretocosmos.types import Measure, Outputs, Targets

__all__ = ["MeanSquaredError"]


class MeanSquaredError(Objective):
    """Squared distance of outputs and targets, averaged over samples and components.

    >>> import torch
    >>> MeanSquaredError().loss(torch.zeros(2, 3), {"label": torch.ones(2, 3)})
    tensor(1.)
    """

    measure = Measure(
        "squared error",
        "smaller errors",
        "The mean squared distance of predictions from the truth, in units of the variance.",
    )

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        return weighted_mean(self._each(outputs, targets), targets)

    def sums(self, outputs: Outputs, targets: Targets) -> Tensor:
        return weighted_sums(self._each(outputs, targets), targets)

    def _each(self, outputs: Outputs, targets: Targets) -> Tensor:
        """Of every sample, the mean over its components."""
        output = pick(outputs, self.output)
        squared = (output - aligned(targets[self.target], output, self.target)).square()
        return squared.flatten(1).mean(dim=1) if squared.ndim > 1 else squared

    def unit(self, scale: float) -> float:
        return scale**2
