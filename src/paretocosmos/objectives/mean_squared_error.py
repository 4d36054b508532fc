"""Mean squared error."""

from torch import Tensor

from paretocosmos.objectives._base import Objective, pick, weighted_mean
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
        output, target = pick(outputs, self.output), targets[self.target]
        squared = (output - target.reshape(output.shape)).square()
        return weighted_mean(
            squared.flatten(1).mean(dim=1) if squared.ndim > 1 else squared, targets
        )

    def unit(self, scale: float) -> float:
        return scale**2
