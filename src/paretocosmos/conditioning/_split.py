"""A first layer whose input is split: samples on one side, rays on the other.

Concatenating a ray to every sample of a batch and multiplying equals ``W_x x + W_r r``. The second
term is the same for all samples of a ray, so it is computed once per ray and added.

Sizes are read as ``x.shape[0]``: ``len(x)`` is a plain number, which an exported model would keep.
"""

import math
from abc import ABC, abstractmethod
from typing import Generic, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from paretocosmos.conditioning._batch import FIRST, Lead, ahead, behind, check_groups
from paretocosmos.conditioning._listening import How, Listener
from paretocosmos.errors import ConfigurationError
from paretocosmos.layers.kernels import map_term
from paretocosmos.runtime.torch_private import hooked

__all__ = ["Layer", "Split", "SplitConv", "SplitLinear", "spread"]

Layer = TypeVar("Layer", bound=nn.Linear | nn.Conv2d)


class Split(Listener, ABC, Generic[Layer]):
    """A layer that also reads what is set on it as `rays`: ``layer(x) + ray(r)``.

    Only the weights that read the rays are new; the layer handed over is kept as it is, unless it
    is `joined`.

    Args:
        layer: what reads the samples.
        ray: what reads the rays.
        zero: start with new weights of zero, so that it gives what the layer alone gives; else they
            are drawn as a layer of the joined width draws them.
        joined: scale the layer's weights down to what a layer of the joined width draws, too.
    """

    layer: Layer

    def __init__(self, layer: Layer, ray: Layer, *, zero: bool, joined: bool) -> None:
        super().__init__(layer)
        self.ray = ray
        ray.to(layer.weight.device, layer.weight.dtype)
        own, new = layer.weight[0].numel(), ray.weight[0].numel()
        if zero:
            nn.init.zeros_(ray.weight)
        else:
            bound = 1 / math.sqrt(own + new)
            nn.init.uniform_(ray.weight, -bound, bound)
        if joined:
            with torch.no_grad():
                for drawn in layer.parameters():
                    drawn.mul_(math.sqrt(own / (own + new)))

    @abstractmethod
    def forward(self, inputs: Tensor) -> Tensor:
        """``[B, ...]`` to ``[B, ...]``, or to ``[N * B, ...]`` in a sweep."""


class SplitLinear(Split[nn.Linear]):
    """A linear layer that also reads the rays ``[G, J]`` set on it."""

    def __init__(
        self, layer: nn.Linear, objectives: int, *, zero: bool = False, joined: bool = False
    ) -> None:
        ray = nn.Linear(objectives, layer.out_features, bias=False)
        super().__init__(layer, ray, zero=zero, joined=joined)

    def forward(self, inputs: Tensor) -> Tensor:
        rays = self.heard()
        if self.how == "groups" and rays.shape[0] == 1 and _unhooked(self.layer):
            # one ray for the whole batch is a bias
            shift = torch.addmv(self.layer.bias, self.ray.weight, rays[0])
            return F.linear(inputs, self.layer.weight, shift)
        features, lead = self.layer(inputs), self.lead if rays.shape[0] > 1 else FIRST
        return behind(spread(ahead(features, lead), self.ray(rays), self.how), lead)


class SplitConv(Split[nn.Conv2d]):
    """A convolution that also reads the maps ``[G, J, h, w]`` set on it, enlarged to the image."""

    def __init__(
        self, layer: nn.Conv2d, objectives: int, *, zero: bool = False, joined: bool = False
    ) -> None:
        if layer.groups != 1:
            raise ConfigurationError(
                "`groups` of a convolution that reads a ray must be 1, so that every filter sees "
                f"the ray, found {layer.groups}: name another convolution with `layer`"
            )
        ray = nn.Conv2d(
            objectives,
            layer.out_channels,
            layer.kernel_size,  # type: ignore[arg-type]  # torch declares tuples of any length
            stride=layer.stride,  # type: ignore[arg-type]
            padding=layer.padding,  # type: ignore[arg-type]
            dilation=layer.dilation,  # type: ignore[arg-type]
            padding_mode=layer.padding_mode,
            bias=False,
        )
        super().__init__(layer, ray, zero=zero, joined=joined)
        self._simple = (ray.stride, ray.padding, ray.dilation) == ((1, 1), (0, 0), (1, 1))

    def forward(self, inputs: Tensor) -> Tensor:
        lead = self.lead
        features = ahead(self.layer(inputs), lead)
        return behind(spread(features, self.term(inputs), self.how), lead)

    def follows(self, lead: Lead) -> bool:
        return lead.axis == 0

    def term(self, inputs: Tensor) -> Tensor:
        """What the rays add to the layer's output: ``[G, O, H', W']``, without its bias."""
        rays = self.heard()
        if self.how == "groups":
            check_groups(inputs.shape[0], rays.shape[0])
        size = (inputs.shape[-2], inputs.shape[-1])
        if self._simple:
            return map_term(rays, self.ray.weight, size)
        term: Tensor = self.ray(F.interpolate(rays, size=size, mode="nearest"))
        return term


def _unhooked(layer: nn.Linear) -> bool:
    """Whether a linear layer is its weight and its bias and nothing that calling it would add."""
    return type(layer) is nn.Linear and layer.bias is not None and not hooked(layer)


def spread(features: Tensor, terms: Tensor, how: How) -> Tensor:
    """Add one term per ray to features: ``[B, ...] + [G or N, ...]``.

    ``"groups"`` gives every group of B/G neighbouring samples its ray's term, ``[B, ...]`` out;
    ``"sweep"`` gives every sample every ray's term, ``[N * B, ...]`` out.
    """
    if features.ndim == terms.ndim == 4 and features.stride(1) == 1:
        # channels lie last in memory: added in that order, the terms' gradient, a sum over samples,
        # takes 0.2 instead of 3.5 ms (256 x 10 x 32 x 32, two CPU cores)
        return _add(features.movedim(1, -1), terms.movedim(1, -1), how).movedim(-1, 1)
    while terms.ndim < features.ndim:
        terms = terms.unsqueeze(1)
    return _add(features, terms, how)


def _add(features: Tensor, terms: Tensor, how: How) -> Tensor:
    if how == "sweep":
        return (features.unsqueeze(0) + terms.unsqueeze(1)).flatten(0, 1)
    samples, groups = features.shape[0], terms.shape[0]
    check_groups(samples, groups)
    if groups in (1, samples):
        return features + terms
    grouped = torch.unflatten(features, 0, (groups, samples // groups))
    return (grouped + terms.unsqueeze(1)).flatten(0, 1)
