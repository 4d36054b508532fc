"""What a network of the list is: a kind, and how to build it with an example of its inputs."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["SAMPLES", "STEPS", "Built", "Made", "numbers", "tokens"]

SAMPLES = 6
STEPS = 6
"""Of a sequence: as many as there are samples, so that shapes alone do not tell them apart."""

Built = tuple[nn.Module, Any]
"""A network and its inputs."""

Made = Callable[[], Built]


def numbers(*shape: int) -> Tensor:
    """A batch of samples of this shape."""
    return torch.randn(SAMPLES, *shape)


def tokens(count: int, *shape: int) -> Tensor:
    """A batch of token ids."""
    return torch.randint(0, count, (SAMPLES, *shape))
