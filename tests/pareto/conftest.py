"""Fronts of plain numbers."""

import numpy as np
import numpy.typing as npt

from paretocosmos.pareto import Front

Array = npt.NDArray[np.float64]


def make_front(values: npt.ArrayLike, rays: npt.ArrayLike | None = None) -> Front:
    """Return a front of the objectives o0, o1, ... with the reference point 2, 2, ..."""
    array = np.asarray(values, dtype=np.float64)
    rays = np.full(array.shape, 1 / array.shape[1]) if rays is None else rays
    names = tuple(f"o{j}" for j in range(array.shape[1]))
    return Front(np.asarray(rays), array, names, np.full(array.shape[1], 2.0))
