"""Labels that are missing, smoothed or weighted: means over what there is."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from paretocosmos.errors import ConfigurationError
from paretocosmos.objectives._base import Objective, mean_of, pick
from paretocosmos.objectives._shapes import aligned
from paretocosmos.types import Outputs, Targets

__all__ = [
    "LabelMean",
    "NumberMean",
    "Parts",
    "as_class_weight",
    "check_smoothing",
    "known_numbers",
    "sample_weights",
    "sums_of",
]


class Parts(NamedTuple):
    """What a mean over labels is made of.

    Attributes:
        values: of every label, ``[B, ...]``; anything where it is not known.
        known: which labels there are; `None` for all.
        weights: of the values; `None` for equal ones.
        counted: what each value counts for in the divisor, times its weight; 1 if `None`.
    """

    values: Tensor
    known: Tensor | None = None
    weights: Tensor | None = None
    counted: Tensor | None = None


@dataclass(kw_only=True, eq=False, repr=False)
class LabelMean(Objective):
    """The mean of something over the labels that there are.

    A batch without labels has a loss of 0 and no gradient, so that it changes nothing; a split
    without labels has the score NaN, since nothing can be said.
    """

    weight: str = "weight"

    @abstractmethod
    def parts(self, outputs: Outputs, targets: Targets) -> Parts:
        """What is averaged."""

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        parts = self.parts(outputs, targets)
        return parts.values.mean() if _equal(parts) else mean_of(sums_of(parts))

    def sums(self, outputs: Outputs, targets: Targets) -> Tensor:
        return sums_of(self.parts(outputs, targets))

    def from_sums(self, sums: Tensor) -> Tensor:
        mean = mean_of(sums)
        return mean if self.missing is None else torch.where(sums[1] > 0, mean, torch.nan)


@dataclass(kw_only=True, eq=False, repr=False)
class NumberMean(LabelMean):
    """The mean of a distance between outputs and numbers, which may be NaN if `ignore_nan`."""

    ignore_nan: bool = False

    @property
    def missing(self) -> float | None:
        return float("nan") if self.ignore_nan else None

    @abstractmethod
    def distance(self, apart: Tensor) -> Tensor:
        """Of every output, by how far it is from its number, with a sign."""

    def parts(self, outputs: Outputs, targets: Targets) -> Parts:
        output = pick(outputs, self.output)
        aim, known = known_numbers(targets[self.target], self.ignore_nan)
        each = self.distance(output - aligned(aim, output, self.target))
        if known is not None:
            known = known.reshape(output.shape)
        return Parts(each, known, sample_weights(each, targets, self.weight))


def _equal(parts: Parts) -> bool:
    return parts.known is None and parts.weights is None and parts.counted is None


def sums_of(parts: Parts) -> Tensor:
    """The total, and the weight it is divided by: ``[2]``."""
    values, known, weights, counted = parts
    values = values.to(torch.promote_types(values.dtype, torch.float32))  # half of it cannot count
    if _equal(parts):
        return torch.stack([values.sum(), values.new_full((), values.numel())])
    weight = torch.ones_like(values) if weights is None else weights.to(values).expand_as(values)
    if known is not None:
        values, weight = torch.where(known, values, 0.0), torch.where(known, weight, 0.0)
    total = weight.sum() if counted is None else (weight * counted).sum()
    return torch.stack([(values * weight).sum(), total])


def sample_weights(like: Tensor, targets: Targets, name: str) -> Tensor | None:
    """What each sample of values ``[B, ...]`` counts for, ``[B, 1, ...]``; `None`: all the same."""
    weight = targets.get(name)
    if weight is None:
        return None
    if weight.numel() == len(like):  # of a sample, for all its values
        return weight.to(like.dtype).reshape(-1, *[1] * (like.ndim - 1))
    return aligned(weight.to(like.dtype), like, name)


def known_numbers(target: Tensor, ignore_nan: bool) -> tuple[Tensor, Tensor | None]:
    """A target without its NaNs, and which of it are numbers; `None` where all are to be."""
    if not ignore_nan:
        return target, None
    known = ~target.isnan()
    return target.where(known, 0.0), known


def as_class_weight(
    given: Sequence[float] | None, classes: int | None = None
) -> tuple[float, ...] | None:
    """The weight of every class, checked."""
    if given is None:
        return None
    found = tuple(float(weight) for weight in given)
    if not found or any(not 0 <= weight < float("inf") for weight in found) or not any(found):
        raise ConfigurationError(
            "`class_weight` must have one number for every class, 0 or more, not all 0; found "
            f"{given}"
        )
    if classes is not None and len(found) != classes:
        raise ConfigurationError(
            f"`class_weight` must have one number for each of {classes} classes, found {len(found)}"
        )
    return found


def check_smoothing(smoothing: float) -> None:
    """Refuse a share of the label that is none."""
    if not 0 <= smoothing < 1:
        raise ConfigurationError(f"`label_smoothing` must be from 0 to below 1, found {smoothing}")
