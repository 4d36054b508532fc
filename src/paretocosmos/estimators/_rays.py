"""The preference to predict at: one for all rows, or one for each."""

import warnings
from typing import Any

import numpy as np
import torch
from torch import Tensor

from paretocosmos.errors import ConfigurationError
from paretocosmos.rays import as_rays

__all__ = ["rays_for"]

OFF_SIMPLEX = ("refuse", "normalise")
# As far as the sum of a ray may be from 1, as in `as_rays`.
CLOSE = 1e-3


def rays_for(given: Any, objectives: int, rows: int | None, off_simplex: str) -> Tensor:
    """Rays ``[1, J]`` or ``[rows, J]``.

    Args:
        given: a ray ``[J]``, rays ``[rows, J]``, or `None` for equal weights.
        objectives: J.
        rows: how many there are; `None` where only one ray will do.
        off_simplex: ``"refuse"`` or ``"normalise"`` what does not sum to 1.
    """
    if off_simplex not in OFF_SIMPLEX:
        raise ConfigurationError(f"`off_simplex` is `refuse` or `normalise`, found `{off_simplex}`")
    if given is None:
        return torch.full((1, objectives), 1 / objectives)
    if off_simplex == "normalise":
        given = _normalised(given)
    rays = as_rays(given, objectives)
    if len(rays) not in (1, rows or 1):
        wanted = "one ray" if rows is None else f"one ray, or one for each of the {rows} rows"
        raise ConfigurationError(f"`preference` is {wanted}, found {len(rays)}")
    return rays


def _normalised(given: Any) -> Any:
    """Rays that sum to 1; what cannot be scaled is left for the refusal."""
    try:
        rays = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        return given
    total = rays.sum(axis=-1, keepdims=True)
    if not np.isfinite(total).all() or not (total > 0).all():
        return given
    worst = float(total.flat[np.abs(total - 1).argmax()])
    if abs(worst - 1) > CLOSE:
        warnings.warn(
            f"the entries of `preference` sum to 1, found a sum of {worst:g}: they are divided "
            "by it",
            UserWarning,
            stacklevel=5,
        )
    return rays / total
