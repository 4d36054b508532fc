"""The preference to predict at: one for all rows, or one for each."""

from typing import Any

import torch
from torch import Tensor

from paretocosmos.errors import ConfigurationError
from paretocosmos.pareto.rays import as_rays

__all__ = ["rays_for"]


def rays_for(given: Any, objectives: int, rows: int | None, off_simplex: str) -> Tensor:
    """Rays ``[1, J]`` or ``[rows, J]``.

    Args:
        given: a ray ``[J]``, rays ``[rows, J]``, or `None` for equal weights.
        objectives: J.
        rows: how many there are; `None` where only one ray will do.
        off_simplex: ``"refuse"`` or ``"normalise"`` what does not sum to 1.
    """
    even = torch.full((1, objectives), 1 / objectives)
    rays = as_rays(even if given is None else given, objectives, off_simplex=off_simplex)
    if len(rays) not in (1, rows or 1):
        wanted = "one ray" if rows is None else f"one ray, or one for each of the {rows} rows"
        raise ConfigurationError(f"`preference` is {wanted}, found {len(rays)}")
    return rays
