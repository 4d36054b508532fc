"""Oracles for the weights of methods."""

from collections.abc import Callable
from typing import Any

import cvxpy
import numpy as np
import numpy.typing as npt
import pytest

Array = npt.NDArray[np.float64]
cp: Any = cvxpy  # whose annotations lack what it exports
EXACT = {"tol_gap_abs": 1e-13, "tol_gap_rel": 1e-13, "tol_feas": 1e-13}


@pytest.fixture
def shortest() -> Callable[[Array], Array]:
    """Vectors ``[n, P]`` to the weights ``[n]`` of the shortest vector in their hull, by cvxpy."""

    def solve(vectors: Array) -> Array:
        # the same hull in fewer dimensions, in units of the longest
        _, triangle = np.linalg.qr(vectors.T)
        scaled = triangle.T / np.linalg.norm(vectors, axis=1).max()
        weights = cp.Variable(len(vectors), nonneg=True)
        distance = cp.sum_squares(scaled.T @ weights)
        cp.Problem(cp.Minimize(distance), [cp.sum(weights) == 1]).solve(cp.CLARABEL, **EXACT)
        found = np.clip(np.asarray(weights.value, dtype=np.float64), 0, None)
        return found / found.sum()

    return solve
