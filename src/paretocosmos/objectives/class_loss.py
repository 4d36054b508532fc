"""The cross-entropy of one class."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from paretocosmos.errors import ConfigurationError
from paretocosmos.objectives._base import Objective, logits_of
from paretocosmos.objectives._groups import samples
from paretocosmos.objectives._shapes import aligned, check_axis, classes_last
from paretocosmos.types import Measure, Outputs, Targets

__all__ = ["ClassLoss"]


@dataclass(kw_only=True, eq=False, repr=False)
class ClassLoss(Objective):
    r"""Cross-entropy averaged over the samples of one class: what it costs to miss that class.

    .. math:: \frac{1}{\#\{y = c\}} \sum_{y = c} -\log p_c

    One for every class makes the weight of each a preference: equal weights balance the classes,
    however rare they are. Logits are ``[B]`` or ``[B, 1]`` with labels 0 and 1, or ``[B, K]``. A
    batch without the class costs nothing; in the score of a whole split that is NaN.

    Args:
        name: how fronts call it; the file's name by default.
        output: which head it reads, where the network has several.
        target: the label.
        of: the class, numbered from 0.
        axis: of the classes, where there are several: 1 or -1; the one that fits the labels if
            `None`.
        share: of the samples that are of the class, where it is known: a batch's sum is then
            divided by how many it should have, so that batches without a rare class do not make
            it cheaper.

    >>> ClassLoss(of=1).loss(torch.zeros(4), {"label": torch.tensor([0.0, 1.0, 1.0, 0.0])})
    tensor(0.6931)
    """

    measure = Measure(
        "loss of one class",
        "fewer misses of the class",
        "What it costs to miss a class: the cross-entropy over its own rows.",
    )

    of: int = 1
    share: float | None = None
    axis: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_axis(self.axis)
        if self.of < 0:
            raise ConfigurationError(f"`of` must be a class, numbered from 0, found {self.of}")
        if self.share is not None and not 0 < self.share <= 1:
            raise ConfigurationError(f"`share` must lie between 0 and 1, found {self.share}")

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        total, there = self.sums(outputs, targets).unbind()
        if self.share is not None:
            # one after the other: all weights times 2 then change no bit
            return total / samples(targets[self.target], targets) / self.share
        return total / torch.where(there > 0, there, 1.0)

    def score(self, outputs: Outputs, targets: Targets) -> Tensor:
        return self.from_sums(self.sums(outputs, targets))

    def from_sums(self, sums: Tensor) -> Tensor:
        total, there = sums.unbind()
        return total / there

    def sums(self, outputs: Outputs, targets: Targets) -> Tensor:
        """The loss summed over the samples of the class, and how many they are: ``[2]``."""
        logits, label = logits_of(outputs, self.output), targets[self.target]
        if logits.ndim == 1:
            # log(1 + exp(-z)) for the positive class, log(1 + exp(z)) for the negative
            each = F.softplus(-logits if self.of else logits)
        else:
            last = classes_last(logits, label, self.axis, self.target)
            each = -F.log_softmax(last, dim=-1)[..., self.of]
        member = (aligned(label, each, self.target) == self.of).to(each.dtype)
        if "weight" in targets:
            member = member * aligned(targets["weight"], each, "weight")
        return torch.stack([(each * member).sum(), member.sum()])
