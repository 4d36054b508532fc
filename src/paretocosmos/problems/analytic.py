"""Test problems of the field with fronts of every shape: ZDT, DTLZ, VLMOP and RE.

Zitzler, Deb and Thiele 2000, "Comparison of Multiobjective Evolutionary Algorithms"; Deb, Thiele,
Laumanns and Zitzler 2005, "Scalable Test Problems for Evolutionary Multiobjective Optimization";
Van Veldhuizen and Lamont 1999; Tanabe and Ishibuchi 2020, "An Easy-to-use Real-world
Multi-objective Optimization Problem Suite".
"""

import math
from collections.abc import Callable, Sequence

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

    return _make("zdt1", function, [(0, 1)] * variables, exact, (1.1, 1.1), protocol)


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

    return _make("zdt2", function, [(0, 1)] * variables, exact, (1.1, 1.1), protocol)


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

    return _make("zdt3", function, [(0, 1)] * variables, exact, (1.1, 1.1), protocol)


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

    # J - 1 angles, and the ten variables of the distance that Deb et al. suggest
    bounds = [(0.0, 1.0)] * (count + 9 if variables is None else variables)
    return _make("dtlz2", function, bounds, exact, [1.1] * count, protocol)


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

    return _make("dtlz7", function, [(0, 1)] * variables, exact, (1.1, 1.1, 6.6), protocol)


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

    return _make("vlmop2", function, [(-2, 2)] * variables, exact, (1.1, 1.1), protocol)


def re21(*, protocol: Protocol = "clean") -> FunctionProblem:
    r"""A truss of four bars: its volume against how far its joint gives way; a convex front.

    .. math:: f_1 = L (2 x_1 + \sqrt 2 x_2 + \sqrt{x_3} + x_4), \quad f_2 = \frac{F L}{E} \Big(
        \frac{2}{x_1} + \frac{2 \sqrt 2}{x_2} - \frac{2 \sqrt 2}{x_3} + \frac{2}{x_4} \Big)

    with the force F = 10 kN, E = 200,000 kN/cm² and L = 200 cm. Both objectives are scaled so that
    they go from 0 to 1 along the front, and the first is halved, as LibMOON has them.

    Args:
        protocol: ``"paper"`` scores a split in batches, as the published code does.

    >>> re21().exact_front(3).values[1].round(3).tolist()
    [0.149, 0.444]
    """
    root = math.sqrt(2)

    def function(x: Tensor) -> Tensor:
        x1, x2, x3, x4 = x.unbind(dim=-1)
        # L and F L / E, which every value has, cancel out of the scaling
        volume = 2 * x1 + root * x2 + x3.sqrt() + x4
        shift = 2 / x1 + 2 * root / x2 - 2 * root / x3 + 2 / x4
        # the volume of the thinnest bars, and the shift of the thickest ones with x3 still thin
        least_volume, least_shift = 5 + math.sqrt(root), (2 * root - 2) / 3
        first = (volume - least_volume) / (4 + 3 * root) / 2
        return torch.stack([first, (shift - least_shift) / (4 - least_shift)], dim=-1)

    def exact(count: int) -> Array:
        # x3 is thin on the whole front; the weighted sum of the rest is smallest, bar by bar, where
        # they are s, √2 s and √2 s, within the bounds
        s = np.linspace(1 / root, 3, DENSE)
        bars = [s.clip(1, 3), (root * s).clip(root, 3), np.full_like(s, root), root * s]
        values = function(torch.from_numpy(np.stack(bars, axis=1).clip(max=3)))
        return _take_evenly(values.numpy(), count)

    bounds = [(1, 3), (root, 3), (root, 3), (1, 3)]
    return _make("re21", function, bounds, exact, (1.1, 1.1), protocol)


# By objective, the factor of each product of the variables α, h, o and t.
INJECTOR: tuple[dict[str, float], ...] = (
    {"": 0.692, "α": 0.477, "h": -0.687, "o": -0.08, "t": -0.065}
    | {"αα": -0.167, "hα": -0.0129, "hh": 0.0796, "oα": -0.0634, "oh": -0.0257, "oo": 0.0877}
    | {"tα": -0.0521, "th": 0.00156, "to": 0.00198, "tt": 0.0184},
    {"": 0.153, "α": -0.322, "h": 0.396, "o": 0.424, "t": 0.0226}
    | {"αα": 0.175, "hα": 0.0185, "hh": -0.0701, "oα": -0.251, "oh": 0.179, "oo": 0.015}
    | {"tα": 0.0134, "th": 0.0296, "to": 0.0752, "tt": 0.0192},
    {"": 0.37, "α": -0.205, "h": 0.0307, "o": 0.108, "t": 1.019}
    | {"αα": -0.135, "hα": 0.0141, "hh": 0.0998, "oα": 0.208, "oh": -0.0301, "oo": -0.226}
    | {"tα": 0.353, "to": -0.0497, "tt": -0.423, "hαα": 0.202, "oαα": -0.281, "hhα": -0.342}
    | {"hho": -0.245, "ooh": 0.281, "ttα": -0.184, "hαo": -0.281},
)
# The best and the worst value of each objective along the front that its authors approximated.
INJECTOR_RANGES = (
    (0.00889341391106, 0.98949120096),
    (0.00488, 0.956587924661),
    (-0.431499999825, 0.987530948586),
)


def re37(*, protocol: Protocol = "clean") -> FunctionProblem:
    """A rocket injector: the heat on its face, the length of the flame, the heat on its tip.

    Three polynomials of four variables, each from 0 to 1: the angle of the hydrogen's flow α, the
    areas of hydrogen h and oxygen o, and the thickness of the tip t. The objectives are scaled so
    that they go from 0 to 1 along the front that Tanabe and Ishibuchi approximated, as LibMOON has
    them. The exact front is not known in closed form.

    Args:
        protocol: ``"paper"`` scores a split in batches, as the published code does.

    >>> problem = re37()
    >>> problem.outputs, problem.reference
    (4, (1.1, 1.1, 1.1))
    """

    def function(x: Tensor) -> Tensor:
        variables = dict(zip("αhot", x.unbind(dim=-1), strict=True))
        zero = torch.zeros_like(x[..., 0])
        values: list[Tensor] = []
        for terms, (best, worst) in zip(INJECTOR, INJECTOR_RANGES, strict=True):
            value = zero
            for names, factor in terms.items():
                value = value + factor * math.prod(variables[name] for name in names)
            values.append((value - best) / (worst - best))
        return torch.stack(values, dim=-1)

    return _make("re37", function, [(0, 1)] * 4, None, (1.1, 1.1, 1.1), protocol)


def _make(
    name: str,
    function: Function,
    bounds: Sequence[tuple[float, float]],
    exact: Callable[[int], Array] | None,
    reference: Sequence[float],
    protocol: Protocol,
) -> FunctionProblem:
    return FunctionProblem.of(
        function,
        bounds=bounds,
        reference=reference,
        name=name,
        exact=exact,
        protocol=protocol,
        traceable=True,
    )


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
