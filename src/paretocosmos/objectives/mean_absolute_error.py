"""Mean absolute error."""

from torch import Tensor

from paretocosmos.objectives._averages import weighted_mean, weighted_sums
from paretocosmos.objectives._base import Objective, pick
from paretocosmos.objectives._shapes import aligned
from paretocosmos.types import Measure, Outputs, Targets

__all__ = ["MeanAbsoluteError"]


class MeanAbsoluteError(Objective):
    """Absolute distance of outputs and targets, averaged over samples and components.

    >>> import torch
    >>> MeanAbsoluteError().loss(torch.zeros(2, 3), {"label": -torch.ones(2, 3)})
    tensor(1.)
    """

    measure = Measure(
        "mean error",
        "a smaller mean error",
        "The mean distance of a prediction from the truth, in units of the target's deviation.",
    )

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        return weighted_mean(self._each(outputs, targets), targets)

    def sums(self, outputs: Outputs, targets: Targets) -> Tensor:
        return weighted_sums(self._each(outputs, targets), targets)

    def _each(self, outputs: Outputs, targets: Targets) -> Tensor:
        """Of every sample, the mean over its components."""
        output = pick(outputs, self.output)
        apart = (output - aligned(targets[self.target], output, self.target)).abs()
        return apart.flatten(1).mean(dim=1) if apart.ndim > 1 else apart

    def unit(self, scale: float) -> float:
        return scale
