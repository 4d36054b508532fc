"""Labels that are missing, smoothed or weighted: means over what there is."""

from collections.abc import Sequence

import torch
from torch import Tensor

from paretocosmos.errors import ConfigurationError
from paretocosmos.types import Targets

__all__ = ["as_class_weight", "check_smoothing", "mean_over", "sample_weights"]


def sample_weights(like: Tensor, targets: Targets, name: str) -> Tensor | None:
    """What each sample of values ``[B, ...]`` counts for, ``[B, 1, ...]``; `None`: all the same."""
    weight = targets.get(name)
    if weight is None:
        return None
    if weight.ndim == like.ndim:  # one for every value
        return weight.to(like.dtype)
    return weight.to(like.dtype).reshape(len(like), *[1] * (like.ndim - 1))


def mean_over(
    values: Tensor,
    known: Tensor | None,
    weights: Tensor | None,
    *,
    counted: Tensor | None = None,
    empty: float = 0.0,
) -> Tensor:
    """The mean of values ``[B, ...]`` that are known, each counted by its weight.

    Args:
        values: may be NaN where they are not known.
        known: which of them are; `None` for all.
        weights: of the values; `None` for equal ones.
        counted: what each value counts for in the divisor, times its weight; 1 if `None`.
        empty: what it is where nothing counts. As a loss 0, without a gradient: a batch without
            labels changes nothing. As a score NaN: nothing can be said.
    """
    if known is None and weights is None and counted is None:
        return values.mean()
    weight = torch.ones_like(values) if weights is None else weights.expand_as(values)
    if known is not None:
        values, weight = torch.where(known, values, 0.0), torch.where(known, weight, 0.0)
    total = weight.sum() if counted is None else (weight * counted).sum()
    mean = (values * weight).sum() / torch.where(total > 0, total, 1.0)
    return mean if empty == 0 else torch.where(total > 0, mean, empty)


def as_class_weight(
    given: Sequence[float] | None, classes: int | None = None
) -> tuple[float, ...] | None:
    """The weight of every class, checked."""
    if given is None:
        return None
    found = tuple(float(weight) for weight in given)
    if not found or any(not 0 <= weight < float("inf") for weight in found) or not any(found):
        raise ConfigurationError(
            f"`class_weight` has one number for every class, 0 or more, not all 0; found {given}"
        )
    if classes is not None and len(found) != classes:
        raise ConfigurationError(
            f"`class_weight` has one number for each of {classes} classes, found {len(found)}"
        )
    return found


def check_smoothing(smoothing: float) -> None:
    """Refuse a share of the label that is none."""
    if not 0 <= smoothing < 1:
        raise ConfigurationError(f"`label_smoothing` is from 0 to below 1, found {smoothing}")
