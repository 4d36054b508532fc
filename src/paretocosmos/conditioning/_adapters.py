"""Which layers an adapter of low rank can be put on, and the one that GPT-2 is made of."""

from typing import Any

import torch
from torch import nn

from paretocosmos.conditioning._layers import matrices_of, uncalled
from paretocosmos.conditioning._low_rank import LowRank, LowRankLinear, adapted

__all__ = ["adaptable", "adapter", "is_conv1d"]


class LowRankConv1D(LowRankLinear):
    """A linear layer whose weight is stored as ``[in, out]``: `Conv1D` of `transformers`."""

    def __init__(self, layer: Any, objectives: int, rank: int) -> None:
        reads = nn.Linear(layer.nx, objectives * rank, bias=False)
        LowRank.__init__(self, layer, reads, layer.nf, objectives)


def is_conv1d(layer: nn.Module) -> bool:
    """Whether a layer is the `Conv1D` of `transformers`, known without importing that."""
    kind = type(layer)
    return kind.__name__ == "Conv1D" and kind.__module__.startswith("transformers.")


def adaptable(network: nn.Module) -> list[str]:
    """The layers that can be adapted, by dotted names, in the order they were written."""
    known = set(matrices_of(network))
    found: dict[nn.Module, str] = {}
    for name, part in network.named_modules():
        if name in known or (is_conv1d(part) and uncalled(network, name) is None):
            weight = part.weight
            if isinstance(weight, torch.Tensor) and weight.is_floating_point():
                found.setdefault(part, name)
    return list(found.values())


def adapter(layer: nn.Module, objectives: int, rank: int) -> LowRank:
    """A layer plus low-rank weights of every objective; its bias stays as it is."""
    made = (LowRankConv1D if is_conv1d(layer) else adapted)(layer, objectives, rank)
    made.shifts = None
    return made
