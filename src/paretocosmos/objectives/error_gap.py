"""The gap between groups in how wrong the predictions are."""

from torch import Tensor

from paretocosmos.errors import ConfigurationError
from paretocosmos.objectives._base import logits_of
from paretocosmos.objectives._groups import MeanGap
from paretocosmos.types import Outputs, Targets

__all__ = ["ErrorGap"]


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

    meaning = (
        "the mean error of a group, largest minus smallest over the groups. It says nothing of "
        "whether predictions are too high for one group and too low for another"
    )

    def __init__(
        self,
        *,
        name: str | None = None,
        output: str | None = None,
        target: str = "label",
        sensitive: str = "sensitive",
        groups: int = 2,
        power: int = 2,
    ) -> None:
        super().__init__(
            name=name, output=output, target=target, sensitive=sensitive, groups=groups
        )
        if power not in (1, 2):
            raise ConfigurationError(f"`power` is 1 or 2, found {power}")
        self.power = power

    def value(self, outputs: Outputs, targets: Targets) -> Tensor:
        output = logits_of(outputs, self.output)
        apart = output - self.label(targets, output)
        return apart.square() if self.power == 2 else apart.abs()

    def unit(self, scale: float) -> float:
        return scale**self.power
