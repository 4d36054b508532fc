"""Fronts of cells, the true ones of toys, and the grid of an ablation."""

from collections.abc import Iterable, Iterator
from functools import cache
from typing import get_type_hints

import numpy as np

from paretocosmos import registry
from paretocosmos.io.schema.collected import CellResult, Stage
from paretocosmos.pareto.front import Front
from paretocosmos.problems import load_problem
from paretocosmos.problems.toys import ToyProblem

__all__ = ["GRID", "exact_front", "front_of", "on_a_grid"]

GRID = ("penalty", "alpha")
"""What an ablation varies."""

POINTS = 1001  # of a true front: enough for a line, and for its hypervolume


def front_of(cell: CellResult, stage: Stage | None = None) -> Front:
    """The mean front of a cell on the test split, or at a stage of its training."""
    return Front(
        np.array(cell.rays, dtype=np.float64),
        np.array(cell.front if stage is None else stage.values, dtype=np.float64),
        tuple(cell.objectives),
        np.array(cell.reference, dtype=np.float64),
        provenance={"networks": cell.networks if cell.separate else None},
    )


def on_a_grid(cells: Iterable[CellResult]) -> Iterator[tuple[tuple[float, float], CellResult]]:
    """The finished cells that have a penalty and one alpha, with both."""
    for cell in (cell for cell in cells if cell.seeds):
        penalty, alpha = (cell.varied.get(key) for key in GRID)
        if penalty is not None and isinstance(alpha, int | float):
            yield (float(penalty), float(alpha)), cell


@cache
def exact_front(problem: str) -> Front | None:
    """The true front of a problem that knows it, `None` for another, which is not loaded.

    >>> len(exact_front("toy_convex")), exact_front("adult")
    (1001, None)
    """
    if get_type_hints(registry.find("problems", problem)).get("return") is not ToyProblem:
        return None
    found = load_problem(problem)
    assert isinstance(found, ToyProblem)
    return found.exact_front(POINTS)
