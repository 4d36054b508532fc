"""The answer that leans against a gap: the closed form, and what it is made of."""

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor

from paretocosmos.errors import ConfigurationError
from paretocosmos.types import Outputs

__all__ = ["ANSWER", "OF_NO", "OF_YES", "PLACES", "likely", "tilted"]

ANSWER, OF_NO, OF_YES = "answer", "groups_of_no", "groups_of_yes"
"""What a network that leans learns: the logit of a yes, those of the groups of either class."""
PLACES = 257
"""Places along the way from no weight on the gap to all of it: a staircase, so that every weight
has multipliers whose gap was counted."""


def likely(found: Outputs) -> tuple[Tensor, Tensor]:
    """The answer's logit ``[B]``, and how likely are class and group, ``[B, 2, groups]``."""
    if not isinstance(found, Mapping) or not {ANSWER, OF_NO, OF_YES} <= found.keys():
        outputs = ", ".join(found) if isinstance(found, Mapping) else "one tensor"
        raise ConfigurationError(
            f"`tilt` needs a network with the outputs `{ANSWER}`, `{OF_NO}` and `{OF_YES}`, found "
            f"{outputs}: leave `conditioning` out, or leave `backbone` out"
        )
    answer = found[ANSWER].squeeze(-1)
    classes = -F.softplus(torch.stack([answer, -answer], dim=-1)).unsqueeze(-1)
    groups = torch.stack([found[OF_NO], found[OF_YES]], dim=-2).log_softmax(dim=-1)
    return answer, (classes + groups).exp()


def tilted(answer: Tensor, against: Tensor) -> Tensor:
    r"""The logit of the q in [0, 1] that solves m q² - (1 + m) q + p = 0.

    It minimises -p log q - (1 - p) log(1 - q) + m q: with m = 0 it is p, and with m > 0 it is less.

    Args:
        answer: the logit of p.
        against: m, what a yes costs.

    >>> tilted(torch.tensor(0.0), torch.tensor([0.0, 1.5])).sigmoid()
    tensor([0.5000, 0.2324])
    """
    # Small shares need their own digits. ONNX Runtime's sigmoid has seven of 1, none of 1e-8.
    yes, no = (-F.softplus(-answer)).exp(), (-F.softplus(answer)).exp()
    # two forms of everything, of which one has no difference of like numbers
    root = torch.where(
        against > 0,
        (1 - against).square() + 4 * against * no,
        (1 + against).square() - 4 * against * yes,
    ).sqrt()
    less = torch.where(
        against > 1, 4 * against * no / (root + against - 1).clamp(min=1e-30), root + 1 - against
    )
    more = torch.where(
        against < -1, -4 * against * yes / (root - against - 1).clamp(min=1e-30), root + 1 + against
    )
    return answer + less.clamp(min=1e-30).log() - more.clamp(min=1e-30).log()
