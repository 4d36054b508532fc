"""How wide a front is, how evenly its points lie, and how closely they follow their rays."""

from typing import Literal

import numpy as np

from paretocosmos.errors import ConfigurationError
from paretocosmos.pareto.front import Array, Front
from paretocosmos.pareto.metrics.volume import box_of

__all__ = ["angle", "check_same", "range_covered", "spacing", "span"]


def range_covered(front: Front, of: Front | None = None) -> Array:
    """The range of each objective over the rays, as a share of another front's range.

    The extent of the non-dominated points, ``[J]``.

    Args:
        front: whose range is measured.
        of: the front to compare with, such as that of `separate`; without one the extents are in
            the objectives' own units.

    Returns:
        1 is all of the other's range, 0 a single point; NaN where the other has none.

    >>> rays, names = [[0.9, 0.1], [0.1, 0.9]], ("loss", "gap")
    >>> narrow = Front(rays, [[0.25, 0.5], [0.5, 0.25]], names, (2, 2))
    >>> wide = Front(rays, [[0.0, 1.0], [1.0, 0.0]], names, (2, 2))
    >>> range_covered(narrow, wide), range_covered(narrow)
    (array([0.25, 0.25]), array([0.25, 0.25]))
    """
    low, high = box_of(front)
    if of is None:
        return high - low
    check_same(front, of, "of")
    least, most = box_of(of)
    extent = most - least
    share: Array = (high - low) / np.where(extent > 0, extent, np.nan)
    return share


def span(front: Front) -> float:
    """How wide the front is: the diagonal of the box around its non-dominated points.

    Known as maximum spread (Zitzler, Deb and Thiele 2000). NaN if no point is without a NaN.
    """
    low, high = box_of(front)
    return float(np.linalg.norm(high - low))


def spacing(front: Front) -> float:
    """How unevenly the non-dominated points lie: the deviation of nearest distances (Schott 1995).

    0 for evenly spaced points, and for fewer than three.
    """
    values = front.values[front.non_dominated]
    if len(values) < 3:
        return 0.0
    distance = np.abs(values[:, None] - values[None]).sum(axis=2)
    np.fill_diagonal(distance, np.inf)
    return float(distance.min(axis=1).std(ddof=1))


def angle(front: Front, *, alignment: Literal["ray", "inverse"] = "ray") -> float:
    """The mean angle in degrees between values and rays (or 1/rays); what the penalty lowers."""
    toward = front.rays if alignment == "ray" else 1 / np.maximum(front.rays, 1e-6)
    norms = np.linalg.norm(front.values, axis=1) * np.linalg.norm(toward, axis=1)
    defined = norms > 0
    if not defined.any():
        return float("nan")
    cosine = (front.values * toward).sum(axis=1)[defined] / norms[defined]
    return float(np.degrees(np.arccos(np.clip(cosine, -1, 1))).mean())


def check_same(front: Front, other: Front, name: str) -> None:
    """Refuse a second front that has other objectives."""
    if front.names != other.names:
        raise ConfigurationError(
            f"`{name}` needs the objectives of `front`, {', '.join(front.names)}, found "
            f"{', '.join(other.names)}: evaluate both on one problem"
        )
