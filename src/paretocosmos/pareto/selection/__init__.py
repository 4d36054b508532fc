"""Choosing a point of a front: what may be asked of one, and which point answers best."""

from paretocosmos.pareto.selection._between import interpolated, neighbours
from paretocosmos.pareto.selection._criteria import Criteria
from paretocosmos.pareto.selection._pick import (
    closest,
    constant,
    cost_of,
    is_constant,
    pick,
    within,
)
from paretocosmos.pareto.selection._point import Point, columns, point_of

__all__ = [
    "Criteria",
    "Point",
    "closest",
    "columns",
    "constant",
    "cost_of",
    "interpolated",
    "is_constant",
    "neighbours",
    "pick",
    "point_of",
    "within",
]
