"""Problems whose front is known in closed form."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import torch

from paretocosmos.errors import ConfigurationError
from paretocosmos.objectives import Objective
from paretocosmos.pareto.front import Array, Front
from paretocosmos.problems.base import Problem, Protocol, Split, check_protocol, check_split
from paretocosmos.types import Batch

__all__ = ["ToyProblem", "toy"]

FEATURES = 4
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
        """Points of the true front, from the best for the first to the best for the second."""
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


def toy(
    name: str,
    protocol: Protocol,
    objectives: tuple[Objective, Objective],
    points: tuple[tuple[float, float], tuple[float, float]],
    curve: Callable[[Array], Array],
    reference: tuple[float, float],
) -> ToyProblem:
    """Constant inputs, two constant points as targets."""
    check_protocol(protocol)

    def batch(size: int) -> Batch:
        first, second = (torch.tensor(point).expand(size, 2).contiguous() for point in points)
        # not noise: a network could then answer one half of the samples with each point, which
        # beats a concave front
        return Batch(torch.ones(size, FEATURES), {"first": first, "second": second})

    return ToyProblem(
        name=name,
        objectives=objectives,
        reference=reference,
        input_shape=(FEATURES,),
        outputs=2,
        protocol=protocol,
        splits={split: batch(size) for split, size in SIZES.items()},
        curve=curve,
    )
