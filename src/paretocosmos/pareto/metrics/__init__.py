"""How good a front is: numbers computed from a `Front` and nothing else."""

from paretocosmos.pareto.metrics._distance import expected_utility, igd_plus
from paretocosmos.pareto.metrics._order import (
    BEYOND,
    InvertedPairs,
    covered,
    dominated_share,
    inverted_pairs,
    monotonicity,
)
from paretocosmos.pareto.metrics._report import MEANINGS, FrontReport, front_report
from paretocosmos.pareto.metrics._shape import angle, range_covered, spacing, span
from paretocosmos.pareto.metrics.volume import (
    box_of,
    hypervolume,
    ideal,
    ideal_hypervolume,
    normalised_hypervolume,
)

__all__ = [
    "BEYOND",
    "MEANINGS",
    "FrontReport",
    "InvertedPairs",
    "angle",
    "box_of",
    "covered",
    "dominated_share",
    "expected_utility",
    "front_report",
    "hypervolume",
    "ideal",
    "ideal_hypervolume",
    "igd_plus",
    "inverted_pairs",
    "monotonicity",
    "normalised_hypervolume",
    "range_covered",
    "spacing",
    "span",
]
