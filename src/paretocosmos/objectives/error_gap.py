"""The gap between groups in how wrong the predictions are."""

from dataclasses import dataclass

from torch import Tensor

from paretocosmos.errors import ConfigurationError
from paretocosmos.objectives._groups import MeanGap
from paretocosmos.types import Measure, Outputs, Targets

__all__ = ["ErrorGap"]


@dataclass(kw_only=True, eq=False, repr=False)
class ErrorGap(MeanGap):
    """Largest minus smallest mean error of a group, for predictions that are numbers ``[B]``.

    A group that a training batch lacks is left out there; in the score of a whole split it makes
    the gap NaN.

    Args:
        name: how fronts call it; the file's name by default.
        output: which head it reads, where the network has several.
        target: which target it compares with.
        sensitive: which target holds the sensitive groups, numbered from 0.
        groups: how many sensitive groups there are.
        power: 2 for the squared error, 1 for the absolute.

    >>> import torch
    >>> targets = {"label": torch.zeros(3), "sensitive": torch.tensor([0, 0, 1])}
    >>> ErrorGap().score(torch.tensor([1.0, 1.0, 3.0]), targets)
    tensor(8.)
    """

    measure = Measure("gap in errors", "a smaller gap in errors")
    meaning = (
        "the mean error of a group, largest minus smallest over the groups. It says nothing of "
        "whether predictions are too high for one group and too low for another"
    )

    power: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.power not in (1, 2):
            raise ConfigurationError(f"`power` must be 1 or 2, found {self.power}")

    def value(self, outputs: Outputs, targets: Targets) -> Tensor:
        output = self.read(outputs)
        apart = output - self.label(targets, output)
        return apart.square() if self.power == 2 else apart.abs()

    def unit(self, scale: float) -> float:
        return scale**self.power
