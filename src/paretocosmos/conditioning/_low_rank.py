"""A layer whose weights move with the ray, by matrices of low rank.

``W(r) x`` with ``W(r) = W + Σ_j c_j B_j A_j`` is computed as ``W x + B (c · A x)``: one narrow
layer reads the samples for all objectives, the ray scales what it gives, and a matrix brings that
to the layer's outputs. So every sample may have its own ray, and no ray has weights of its own,
except where a kernel takes them (`LowRankConv.moved`): few rays, many samples each.

Sizes are read as ``x.shape[0]``: ``len(x)`` is a plain number, which an exported model would keep.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from paretocosmos.conditioning._batch import Lead, ahead, behind, check_groups
from paretocosmos.conditioning._kinds import base_of
from paretocosmos.conditioning._listening import Listener
from paretocosmos.conditioning._split import spread
from paretocosmos.runtime.torch_private import Convolution

__all__ = ["LowRank", "adapted"]

CONVOLUTIONS: dict[type[nn.Module], Any] = {
    nn.Conv1d: F.conv1d,
    nn.Conv2d: F.conv2d,
    nn.Conv3d: F.conv3d,
}


class LowRank(Listener, ABC):
    """A layer plus what the ray adds to its weight and its bias.

    It hears numbers c, ``[G, N]``, each for as many neighbouring ranks: `film` tells it the centred
    ray, `lora` one number for each rank. Only A is drawn, as the layer draws its own weights; B and
    d are zero, so that it gives what the layer alone gives.

    Args:
        layer: kept as it is.
        reads: A of all objectives, ``[J * rank, ...]``: a layer like it.
        outputs: channels the layer gives.
        objectives: J.
    """

    _trails: ClassVar[bool]
    """Whether channels are on the last axis, so that samples may be on any other."""

    reads: Any
    shifts: nn.Parameter | None

    def __init__(self, layer: nn.Module, reads: nn.Module, outputs: int, objectives: int) -> None:
        super().__init__(layer)
        base: Any = base_of(layer)  # an adapter around it is kept as well
        like: Tensor = base.weight
        self.reads = reads.to(like.device, like.dtype)
        ranks: int = self.reads.weight.shape[0]
        self.writes = nn.Parameter(torch.zeros(outputs, ranks).to(like))
        if base.bias is None:  # what follows it shifts, or nothing is to be shifted
            self.register_parameter("shifts", None)
        else:
            self.shifts = nn.Parameter(torch.zeros(objectives, outputs).to(like))

    def forward(self, inputs: Tensor) -> Tensor:
        """``[B, ...]`` to ``[B, ...]``."""
        outputs: Tensor = self.layer(inputs)
        return outputs + self._added(inputs)

    def _added(self, inputs: Tensor) -> Tensor:
        """What the rays add to the layer's outputs, every sample's own."""
        rays, scales = self._heard()
        read: Tensor = self.reads(inputs)
        if rays.shape[0] > 1:
            read = ahead(read, self.lead)
        check_groups(read.shape[0], rays.shape[0])
        shifts = None if self.shifts is None else rays @ self.shifts
        if rays.shape[0] == 1:  # one ray for the whole batch is a matrix and a bias
            return self._write(read, self.writes * scales, None if shifts is None else shifts[0])
        written = self._write(_scaled(read, self._along(scales, read)), self.writes, None)
        if shifts is not None:
            written = spread(written, self._along(shifts, read), "groups")
        return behind(written, self.lead)

    def follows(self, lead: Lead) -> bool:
        return lead.axis == 0 or self._trails

    def _heard(self) -> tuple[Tensor, Tensor]:
        """The rays ``[G, J]``, and what they scale what was read by, ``[G, J * rank]``."""
        rays = self.heard().to(self.writes)
        ranks = self.writes.shape[1] // rays.shape[1]
        return rays, rays.unsqueeze(-1).expand(-1, -1, ranks).flatten(1)

    @abstractmethod
    def _write(self, read: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """What was read, ``[B, ...]`` with ``J * rank`` channels, times a matrix, plus a bias."""

    @abstractmethod
    def _along(self, terms: Tensor, read: Tensor) -> Tensor:
        """One number per group and channel, ``[G, C]``, with as many axes as what was read."""


class LowRankLinear(LowRank):
    """A linear layer, its channels on the last axis."""

    _trails = True

    def __init__(self, layer: nn.Module, objectives: int, rank: int) -> None:
        base = base_of(layer)
        assert isinstance(base, nn.Linear)
        reads = nn.Linear(base.in_features, objectives * rank, bias=False)
        super().__init__(layer, reads, base.out_features, objectives)

    def _write(self, read: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        return F.linear(read, weight, bias)

    def _along(self, terms: Tensor, read: Tensor) -> Tensor:
        return terms[(slice(None), *[None] * (read.ndim - 2))]


class LowRankConv(LowRank):
    """A convolution, its channels on the second axis."""

    _trails = False

    def __init__(self, layer: nn.Module, objectives: int, rank: int) -> None:
        base = base_of(layer)
        assert isinstance(base, Convolution)
        (kind,) = (kind for kind in CONVOLUTIONS if isinstance(base, kind))
        alike: Any = kind
        reads = alike(
            base.in_channels,
            objectives * rank,
            base.kernel_size,
            stride=base.stride,
            padding=base.padding,
            dilation=base.dilation,
            padding_mode=base.padding_mode,
            bias=False,
        )
        super().__init__(layer, reads, base.out_channels, objectives)
        self._by_points: Any = CONVOLUTIONS[kind]

    def moved(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """The layer at each ray, written out for a kernel: ``[G, O, C, ...]`` and ``[G, O]``."""
        rays, scales = self._heard()
        check_groups(inputs.shape[0], rays.shape[0])
        weight: Tensor = self.layer.weight
        added = (self.writes * scales.unsqueeze(1)) @ self.reads.weight.flatten(1)
        shifts = 0 if self.shifts is None else rays @ self.shifts
        return weight + added.unflatten(-1, weight.shape[1:]), self.layer.bias + shifts

    def _write(self, read: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        point = weight[(..., *[None] * (read.ndim - 2))]
        written: Tensor = self._by_points(read, point, bias)
        return written

    def _along(self, terms: Tensor, read: Tensor) -> Tensor:
        return terms[(..., *[None] * (read.ndim - 2))]


def adapted(layer: nn.Module, objectives: int, rank: int) -> LowRank:
    """A linear layer or a convolution whose weights move with the ray."""
    if isinstance(base_of(layer), nn.Linear):
        return LowRankLinear(layer, objectives, rank)
    return LowRankConv(layer, objectives, rank)


def _scaled(read: Tensor, scales: Tensor) -> Tensor:
    """Every group of neighbouring samples times its scales, ``[B, ...]`` and ``[G, ...]``."""
    samples, groups = read.shape[0], scales.shape[0]
    if groups == samples:
        return read * scales
    grouped = torch.unflatten(read, 0, (groups, samples // groups))
    return (grouped * scales.unsqueeze(1)).flatten(0, 1)
