"""Which layers an adapter of low rank can be put on, and the one that GPT-2 is made of."""

import re
from typing import Any

import torch
from torch import nn

from paretocosmos.conditioning._kinds import base_of, is_conv1d
from paretocosmos.conditioning._layers import matrices_of, uncalled
from paretocosmos.conditioning._low_rank import LowRank, LowRankLinear, adapted
from paretocosmos.conditioning._pieces import source_of

__all__ = ["adaptable", "adapter", "bypassed"]


class LowRankConv1D(LowRankLinear):
    """A linear layer whose weight is stored as ``[in, out]``: `Conv1D` of `transformers`."""

    def __init__(self, layer: Any, objectives: int, rank: int) -> None:
        reads = nn.Linear(layer.nx, objectives * rank, bias=False)
        LowRank.__init__(self, layer, reads, layer.nf, objectives)


def adaptable(network: nn.Module) -> list[str]:
    """The layers that can be adapted, by dotted names, in the order they were written."""
    known = set(matrices_of(network))
    found: dict[nn.Module, str] = {}
    for name, part in network.named_modules():
        if name in known or (is_conv1d(part) and uncalled(network, name) is None):
            weight = base_of(part).weight
            real = isinstance(weight, torch.Tensor) and weight.is_floating_point()
            if real and not bypassed(network, name):
                found.setdefault(part, name)
    return list(found.values())


def bypassed(network: nn.Module, name: str) -> bool:
    """Whether the module around a layer computes with its weight instead of calling it.

    As Mamba's mixer does: an adapter would not be heard there. Asking for the weight's type or
    place is no computation.
    """
    around, _, last = name.rpartition(".")
    kind: Any = type(network.get_submodule(around))
    text = source_of(kind) if name else ""
    asks = r"\.(?:dtype|device|shape|size|ndim|data\.dtype)"
    uses = rf"(?<!isinstance\()self\.{re.escape(last)}\.weight\b(?!{asks})"
    return re.search(uses, text) is not None


def adapter(layer: nn.Module, objectives: int, rank: int) -> LowRank:
    """A layer plus low-rank weights of every objective; its bias stays as it is."""
    made = (LowRankConv1D if is_conv1d(layer) else adapted)(layer, objectives, rank)
    made.shifts = None
    return made
