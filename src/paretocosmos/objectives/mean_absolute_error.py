"""Mean absolute error."""

from dataclasses import dataclass

from paretocosmos.objectives._base import pick
from paretocosmos.objectives._labels import LabelMean, Parts, known_numbers, sample_weights
from paretocosmos.objectives._shapes import aligned
from paretocosmos.types import Measure, Outputs, Targets

__all__ = ["MeanAbsoluteError"]


@dataclass(kw_only=True, eq=False, repr=False)
class MeanAbsoluteError(LabelMean):
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
        "average error",
        "a smaller average error",
        "The average distance of a prediction from the truth, in units of the target's deviation.",
    )

    ignore_nan: bool = False

    @property
    def missing(self) -> float | None:
        return float("nan") if self.ignore_nan else None

    def parts(self, outputs: Outputs, targets: Targets) -> Parts:
        output = pick(outputs, self.output)
        aim, known = known_numbers(targets[self.target], self.ignore_nan)
        apart = (output - aligned(aim, output, self.target)).abs()
        if known is not None:
            known = known.reshape(output.shape)
        return Parts(apart, known, sample_weights(apart, targets, self.weight))

    def unit(self, scale: float) -> float:
        return scale
