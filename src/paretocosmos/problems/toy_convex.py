"""A toy with a convex front."""

import numpy as np

from paretocosmos.objectives import MeanSquaredError
from paretocosmos.pareto.front import Array
from paretocosmos.problems.base import Protocol
from paretocosmos.problems.toys.problem import ToyProblem, toy

__all__ = ["toy_convex"]


def toy_convex(*, protocol: Protocol = "clean") -> ToyProblem:
    r"""Two squared distances; the convex front L₁ = (1 - s)², L₂ = s², known in closed form.

    .. math:: L_1 = \tfrac12 \|y - a\|^2, \quad L_2 = \tfrac12 \|y - b\|^2

    with a = (0, 0) and b = (1, 1). The weighted sum with ray r is smallest at y = r₁ a + r₂ b, so
    r₁ = s: even a linear method finds every point of this front.

    Args:
        protocol: ``"paper"`` scores a split in batches, as the published code does.

    >>> toy_convex().exact_front(3).values.tolist()
    [[0.0, 1.0], [0.25, 0.25], [1.0, 0.0]]
    """
    objectives = (
        MeanSquaredError(name="first", target="first"),
        MeanSquaredError(name="second", target="second"),
    )
    return toy("toy_convex", protocol, objectives, ((0.0, 0.0), (1.0, 1.0)), _curve, (2.0, 2.0))


def _curve(share: Array) -> Array:
    return np.stack([(1 - share) ** 2, share**2], axis=1)
