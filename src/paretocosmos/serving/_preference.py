"""The preference of a request: one ray for all rows, or one for each."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from paretocosmos.pareto.rays import CLOSE
from paretocosmos.serving._refusal import refuse, shown

__all__ = ["Rays", "read_preference"]

Rays = npt.NDArray[np.float32]


def read_preference(given: object, *, rows: int, names: Sequence[str]) -> Rays:
    """Rays ``[1, J]`` or ``[rows, J]``; whatever is not on the simplex is refused.

    Args:
        given: of the request's JSON.
        rows: how many the request has.
        names: the J objectives.
    """
    count = len(names)
    several = isinstance(given, list) and bool(given) and isinstance(given[0], list)
    rays = given if isinstance(given, list) and several else [given]
    for at, ray in enumerate(rays):
        where = f"`preference` of row {at}" if several else "`preference`"
        _check(ray, where, count, names)
    if several and len(rays) not in (1, rows):
        refuse(
            f"`preference` is one ray for all rows or one for each, here {rows}; found {len(rays)}"
        )
    return np.array(rays, dtype=np.float32)


def _check(ray: object, where: str, count: int, names: Sequence[str]) -> None:
    if not isinstance(ray, list) or not all(type(part) in (int, float) for part in ray):
        refuse(f"{where} is a list of {count} numbers that sum to 1, found {shown(ray)}")
    if len(ray) != count:
        refuse(
            f"{where} has one entry per objective, here {count} ({', '.join(names)}); found "
            f"{len(ray)}"
        )
    if not all(0 <= part <= 1 + CLOSE for part in ray):
        refuse(f"{where} has entries from 0 to 1, found {shown(ray)}: divide the ray by its sum")
    if abs(sum(ray) - 1) > CLOSE:
        refuse(f"{where} sums to 1, found a sum of {sum(ray):g}: divide the ray by its sum")
