"""Toy problems, whose front is known in closed form."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from paretocosmos.errors import ConfigurationError
from paretocosmos.objectives import GaussianWell, MeanSquaredError, Objective
from paretocosmos.pareto.front import Array, Front
from paretocosmos.problems.base import Problem, Protocol, Split, check_split
from paretocosmos.problems.functions import FEATURES, make_constant_splits
from paretocosmos.types import Batch

SIZES: dict[Split, int] = {"train": 512, "val": 128, "test": 128}


@dataclass(frozen=True, kw_only=True, eq=False)
class ToyProblem(Problem):
    """Two fixed points of the plane; a network trades the distance to one for that to the other.

    The inputs are constant, so that the answer can depend on the ray alone; the best answers lie on
    the segment between the points. The ray r belongs to y = r₁ a + r₂ b; `exact_values` gives both
    objectives there.

    Attributes:
        splits: train, val and test.
        curve: both objectives at y = s a + (1 - s) b, ``[N]`` to ``[N, 2]``.
    """

    splits: Mapping[Split, Batch] = field(repr=False)
    curve: Callable[[Array], Array] = field(repr=False)

    def split(self, name: Split) -> Batch:
        check_split(name)
        return self.splits[name]

    def exact_values(self, rays: Array) -> Array:
        """Both objectives on the front: rays ``[N, 2]`` to ``[N, 2]``."""
        return self.curve(np.asarray(rays, dtype=np.float64)[:, 0])

    def exact_front(self, count: int = 25) -> Front:
        """Return points of the true front, from the first objective's best to the second's."""
        if count < 2:
            raise ConfigurationError(f"`count` must be at least 2, found {count}")
        first = np.linspace(1, 0, count)
        rays = np.stack([first, 1 - first], axis=1)
        return Front(
            rays=rays,
            values=self.exact_values(rays),
            names=self.names,
            reference=np.array(self.reference),
            provenance={"problem": self.name, "exact": True},
        )


def _make_toy(
    name: str,
    protocol: Protocol,
    objectives: tuple[Objective, Objective],
    points: tuple[tuple[float, float], tuple[float, float]],
    curve: Callable[[Array], Array],
    reference: tuple[float, float],
) -> ToyProblem:
    """Build a problem with constant inputs and two constant points as targets."""
    return ToyProblem(
        name=name,
        objectives=objectives,
        reference=reference,
        input_shape=(FEATURES,),
        outputs=2,
        protocol=protocol,
        splits=make_constant_splits({"first": points[0], "second": points[1]}, SIZES),
        curve=curve,
    )


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
    return _make_toy(
        "toy_convex", protocol, objectives, ((0.0, 0.0), (1.0, 1.0)), _square_distances, (2.0, 2.0)
    )


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
    return _make_toy(
        "toy_concave",
        protocol,
        objectives,
        ((end, end), (-end, -end)),
        lambda share: -np.expm1(-4 * _square_distances(share)),
        (1.1, 1.1),
    )


def _square_distances(share: Array) -> Array:
    """Return the squared distances to both points at shares of the way, where they are 1 apart."""
    return np.stack([(1 - share) ** 2, share**2], axis=1)
