"""A toy with a concave front."""

import math

import numpy as np

from paretocosmos.objectives import GaussianWell
from paretocosmos.pareto.front import Array
from paretocosmos.problems.base import Protocol
from paretocosmos.problems.toys.problem import ToyProblem, toy

__all__ = ["toy_concave"]


def toy_concave(*, protocol: Protocol = "clean") -> ToyProblem:
    r"""Two wells (Fonseca and Fleming 1995); a concave front that no weighted sum can follow.

    .. math:: L_1 = 1 - e^{-\|y - a\|^2}, \quad L_2 = 1 - e^{-\|y - b\|^2}

    with a = (1, 1)/√2 and b = -a. The front is L₁ = 1 - exp(-4(1 - s)²), L₂ = 1 - exp(-4s²) at
    y = s a + (1 - s) b. A weighted sum is smallest near one of the ends for every ray; a better
    method also finds the middle.

    Args:
        protocol: ``"paper"`` scores a split in batches, as the published code does.

    >>> toy_concave().exact_front(3).values.round(3).tolist()
    [[0.0, 0.982], [0.632, 0.632], [0.982, 0.0]]
    """
    objectives = (
        GaussianWell(name="first", target="first"),
        GaussianWell(name="second", target="second"),
    )
    end = 1 / math.sqrt(2)
    # both losses stay below 1, so every model dominates this reference point
    return toy("toy_concave", protocol, objectives, ((end, end), (-end, -end)), _curve, (1.1, 1.1))


def _curve(share: Array) -> Array:
    return -np.expm1(-4 * np.stack([(1 - share) ** 2, share**2], axis=1))
