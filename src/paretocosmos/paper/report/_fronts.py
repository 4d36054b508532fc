"""Fronts out of collected cells, and the true ones of toys."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, get_type_hints

import numpy as np

from paretocosmos import registry
from paretocosmos.pareto.front import Front
from paretocosmos.problems import load_problem
from paretocosmos.problems.toys.problem import ToyProblem

__all__ = ["GRID", "course_fronts", "exact_front", "front_of", "on_a_grid"]

Cell = Mapping[str, Any]
GRID = ("penalty", "alpha")
"""What an ablation varies."""

POINTS = 1001  # of a true front: enough for a line, and for its hypervolume


def front_of(cell: Cell, values: Any = None) -> Front:
    """The mean front of a cell; or other values at its rays."""
    return Front(
        np.array(cell["rays"], dtype=np.float64),
        np.array(cell["front"] if values is None else values, dtype=np.float64),
        tuple(cell["objectives"]),
        np.array(cell["reference"], dtype=np.float64),
        provenance={"networks": cell["networks"] if cell["separate"] else None},
    )


def course_fronts(cell: Cell) -> list[tuple[int, Front]]:
    """The mean validation fronts of a cell by epoch."""
    return [(one["epoch"], front_of(cell, one["values"])) for one in cell.get("course", [])]


def on_a_grid(cells: Iterable[Cell]) -> Iterator[tuple[tuple[float, float], Cell]]:
    """The finished cells that have a penalty and one alpha, with both."""
    for cell in cells:
        penalty, alpha = (cell.get("varied", {}).get(key) for key in GRID)
        if cell["seeds"] and penalty is not None and isinstance(alpha, int | float):
            yield (float(penalty), float(alpha)), cell


@cache
def exact_front(problem: str) -> Front | None:
    """The true front of a problem that knows it, `None` for another, which is not loaded.

    >>> exact_front("toy_convex"), exact_front("adult")
    (Front(1001 rays, first, second, on test), None)
    """
    if get_type_hints(registry.find("problems", problem)).get("return") is not ToyProblem:
        return None
    found = load_problem(problem)
    assert isinstance(found, ToyProblem)
    return found.exact_front(POINTS)
