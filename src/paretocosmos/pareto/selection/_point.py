"""One point of a front, and all that is known of every point."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from paretocosmos.errors import unknown
from paretocosmos.pareto.front import Array, Front

__all__ = ["Point", "columns", "point_of"]


@dataclass(frozen=True)
class Point:
    """One point of a front.

    Attributes:
        ray: the preference that gives it.
        values: the objectives, by name.
        metrics: further numbers, by name.
        split: the data they were measured on.
        interpolated: whether they were guessed between two rays instead of measured.
        intervals: 95 % intervals of the numbers, where they are known.
        limits: how far a bounded number may be with the confidence asked for, where one was.
        pooled: bounded gaps on the training and validation rows together, where they were judged
            by these.

    >>> front = Front([[0.9, 0.1], [0.1, 0.9]], [[0.3, 0.2], [0.5, 0.1]], ("loss", "gap"), (2, 2))
    >>> point = front.choose(max={"gap": 0.15})
    >>> point.ray, point["loss"]
    ((0.1, 0.9), 0.5)
    """

    ray: tuple[float, ...]
    values: Mapping[str, float]
    metrics: Mapping[str, float]
    split: str
    interpolated: bool = False
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    limits: Mapping[str, float] = field(default_factory=dict)
    pooled: Mapping[str, float] = field(default_factory=dict)

    def __getitem__(self, name: str) -> float:
        every = {**self.metrics, **self.values}
        if name not in every:
            raise unknown("objective or metric", name, every)
        return every[name]

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers, ready for JSON; a number that does not exist is `None`."""

        def plain(value: float) -> float | None:
            return value if math.isfinite(value) else None

        return {
            "ray": list(self.ray),
            "values": {name: plain(value) for name, value in self.values.items()},
            "metrics": {name: plain(value) for name, value in self.metrics.items()},
            "split": self.split,
            "interpolated": self.interpolated,
            "intervals": {n: [plain(end) for end in ends] for n, ends in self.intervals.items()},
            "limits": {name: plain(limit) for name, limit in self.limits.items()},
            "pooled": {name: plain(value) for name, value in self.pooled.items()},
        }


def point_of(front: Front, at: int) -> Point:
    """A point of a front by its place."""
    return Point(
        tuple(front.rays[at].tolist()),
        dict(zip(front.names, front.values[at].tolist(), strict=True)),
        {name: float(values[at]) for name, values in front.metrics.items()},
        front.split,
    )


def columns(front: Front) -> dict[str, Array]:
    """Everything a front knows of its points, by name: objectives, then metrics."""
    return {**front.metrics, **dict(zip(front.names, front.values.T, strict=True))}
