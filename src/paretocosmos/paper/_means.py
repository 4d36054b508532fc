"""Means over seeds: of numbers, of fronts ray by ray, and of the course of a training."""

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

import numpy as np

from paretocosmos.errors import DataError
from paretocosmos.pareto.front import Front
from paretocosmos.pareto.metrics import span
from paretocosmos.pareto.rays import each_alone
from paretocosmos.runs.record import course_of

__all__ = ["Done", "mean_course", "mean_front", "rounded", "spread", "volume_in"]

Done = tuple[Mapping[str, Any], Front, Front]
"""A finished run: its record, its test front, its validation front."""

EPOCHS_SHOWN = 10  # of a course: the paper's figure has a front every ten epochs of a hundred
DIGITS = 6  # of what is only drawn


def spread(values: Iterable[float | None]) -> dict[str, Any] | None:
    """Mean, deviation of a sample (`None` for one seed) and each; `None` if one does not exist.

    >>> spread([1.0, 2.0, 3.0])
    {'mean': 2.0, 'std': 1.0, 'each': [1.0, 2.0, 3.0]}
    >>> spread([1.0, float("nan")])
    """
    given = list(values)
    known = [float(value) for value in given if value is not None and math.isfinite(value)]
    if not known or len(known) < len(given):
        return None
    deviation = stdev(known) if len(known) > 1 else None
    return {"mean": fmean(known), "std": deviation, "each": known}


def volume_in(record: Mapping[str, Any]) -> str:
    """What the paper calls a run's hypervolume, by its name among the metrics.

    Of one network per objective it is that of their ideal point.

    >>> volume_in({"fixed_rays": [[1, 0], [0, 1]]}), volume_in({"fixed_rays": None})
    ('hypervolume_ideal', 'hypervolume')
    """
    return "hypervolume_ideal" if each_alone(record["fixed_rays"]) else "hypervolume"


def mean_front(fronts: Sequence[Front]) -> Front:
    """The mean of fronts ray by ray; they have the same rays.

    >>> one = Front([[0.5, 0.5]], [[0.2, 0.4]], ("loss", "gap"), (2, 2))
    >>> two = Front([[0.5, 0.5]], [[0.4, 0.4]], ("loss", "gap"), (2, 2))
    >>> mean_front([one, two]).values.round(3).tolist()
    [[0.3, 0.4]]
    """
    first = fronts[0]
    for front in fronts:
        alike = front.names == first.names and front.rays.shape == first.rays.shape
        if not (alike and np.allclose(front.rays, first.rays, atol=1e-6)):
            raise DataError(
                "a mean front needs fronts of the same objectives and rays, found "
                f"{first!r} and {front!r}: train all seeds with the same `rays`"
            )
    values = np.mean([front.values for front in fronts], axis=0)
    return Front(first.rays, values, first.names, first.reference, {}, first.split)


def mean_course(runs: Sequence[Done]) -> list[dict[str, Any]]:
    """Some epochs, evenly, the last among them: the mean validation front and its numbers."""
    courses = [course_of(record, val) for record, _, val in runs]
    epochs = [epoch for epoch, _ in courses[0]]
    if not epochs or any([epoch for epoch, _ in course] != epochs for course in courses):
        return []
    step = math.ceil(len(epochs) / EPOCHS_SHOWN)
    found = []
    for at in sorted({*range(step - 1, len(epochs), step), len(epochs) - 1}):
        fronts = [course[at][1] for course in courses]
        volumes = [record["evaluations"][at]["hypervolume_val"] for record, _, _ in runs]
        found.append(
            {
                "epoch": epochs[at],
                "hypervolume": spread(volumes),
                "span": spread([span(front) for front in fronts]),
                "values": rounded(mean_front(fronts).values),
            }
        )
    return found


def rounded(values: Any) -> list[list[float | None]]:
    """To some digits, for what is only drawn; a value that does not exist is `None`."""
    return [
        [float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None for value in row]
        for row in values
    ]
