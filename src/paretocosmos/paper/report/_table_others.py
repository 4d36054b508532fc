"""Tables beside figures: what the fronts, courses and grids that are drawn amount to."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from paretocosmos.paper._claim_ablation import LITTLE
from paretocosmos.paper._names import method_title
from paretocosmos.paper._sets import place_of, set_title
from paretocosmos.paper.report._fronts import GRID, exact_front, on_a_grid
from paretocosmos.paper.report._labels import labels
from paretocosmos.paper.report._parts import NONE, Table
from paretocosmos.paper.report._texts import in_order, spread, varied
from paretocosmos.pareto.metrics import hypervolume

__all__ = ["table_of_ablation", "table_of_convergence", "table_of_fronts", "table_of_intuition"]

Cell = Mapping[str, Any]
WIDTH = "Width is the diagonal of the box around the points that no other dominates."
RULE = (
    f"{WIDTH} That of the largest penalty must be wider than that of the smallest beyond the "
    f"noise, and larger penalties dominate at most {LITTLE:.0%} of the front of the smallest; over "
    "alpha the hypervolume must move beyond the noise, and the width not."
)
MEANING = (
    f"The ideal point has the best value of each objective. {WIDTH} Networks for one objective "
    "each are no front: their points may lie beyond the reference point, and the paper counts "
    "their ideal point."
)
SMOOTH = (
    "Degrees are between losses and ray. A network that hears the ray changes smoothly with it: "
    "between the ends of a concave front it passes through points that no weighted sum prefers. "
    "The "
    "penalty asks for losses in the direction of the ray, so that more weight on an objective "
    "gives "
    "it more loss, where in a weighted sum it gives less: the colours run the other way."
)


def table_of_fronts(cells: Sequence[Cell]) -> list[Table]:
    """How good and how wide every front is."""
    done, called = [cell for cell in cells if cell["seeds"]], labels(cells)
    rows = [
        (
            set_title(cell),
            called[cell["name"]],
            spread(cell["metrics"]["hypervolume"]),
            spread(cell["metrics"]["hypervolume_ideal"]),
            spread(cell["metrics"]["span"]) if cell["volume_of"] == "front" else NONE,
            str(len(cell["front"])),
            str(len(cell["seeds"])),
        )
        for cell in in_order(done)
    ]
    head = ("set", "method", "hypervolume", "of the ideal point", "width", "points", "seeds")
    return [Table("The fronts in numbers", head, tuple(rows), notes={"*": MEANING}, named=2)]


def table_of_ablation(cells: Sequence[Cell]) -> list[Table]:
    """Hypervolume and width for every penalty and alpha, a row per set and penalty."""
    grid = list(on_a_grid(cells))
    called = labels([cell for _, cell in grid], aside=GRID)
    several = len(set(called.values())) > 1
    found: dict[tuple[str, float], dict[float, Cell]] = {}
    for (penalty, alpha), cell in grid:
        title = set_title(cell)
        title += f", {called[cell['name']]}" if several else ""
        found.setdefault((title, penalty), {})[alpha] = cell
    alphas = sorted({alpha for row in found.values() for alpha in row})
    sets = list(dict.fromkeys(title for title, _ in found))
    rows = []
    for place, row in sorted(found.items(), key=lambda one: (sets.index(one[0][0]), one[0][1])):
        title, penalty = place
        texts = [title, f"{penalty:g}"]
        for alpha in alphas:
            own = row.get(alpha)
            texts.append(NONE if own is None else spread(own["volume"]))
            texts.append(NONE if own is None else spread(own["metrics"]["span"]))
        rows.append(tuple(texts))
    head = ("set", "λ", *(text for alpha in alphas for text in (f"HV, α {alpha:g}", "width")))
    title = "Hypervolume and width by penalty and alpha"
    return [Table(title, head, tuple(rows), notes={"*": RULE} if rows else {})]


def table_of_convergence(cells: Sequence[Cell]) -> list[Table]:
    """The validation hypervolume after some epochs, and how wide the first and last fronts are."""
    found, called = [], labels(cells)
    several = len(set(called.values())) > 1
    for cell in (cell for cell in cells if cell["seeds"] and cell.get("course")):
        course = cell["course"]
        last = course[-1]["hypervolume"]["mean"]
        rows = tuple(
            (
                str(one["epoch"]),
                spread(one["hypervolume"]),
                f"{one['hypervolume']['mean'] / last:.1%}" if last else NONE,
                spread(one["span"]),
            )
            for one in course
        )
        where = set_title(cell)
        where += f", {called[cell['name']]}" if several else ""
        head = ("epoch", "hypervolume", "of the last", "width")
        found.append(Table(f"{where}: validation fronts over epochs", head, rows))
    return found


def table_of_intuition(cells: Sequence[Cell]) -> list[Table]:
    """How much of a true front was found."""
    rows = []
    done = [cell for cell in cells if cell["seeds"]]
    places = list(dict.fromkeys(map(place_of, done)))
    for cell in sorted(done, key=lambda one: places.index(place_of(one))):
        exact = exact_front(cell["problem"])
        angle = cell["metrics"]["angle"]
        rows.append(
            (
                set_title(cell, protocol=False),
                method_title(cell["method"]),
                varied(cell) or NONE,
                spread(cell["volume"]),
                NONE if exact is None else f"{hypervolume(exact):.3f}",
                spread(cell["metrics"]["span"]),
                NONE if angle is None or math.isnan(angle["mean"]) else spread(angle, 1),
            )
        )
    head = ("problem", "method", "settings", "hypervolume", "that of the true front", "width")
    more = ("degrees from the rays",)
    return [Table("What was found", head + more, tuple(rows), notes={"*": SMOOTH}, named=3)]
