"""Tables beside figures: what the fronts, courses and grids that are drawn amount to."""

from collections.abc import Sequence
from dataclasses import replace

from paretocosmos.io.schema.collected import CellResult
from paretocosmos.paper._claim_ablation import LITTLE
from paretocosmos.paper._fronts import GRID, exact_front, on_a_grid
from paretocosmos.paper.names import method_title, set_key, set_title, value_text
from paretocosmos.paper.report._labels import labels
from paretocosmos.paper.report._parts import NONE, Columns, Table, table_of
from paretocosmos.paper.report._texts import in_order, mean
from paretocosmos.pareto.metrics import hypervolume

__all__ = ["table_of_ablation", "table_of_convergence", "table_of_fronts", "table_of_intuition"]

WIDTH = "Width is the diagonal of the box around the points that no other dominates."
RULE = (
    f"{WIDTH} The claim on the penalty holds if the front of the largest one is wider than that "
    f"of the smallest by more than the noise, and larger ones dominate at most {LITTLE:.0%} of the "
    "front of the smallest. The claim on alpha holds if the hypervolume varies with alpha by more "
    "than the noise and the width does not."
)
MEANING = (
    f"The ideal point has the best value of each objective. {WIDTH} Networks for single "
    "objectives form no front: their points may lie beyond the reference point, so the paper "
    "counts their ideal point."
)
SMOOTH = (
    "Degrees are the angle between losses and ray. A conditioned network changes smoothly with the "
    "ray: between the ends of a concave front it passes through points that no weighted sum "
    "prefers. The penalty asks for losses in the direction of the ray, so more weight on an "
    "objective raises its loss, while in a weighted sum it lowers it: the order of colours is "
    "reversed."
)


def table_of_fronts(cells: Sequence[CellResult]) -> list[Table]:
    """How good and how wide every front is."""
    done, called = [cell for cell in cells if cell.seeds], labels(cells)
    columns: Columns = [
        ("set", set_title),
        ("method", lambda c: called[c.name]),
        ("hypervolume", lambda c: mean(c.metrics["hypervolume"])),
        ("of the ideal point", lambda c: mean(c.metrics["hypervolume_ideal"])),
        ("width", lambda c: mean(c.metrics["span"]) if c.volume_of == "front" else NONE),
        ("points", lambda c: str(len(c.front))),
        ("seeds", lambda c: str(len(c.seeds))),
    ]
    table = table_of("The fronts in numbers", in_order(done), columns)
    return [replace(table, notes={"*": MEANING})]


def table_of_ablation(cells: Sequence[CellResult]) -> list[Table]:
    """Hypervolume and width for every penalty and alpha, a row per set and penalty."""
    grid = list(on_a_grid(cells))
    titles = _titles([cell for _, cell in grid], aside=GRID)
    found: dict[tuple[str, float], dict[float, CellResult]] = {}
    for (penalty, alpha), cell in grid:
        found.setdefault((titles[cell.name], penalty), {})[alpha] = cell
    alphas = sorted({alpha for row in found.values() for alpha in row})
    sets = list(dict.fromkeys(title for title, _ in found))
    rows = []
    for title, penalty in sorted(found, key=lambda at: (sets.index(at[0]), at[1])):
        texts = [title, f"{penalty:g}"]
        for own in map(found[title, penalty].get, alphas):
            texts += [NONE, NONE] if own is None else [mean(own.volume), mean(own.metrics["span"])]
        rows.append(tuple(texts))
    head = ("set", "λ", *(text for alpha in alphas for text in (f"HV, α {alpha:g}", "width")))
    title = "Hypervolume and width by penalty and alpha"
    return [Table(title, head, tuple(rows), notes={"*": RULE} if rows else {})]


def table_of_convergence(cells: Sequence[CellResult]) -> list[Table]:
    """The validation hypervolume after some epochs, and how wide the first and last fronts are."""
    titles, head = _titles(cells), ("epoch", "hypervolume", "of the last", "width")
    found = []
    for cell in (cell for cell in cells if cell.course):
        last = cell.course[-1].hypervolume.mean
        rows = tuple(
            (
                str(stage.epoch),
                mean(stage.hypervolume),
                f"{stage.hypervolume.mean / last:.1%}" if last else NONE,
                mean(stage.span),
            )
            for stage in cell.course
        )
        found.append(Table(f"{titles[cell.name]}: validation fronts over epochs", head, rows))
    return found


def _titles(cells: Sequence[CellResult], *, aside: Sequence[str] = ()) -> dict[str, str]:
    """By a cell's name, its set, and its label where there is more than one."""
    called = labels(cells, aside=aside)
    several = len(set(called.values())) > 1
    return {c.name: set_title(c) + (f", {called[c.name]}" if several else "") for c in cells}


def table_of_intuition(cells: Sequence[CellResult]) -> list[Table]:
    """How much of a true front was found."""
    done = [cell for cell in cells if cell.seeds]
    sets = list(dict.fromkeys(map(set_key, done)))

    def exact(cell: CellResult) -> str:
        front = exact_front(cell.problem)
        return NONE if front is None else f"{hypervolume(front):.3f}"

    columns: Columns = [
        ("problem", lambda c: set_title(c, protocol=False)),
        ("method", lambda c: method_title(c.method)),
        ("settings", _varied),
        ("hypervolume", lambda c: mean(c.volume)),
        ("of the true front", exact),
        ("width", lambda c: mean(c.metrics["span"])),
        ("degrees from the ray", lambda c: mean(c.metrics["angle"], 1)),
    ]
    ordered = sorted(done, key=lambda cell: sets.index(set_key(cell)))
    return [replace(table_of("What was found", ordered, columns), notes={"*": SMOOTH})]


def _varied(cell: CellResult) -> str:
    """What tells a cell from another with the same method and problem."""
    signs = {"penalty": "λ", "alpha": "α"}
    known = (f"{signs[key]} {value_text(v)}" for key, v in cell.varied.items() if key in signs)
    return ", ".join(known) or NONE
