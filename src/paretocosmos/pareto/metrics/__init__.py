"""Metrics of a front, computed from a `Front` and nothing else, and a report with all of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from paretocosmos.pareto.front import Array, Front, to_plain
from paretocosmos.pareto.metrics.indicators import (
    BEYOND,
    angle,
    box_of,
    coverage,
    dominated_share,
    expected_utility,
    hypervolume,
    ideal,
    ideal_hypervolume,
    igd_plus,
    inverted_share,
    monotonicity,
    normalised_hypervolume,
    range_covered,
    spacing,
    span,
)

MEANINGS: Mapping[str, str] = MappingProxyType(
    {
        "monotonicity": "1: more weight on an objective always lowers it; 0: it does not matter; "
        "-1: it raises it. The smallest over the objectives",
        "dominated_share": "rays whose point another ray's point beats; 0 is best",
        "inverted_share": "pairs of rays in the wrong order beyond noise; 0 is best. The largest "
        "over the objectives",
        "range": "how far the ray moves an objective, in its own unit",
        "range_covered": "how far the ray moves an objective, as a share of what separately "
        "trained networks reach; 1 is all of it. The smallest over the objectives",
        "igd_plus": "how far the front is behind separately trained networks, as a share of their "
        "range; 0 is best",
        "expected_utility": "what the best point costs on average over all weights; smaller is "
        "better",
        "hypervolume_in_separate_box": "the share of the box of separately trained networks that "
        "the front dominates; larger is better",
        "hypervolume_in_own_box": "the share of its own box that the front dominates: how it "
        "bends, not how good it is",
        "span": "how far apart the ends of the front are; larger is more choice",
        "spacing": "how unevenly its points lie; 0 is even",
        "angle": "degrees between losses and ray",
        "hypervolume": "the volume between the front and the reference point; larger is better, "
        "but a far reference point hides a narrow or disordered front",
        "hypervolume_ideal": "of the best of every objective together, which no one network needs "
        "to reach",
    }
)
"""The meaning of each measure, in the order of their importance."""


@dataclass(frozen=True)
class FrontReport:
    """The measures of one front.

    Attributes:
        names: the J objectives.
        numbers: one number for each measure of the whole front; of `monotonicity` and
            `range_covered` the smallest over the objectives, of `inverted_share` the largest.
        by_objective: ``[J]`` for each measure that objectives have one by one.
    """

    names: tuple[str, ...]
    numbers: Mapping[str, float]
    by_objective: Mapping[str, Array]

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Return plain numbers for JSON; one that does not exist (an angle to zeros) is `None`."""
        return {
            "numbers": to_plain(self.numbers),
            "by_objective": {
                measure: to_plain(dict(zip(self.names, values.tolist(), strict=True)))
                for measure, values in self.by_objective.items()
            },
        }


def front_report(
    front: Front, separate: Front | None = None, *, draws: npt.ArrayLike | None = None
) -> FrontReport:
    """Compute every measure of a front: order, range and distance first, hypervolume last.

    Args:
        front: what is judged.
        separate: a front of separately trained networks, one per ray, on the same data. With it
            there are `range_covered`, `igd_plus` and `hypervolume_in_separate_box`; without it
            `hypervolume_in_own_box`.
        draws: paired draws of the values ``[draws, N, J]``; with them `inverted_share`, and
            `dominated_share` counts only what is beyond noise.

    >>> rays, values = [[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]], [[1, 3], [1.5, 1.5], [3, 1]]
    >>> report = front_report(Front(rays, values, ("loss", "gap"), (4, 4)))
    >>> report.numbers["monotonicity"], report.by_objective["range"].tolist()
    (1.0, [2.0, 2.0])
    """
    by_objective = {"monotonicity": monotonicity(front), "range": range_covered(front)}
    # the whole front is as good as its worst objective
    numbers = {
        "monotonicity": float(by_objective["monotonicity"].min()),
        "dominated_share": dominated_share(front, draws),
    }
    if draws is not None:
        by_objective["inverted_share"] = inverted_share(front, draws)
        numbers["inverted_share"] = float(by_objective["inverted_share"].max())
    if separate is not None:
        by_objective["range_covered"] = range_covered(front, separate)
        least, most = box_of(separate)
        # an objective that does not vary is not rescaled
        scale = np.where(most > least, most - least, 1.0)
        numbers |= {
            "range_covered": float(by_objective["range_covered"].min()),
            "igd_plus": igd_plus(front, separate, scale=scale),
        }
    # two names, as a share of the own box says nothing of another front
    box = "own" if separate is None else "separate"
    numbers |= {
        "expected_utility": expected_utility(front),
        f"hypervolume_in_{box}_box": normalised_hypervolume(
            front, None if separate is None else box_of(separate)
        ),
        "span": span(front),
        "spacing": spacing(front),
        "angle": angle(front),
        "hypervolume": hypervolume(front),
        "hypervolume_ideal": ideal_hypervolume(front),
    }
    return FrontReport(front.names, numbers, by_objective)
