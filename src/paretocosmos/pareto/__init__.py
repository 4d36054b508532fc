"""Rays on the simplex, fronts, their metrics, and the choice of a point."""

from paretocosmos.pareto.front import Array, Front, Point, get_columns, get_point
from paretocosmos.pareto.rays import (
    Alpha,
    Rays,
    as_rays,
    check_alpha,
    even_rays,
    has_only_corners,
    sample_rays,
    stratified_rays,
)
from paretocosmos.pareto.scalarize import (
    Alignment,
    apply_floor,
    cosmos_loss,
    cosmos_weights,
    linear_loss,
    tchebycheff_loss,
    tchebycheff_weights,
)
from paretocosmos.pareto.selection import (
    Criteria,
    CriteriaOptions,
    find_best,
    find_closest,
    find_constant,
    find_feasible,
    find_neighbours,
)
