"""Members: networks that share their matrices and differ by what scales and shifts around them."""

import math
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

__all__ = ["Average", "Scale", "Shift", "averaged"]

Average = Literal["outputs", "probabilities"]


class PerMember(nn.Module):
    """Numbers of each member's own, ``[members, width]``, kept as one vector: they do not decay.

    Rows come for all members, ``[B, members, width]`` or ``[B, 1, width]``, or with one member
    each, in turns, ``[B, width]``.
    """

    def __init__(self, members: int, width: int) -> None:
        super().__init__()
        self.members, self.width = members, width
        self.numbers = nn.Parameter(torch.empty(members * width))

    def _own(self, features: Tensor) -> Tensor:
        """The numbers as they meet the features."""
        own = self.numbers.view(self.members, self.width)
        if features.ndim > 2:
            return own
        rows = features.shape[0]
        return own.repeat(math.ceil(rows / self.members), 1)[:rows]

    def extra_repr(self) -> str:
        return f"members={self.members}, width={self.width}"


class Scale(PerMember):
    """Features times numbers that are drawn around 1, `spread` apart."""

    def __init__(self, members: int, width: int, *, spread: float) -> None:
        super().__init__(members, width)
        nn.init.normal_(self.numbers, 1.0, spread)

    def forward(self, features: Tensor) -> Tensor:
        return features * self._own(features)


class Shift(PerMember):
    """Features plus numbers that start at 0."""

    def __init__(self, members: int, width: int) -> None:
        super().__init__(members, width)
        nn.init.zeros_(self.numbers)

    def forward(self, features: Tensor) -> Tensor:
        return features + self._own(features)


def averaged(outputs: Tensor, average: Average) -> Tensor:
    """What members say together: ``[B, members, width]`` to ``[B, width]``.

    Args:
        outputs: of each.
        average: ``"outputs"``: their mean; ``"probabilities"``: the logits of the mean of the
            probabilities that the members' logits mean, one for yes or no, several for classes.

    >>> sure = torch.tensor([[[0.0], [20.0]]])
    >>> averaged(sure, "probabilities").sigmoid()
    tensor([[0.7500]])
    """
    if average == "outputs":
        return outputs.mean(dim=1)
    if outputs.shape[-1] == 1:
        yes, no = (F.logsigmoid(sign * outputs).logsumexp(dim=1) for sign in (1, -1))
        return yes - no
    return outputs.log_softmax(dim=-1).logsumexp(dim=1) - math.log(outputs.shape[1])
