"""Mean absolute error."""

from torch import Tensor

from paretocosmos.objectives._base import Objective, pick, weighted_mean
from paretocosmos.types import Measure, Outputs, Targets

__all__ = ["MeanAbsoluteError"]


class MeanAbsoluteError(Objective):
    """Absolute distance of outputs and targets, averaged over samples and components.

    >>> import torch
    >>> MeanAbsoluteError().loss(torch.zeros(2, 3), {"label": -torch.ones(2, 3)})
    tensor(1.)
    """

    measure = Measure(
        "average error",
        "a smaller average error",
        "The average distance of a prediction from the truth, in units of the target's deviation.",
    )

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        output, target = pick(outputs, self.output), targets[self.target]
        apart = (output - target.reshape(output.shape)).abs()
        return weighted_mean(apart.flatten(1).mean(dim=1) if apart.ndim > 1 else apart, targets)

    def unit(self, scale: float) -> float:
        return scale
