"""Means over samples, and the sums they are made of."""

from torch import Tensor

from paretocosmos.objectives._base import mean_of
from paretocosmos.objectives._labels import Parts, sample_weights, sums_of
from paretocosmos.types import Targets


def weighted_mean(values: Tensor, targets: Targets) -> Tensor:
    """The mean over samples, weighted where the targets hold a ``weight``."""
    if "weight" not in targets:
        return values.mean()
    return mean_of(weighted_sums(values, targets))


def weighted_sums(values: Tensor, targets: Targets) -> Tensor:
    """The total of a mean over samples, and the weight it is divided by: ``[2]``."""
    return sums_of(Parts(values, weights=sample_weights(values, targets, "weight")))
