"""The gap between groups in what is predicted for them."""

from torch import Tensor

from paretocosmos.objectives._groups import MeanGap
from paretocosmos.types import Measure, Outputs, Targets

__all__ = ["PredictionGap"]


class PredictionGap(MeanGap):
    """Largest minus smallest mean prediction of a group, for predictions that are numbers ``[B]``.

    Demographic parity for a number instead of a decision. A group that a training batch lacks is
    left out there; in the score of a whole split it makes the gap NaN.

    >>> import torch
    >>> PredictionGap().score(torch.tensor([1.0, 2.0, 5.0]), {"sensitive": torch.tensor([0, 0, 1])})
    tensor(3.5000)
    """

    measure = Measure("gap in average predictions", "a smaller gap in predictions")
    meaning = (
        "the mean prediction for a group, largest minus smallest over the groups, whether the "
        "groups differ in truth or not"
    )

    def value(self, outputs: Outputs, targets: Targets) -> Tensor:
        return self.read(outputs)

    def unit(self, scale: float) -> float:
        return scale
