"""Mean absolute error."""

from dataclasses import dataclass

from torch import Tensor

from paretocosmos.objectives._base import Objective, pick
from paretocosmos.objectives._labels import mean_over, sample_weights
from paretocosmos.types import Measure, Outputs, Targets

__all__ = ["MeanAbsoluteError"]


@dataclass(kw_only=True, eq=False, repr=False)
class MeanAbsoluteError(Objective):
    """Absolute distance of outputs and targets, averaged over samples and components.

    Args:
        name: how fronts call it; the file's name by default.
        output: which head it reads, where the network has several.
        target: which target it compares with.
        ignore_nan: whether a target may be NaN where there is none; it counts for nothing.
        weight: the target that says what each sample counts for, where there is one of that name.

    >>> import torch
    >>> MeanAbsoluteError().loss(torch.zeros(2, 3), {"label": -torch.ones(2, 3)})
    tensor(1.)
    """

    measure = Measure(
        "mean error",
        "a smaller mean error",
        "The mean distance of a prediction from the truth, in units of the target's deviation.",
    )

    ignore_nan: bool = False
    weight: str = "weight"

    @property
    def missing(self) -> float | None:
        return float("nan") if self.ignore_nan else None

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        return self._mean(outputs, targets, empty=0.0)

    def score(self, outputs: Outputs, targets: Targets) -> Tensor:
        if self.missing is None:
            return self.loss(outputs, targets)
        return self._mean(outputs, targets, empty=float("nan"))

    def _mean(self, outputs: Outputs, targets: Targets, *, empty: float) -> Tensor:
        output, target = pick(outputs, self.output), targets[self.target]
        target = target.reshape(output.shape)
        known = None
        if self.ignore_nan:
            known = ~target.isnan()
            target = target.where(known, 0.0)
        apart = (output - target).abs()
        return mean_over(apart, known, sample_weights(apart, targets, self.weight), empty=empty)

    def unit(self, scale: float) -> float:
        return scale
