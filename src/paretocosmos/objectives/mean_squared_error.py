"""Mean squared error."""

from dataclasses import dataclass

from torch import Tensor

from paretocosmos.objectives._labels import NumberMean
from paretocosmos.types import Measure

__all__ = ["MeanSquaredError"]


@dataclass(kw_only=True, eq=False, repr=False)
class MeanSquaredError(NumberMean):
    """Squared distance of outputs and targets, averaged over samples and components.

    Args:
        name: how fronts call it; the file's name by default.
        output: which head it reads, where the network has several.
        target: which target it compares with.
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

    def distance(self, apart: Tensor) -> Tensor:
        return apart.square()

    def unit(self, scale: float) -> float:
        return scale**2
