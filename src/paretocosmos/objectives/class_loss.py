"""The cross-entropy of one class."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from paretocosmos.errors import ConfigurationError
from paretocosmos.objectives._base import Objective, logits_of
from paretocosmos.objectives._groups import samples
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

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.of < 0:
            raise ConfigurationError(f"`of` is a class, numbered from 0, found {self.of}")
        if self.share is not None and not 0 < self.share <= 1:
            raise ConfigurationError(f"`share` lies between 0 and 1, found {self.share}")

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        total, there = self._sums(outputs, targets)
        if self.share is not None:
            # one after the other: all weights times 2 then change no bit
            return total / samples(targets[self.target], targets) / self.share
        return total / torch.where(there > 0, there, 1.0)

    def score(self, outputs: Outputs, targets: Targets) -> Tensor:
        total, there = self._sums(outputs, targets)
        return total / there

    def _sums(self, outputs: Outputs, targets: Targets) -> tuple[Tensor, Tensor]:
        """The loss summed over the samples of the class, and how many they are."""
        logits = logits_of(outputs, self.output)
        if logits.ndim == 1:
            # log(1 + exp(-z)) for the positive class, log(1 + exp(z)) for the negative
            each = F.softplus(-logits if self.of else logits)
        else:
            each = -F.log_softmax(logits, dim=-1)[..., self.of]
        member = (targets[self.target].reshape(each.shape) == self.of).to(each.dtype)
        if "weight" in targets:
            member = member * targets["weight"].reshape(each.shape)
        return (each * member).sum(), member.sum()
