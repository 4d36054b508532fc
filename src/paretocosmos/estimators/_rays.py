"""The preference to predict at: one for all rows, or one for each."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from paretocosmos.errors import ConfigurationError
from paretocosmos.pareto.rays import as_rays

__all__ = ["rays_for"]


def rays_for(given: Any, names: Sequence[str], rows: int | None, off_simplex: str) -> Tensor:
    """Rays ``[1, J]`` or ``[rows, J]``.

    Args:
        given: a ray ``[J]``, weights by name, rays ``[rows, J]``, or `None` for equal weights.
        names: of the J objectives.
        rows: how many there are; `None` where only one ray will do.
        off_simplex: ``"refuse"`` or ``"normalise"`` what does not sum to 1.
    """
    even = torch.full((1, len(names)), 1 / len(names))
    asked = even if given is None else given
    rays = as_rays(asked, len(names), names=names, off_simplex=off_simplex)
    if len(rays) not in (1, rows or 1):
        wanted = "one ray" if rows is None else f"one ray, or one for each of the {rows} rows"
        raise ConfigurationError(f"`preference` must be {wanted}, found {len(rays)}")
    return rays
