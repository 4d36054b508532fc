"""A first layer whose input is split: samples on one side, rays on the other.

Concatenating a ray to every sample of a batch and multiplying equals ``W_x x + W_r r``. The second
term is the same for all samples of a ray, so it is computed once per ray and added.
"""

import math
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from paretocosmos.errors import ConfigurationError

__all__ = ["SplitLinear", "spread"]

How = Literal["groups", "sweep"]


class SplitLinear(nn.Module):
    """A linear layer that also reads the rays set on it: ``layer(x) + ray(r)``.

    The layer handed over is kept as it is; only the ray's columns are new, drawn as a linear layer
    of the joined width draws them.
    """

    def __init__(self, layer: nn.Linear, objectives: int) -> None:
        super().__init__()
        self.layer = layer
        self.ray = nn.Linear(objectives, layer.out_features, bias=False)
        self.ray.to(layer.weight.device, layer.weight.dtype)
        bound = 1 / math.sqrt(layer.in_features + objectives)
        nn.init.uniform_(self.ray.weight, -bound, bound)
        self.rays: Tensor | None = None
        self.how: How = "groups"

    def forward(self, inputs: Tensor) -> Tensor:
        assert self.rays is not None
        if self.how == "groups" and len(self.rays) == 1 and self.layer.bias is not None:
            # one ray for the whole batch is a bias
            shift = torch.addmv(self.layer.bias, self.ray.weight, self.rays[0])
            return F.linear(inputs, self.layer.weight, shift)
        return spread(self.layer(inputs), self.ray(self.rays), self.how)


def spread(features: Tensor, terms: Tensor, how: How) -> Tensor:
    """Add one term per ray to features: ``[B, ...] + [G or N, ...]``.

    ``"groups"`` gives every group of B/G neighbouring samples its ray's term, ``[B, ...]`` out;
    ``"sweep"`` gives every sample every ray's term, ``[N * B, ...]`` out.
    """
    while terms.ndim < features.ndim:
        terms = terms.unsqueeze(1)
    if how == "sweep":
        return (features.unsqueeze(0) + terms.unsqueeze(1)).flatten(0, 1)
    samples, groups = features.shape[0], terms.shape[0]
    if samples % groups:
        raise ConfigurationError(
            f"a batch of {samples} samples cannot be split among {groups} rays: use one ray, one "
            "per sample, or a number that divides the batch"
        )
    if groups == samples:
        return features + terms
    grouped = torch.unflatten(features, 0, (groups, samples // groups))
    return (grouped + terms.unsqueeze(1)).flatten(0, 1)
