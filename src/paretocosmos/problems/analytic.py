"""Test problems of the field with known fronts of every shape: ZDT, DTLZ and VLMOP.

Zitzler, Deb and Thiele 2000, "Comparison of Multiobjective Evolutionary Algorithms"; Deb, Thiele,
Laumanns and Zitzler 2005, "Scalable Test Problems for Evolutionary Multiobjective Optimization";
Van Veldhuizen and Lamont 1999.
"""

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from paretocosmos.pareto.front import Array
from paretocosmos.pareto.rays import even_rays
from paretocosmos.problems.base import Protocol
from paretocosmos.problems.functions import Function, FunctionProblem

# Below this the gradient of a square root is no longer finite in float32.
TINY = 1e-12
# Points per axis from which the even ones of a disconnected front are taken.
DENSE = 20_001


def zdt1(*, variables: int = 30, protocol: Protocol = "clean") -> FunctionProblem:
    r"""A convex front, f₂ = 1 - √f₁, at x₁ in [0, 1] and all other variables 0.

    .. math:: f_1 = x_1, \quad f_2 = g (1 - \sqrt{f_1 / g}), \quad
        g = 1 + \tfrac{9}{n - 1} \sum_{i > 1} x_i

    Args:
        variables: n, at least 2.
        protocol: ``"paper"`` scores a split in batches, as the published code does.

    >>> zdt1().exact_front(3).values.round(3).tolist()
    [[0.0, 1.0], [0.5, 0.293], [1.0, 0.0]]
    """

    def function(x: Tensor) -> Tensor:
        first, distance = x[..., 0], _compute_zdt_distance(x)
        share = (first / distance).clamp_min(TINY)
        return torch.stack([first, distance * (1 - share.sqrt())], dim=-1)

    def exact(count: int) -> Array:
        first = np.linspace(0, 1, count)
        return np.stack([first, 1 - np.sqrt(first)], axis=1)

    return _make_zdt("zdt1", function, variables, exact, protocol)


def zdt2(*, variables: int = 30, protocol: Protocol = "clean") -> FunctionProblem:
    r"""A concave front, f₂ = 1 - f₁², of which a weighted sum finds the two ends.

    .. math:: f_1 = x_1, \quad f_2 = g (1 - (f_1 / g)^2), \quad
        g = 1 + \tfrac{9}{n - 1} \sum_{i > 1} x_i

    Args:
        variables: n, at least 2.
        protocol: ``"paper"`` scores a split in batches, as the published code does.

    >>> zdt2().exact_front(3).values.tolist()
    [[0.0, 1.0], [0.5, 0.75], [1.0, 0.0]]
    """

    def function(x: Tensor) -> Tensor:
        first, distance = x[..., 0], _compute_zdt_distance(x)
        return torch.stack([first, distance * (1 - (first / distance).square())], dim=-1)

    def exact(count: int) -> Array:
        first = np.linspace(0, 1, count)
        return np.stack([first, 1 - first**2], axis=1)

    return _make_zdt("zdt2", function, variables, exact, protocol)


def zdt3(*, variables: int = 30, protocol: Protocol = "clean") -> FunctionProblem:
    r"""A front of five pieces, whose second objective is also below 0.

    .. math:: f_1 = x_1, \quad f_2 = g (1 - \sqrt{f_1 / g} - (f_1 / g) \sin 10 \pi f_1), \quad
        g = 1 + \tfrac{9}{n - 1} \sum_{i > 1} x_i

    Args:
        variables: n, at least 2.
        protocol: ``"paper"`` scores a split in batches, as the published code does.

    >>> bool(zdt3().exact_front(50).non_dominated.all())
    True
    """

    def function(x: Tensor) -> Tensor:
        first, distance = x[..., 0], _compute_zdt_distance(x)
        share = (first / distance).clamp_min(TINY)
        wave = share * torch.sin(10 * math.pi * first)
        return torch.stack([first, distance * (1 - share.sqrt() - wave)], dim=-1)

    def exact(count: int) -> Array:
        first = np.linspace(0, 1, DENSE)
        second = 1 - np.sqrt(first) - first * np.sin(10 * np.pi * first)
        # the least second objective of all points further left: what is not below it is dominated
        lower = np.concatenate([[np.inf], np.minimum.accumulate(second)[:-1]])
        return _take_evenly(np.stack([first, second], axis=1)[second < lower], count)

    return _make_zdt("zdt3", function, variables, exact, protocol)


def dtlz2(
    *, objectives: int = 3, variables: int | None = None, protocol: Protocol = "clean"
) -> FunctionProblem:
    r"""A concave front, the positive part of the unit sphere, of any number of objectives.

    .. math:: f_j = (1 + g) \prod_{i \le J - j} \cos \tfrac{\pi x_i}{2} \,
        [\sin \tfrac{\pi x_{J - j + 1}}{2}]_{j > 1}, \quad g = \sum_{i \ge J} (x_i - \tfrac12)^2

    Args:
        objectives: J, at least 2.
        variables: n; J + 9 by default.
        protocol: ``"paper"`` scores a split in batches, as the published code does.

    >>> front = dtlz2().exact_front(10).values
    >>> bool(abs((front**2).sum(axis=1) - 1).max() < 1e-6)
    True
    """
    count = objectives

    def function(x: Tensor) -> Tensor:
        angles = x[..., : count - 1] * (math.pi / 2)
        radius = 1 + (x[..., count - 1 :] - 0.5).square().sum(dim=-1)
        values = []
        for j in range(count):
            value = radius
            for i in range(count - 1 - j):
                value = value * angles[..., i].cos()
            values.append(value if j == 0 else value * angles[..., count - 1 - j].sin())
        return torch.stack(values, dim=-1)

    def exact(points: int) -> Array:
        if count == 2:
            # by angle: even weights would lie closer together at the ends of the quarter circle
            angles = np.linspace(0, 1, points) * np.pi / 2
            return np.stack([np.cos(angles), np.sin(angles)], axis=1)
        rays = even_rays(points, count, ends=True).double().numpy()
        return np.asarray(rays / np.linalg.norm(rays, axis=1, keepdims=True))

    return FunctionProblem.of(
        function,
        # J - 1 angles, and the ten variables of the distance that Deb et al. suggest
        bounds=[(0, 1)] * (count + 9 if variables is None else variables),
        names=_name_values(count),
        reference=[1.1] * count,
        name="dtlz2",
        exact=exact,
        protocol=protocol,
        traceable=True,
    )


def dtlz7(*, variables: int = 22, protocol: Protocol = "clean") -> FunctionProblem:
    r"""Three objectives whose front has four pieces.

    .. math:: f_1 = x_1, \quad f_2 = x_2, \quad f_3 = (1 + g) \Big( 3 - \sum_{i \le 2}
        \tfrac{f_i}{1 + g} (1 + \sin 3 \pi f_i) \Big), \quad
        g = 1 + \tfrac{9}{n - 2} \sum_{i > 2} x_i

    Args:
        variables: n, at least 3.
        protocol: ``"paper"`` scores a split in batches, as the published code does.

    >>> bool(dtlz7().exact_front(50).non_dominated.all())
    True
    """

    def function(x: Tensor) -> Tensor:
        first = x[..., :2]
        distance = 2 + 9 * x[..., 2:].mean(dim=-1)  # 1 + g
        waves = first * (1 + torch.sin(3 * math.pi * first))
        # 1 + g cancels out of the terms of the sum
        third = 3 * distance - waves.sum(dim=-1)
        return torch.cat([first, third.unsqueeze(-1)], dim=-1)

    def exact(count: int) -> Array:
        # the two terms of the third objective part, so that a pair is optimal where each of both
        # is better than every smaller one
        axis = np.linspace(0, 1, DENSE)
        wave = axis * (1 + np.sin(3 * np.pi * axis))
        higher = np.concatenate([[-np.inf], np.maximum.accumulate(wave)[:-1]])
        side = max(2, round(math.sqrt(count)))
        spread = _take_evenly(np.stack([axis, -wave], axis=1)[wave > higher], side)
        pairs = np.stack(np.meshgrid(spread[:, 0], spread[:, 0], indexing="ij"), axis=-1).reshape(
            -1, 2
        )
        waves = pairs * (1 + np.sin(3 * np.pi * pairs))
        return np.column_stack([pairs, 6 - waves.sum(axis=1)])

    return FunctionProblem.of(
        function,
        bounds=[(0, 1)] * variables,
        names=_name_values(3),
        reference=[1.1, 1.1, 6.6],
        name="dtlz7",
        exact=exact,
        protocol=protocol,
        traceable=True,
    )


def vlmop2(*, variables: int = 10, protocol: Protocol = "clean") -> FunctionProblem:
    r"""Two wells in n dimensions (Fonseca and Fleming 1995): a concave front.

    .. math:: f_{1, 2} = 1 - \exp \Big( -\sum_i \big( x_i \mp \tfrac{1}{\sqrt n} \big)^2 \Big)

    Args:
        variables: n, at least 1.
        protocol: ``"paper"`` scores a split in batches, as the published code does.

    >>> vlmop2().exact_front(3).values.round(3).tolist()
    [[0.0, 0.982], [0.632, 0.632], [0.982, 0.0]]
    """
    center = 1 / math.sqrt(variables)

    def function(x: Tensor) -> Tensor:
        squares = [(x - center).square().sum(dim=-1), (x + center).square().sum(dim=-1)]
        # not 1 - exp(...): near a well that difference loses its digits
        return -torch.expm1(-torch.stack(squares, dim=-1))

    def exact(count: int) -> Array:
        # between the wells, which are 2 apart, the squared distances are 4 (1 - s)² and 4 s²
        share = np.linspace(1, 0, count)
        return np.asarray(-np.expm1(-4 * np.stack([(1 - share) ** 2, share**2], axis=1)))

    return FunctionProblem.of(
        function,
        bounds=[(-2, 2)] * variables,
        names=_name_values(2),
        reference=[1.1, 1.1],
        name="vlmop2",
        exact=exact,
        protocol=protocol,
        traceable=True,
    )


def _make_zdt(
    name: str,
    function: Function,
    variables: int,
    exact: Callable[[int], Array],
    protocol: Protocol,
) -> FunctionProblem:
    return FunctionProblem.of(
        function,
        bounds=[(0, 1)] * variables,
        names=_name_values(2),
        reference=(1.1, 1.1),
        name=name,
        exact=exact,
        protocol=protocol,
        traceable=True,
    )


def _name_values(count: int) -> list[str]:
    return [f"f{j + 1}" for j in range(count)]


def _compute_zdt_distance(x: Tensor) -> Tensor:
    """Compute g, which is 1 on the front."""
    return 1 + 9 * x[..., 1:].mean(dim=-1)


def _take_evenly(points: Array, count: int) -> Array:
    """Take `count` points that are evenly spread along a curve of many."""
    steps = np.linalg.norm(np.diff(points, axis=0), axis=1)
    # a step over a gap between two pieces is none along the curve
    steps = np.where(steps > 20 * np.median(steps), 0, steps)
    length = np.concatenate([[0.0], np.cumsum(steps)])
    # just short of the end, so that rounding leads to no index beyond the last
    return points[np.searchsorted(length, np.linspace(0, length[-1] * (1 - 1e-12), count))]
