"""Means over samples, and the sums they are made of."""

import torch
from torch import Tensor

from paretocosmos.objectives._base import mean_of
from paretocosmos.objectives._shapes import aligned
from paretocosmos.types import Targets


def weighted_mean(values: Tensor, targets: Targets) -> Tensor:
    """The mean over samples, weighted where the targets hold a ``weight``."""
    if "weight" not in targets:
        return values.mean()
    return mean_of(weighted_sums(values, targets))


def weighted_sums(values: Tensor, targets: Targets) -> Tensor:
    """The total of a mean over samples, and the weight it is divided by: ``[2]``."""
    weight = targets.get("weight")
    values = values.to(torch.promote_types(values.dtype, torch.float32))  # half of it cannot count
    if weight is None:
        return torch.stack([values.sum(), values.new_full((), values.numel())])
    if weight.ndim == 1 < values.ndim:  # of a sample, for all its positions
        weight = weight.reshape(-1, *[1] * (values.ndim - 1)).expand(values.shape)
    weight = aligned(weight, values, "weight")
    return torch.stack([(values * weight).sum(), weight.sum().to(values.dtype)])
