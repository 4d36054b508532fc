"""The figures of a recipe, from what was collected of it."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from paretocosmos import plotting
from paretocosmos.io.schema.collected import CellResult, RecipeResult
from paretocosmos.paper._fronts import GRID, exact_front, front_of, on_a_grid
from paretocosmos.paper.names import method_title, set_title
from paretocosmos.paper.report._labels import by_kind, labels, panel_rows, panel_titles
from paretocosmos.pareto.front import Front

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["figures"]

# The paper's methods look the same in all pictures.
LOOKS = ("COSMOS", "PHN-LS", "PHN-EPO", "ParetoMTL", "Single Task")

Draw = Callable[..., "Figure"]
Drawn = tuple[str, Callable[[], "Figure"]]
Drawable = Iterator[tuple[str, Draw]]
"""Captions, and what draws a figure when it is given a title."""


def figures(result: RecipeResult) -> Iterator[Drawn]:
    """Every figure of a recipe: its caption, which is its title too, and how to draw it."""
    kinds: dict[str, Callable[[Sequence[CellResult]], Drawable]] = {
        "table": _fronts,
        "fronts": _fronts,
        "convergence": _convergence,
        "ablation": _ablation,
        "celeba": _faces,
        "intuition": _intuition,
        "study": _fronts,
    }
    epochs = result.rehearsal
    mark = "" if epochs is None else f"REHEARSAL, {epochs} epoch{'s' * (epochs > 1)}: "
    for text, draw in kinds[result.shows](result.done):
        caption = mark + text
        yield caption, partial(draw, title=caption[:1].upper() + caption[1:])


def _fronts(cells: Sequence[CellResult]) -> Drawable:
    """A panel per set, those with the same objectives and protocol in a row."""
    planar = by_kind([cell for cell in cells if len(cell.objectives) == 2])
    several = len({cell.protocol for cell in planar}) > 1
    called = labels(planar)
    titles = {cell.name: set_title(cell, protocol=several) for cell in planar}
    panels: dict[str, dict[str, Front]] = {}
    for cell in planar:
        panels.setdefault(titles[cell.name], {})[called[cell.name]] = front_of(cell)
    if panels:
        ideal = {called[cell.name] for cell in planar if cell.volume_of == "ideal point"}
        rows = panel_rows(planar, titles)
        draw = partial(plotting.fronts_figure, panels, ideal=ideal, order=LOOKS, rows=rows)
        yield f"fronts on the test split, {_seeds(planar)}", draw


def _convergence(cells: Sequence[CellResult]) -> Drawable:
    """A panel per set and method."""
    drawn = by_kind([cell for cell in cells if cell.course])
    titles = panel_titles(drawn, labels(drawn))
    panels = {
        titles[cell.name]: [(stage.epoch, front_of(cell, stage)) for stage in cell.course]
        for cell in drawn
    }
    if panels:
        names = ", ".join(dict.fromkeys(method_title(cell.method) for cell in drawn))
        draw = partial(plotting.convergence_figure, panels, rows=panel_rows(drawn, titles))
        yield f"validation fronts of {names} over epochs, {_seeds(drawn)}", draw


def _ablation(cells: Sequence[CellResult]) -> Drawable:
    """A row per set, a panel per alpha."""
    varied = list(on_a_grid(cells))
    drawn = [cell for _, cell in varied]
    titles = panel_titles(drawn, labels(drawn, aside=GRID))
    panels: dict[str, dict[tuple[float, float], Front]] = {}
    for at, cell in varied:
        panels.setdefault(titles[cell.name], {})[at] = front_of(cell)
    if panels:
        caption = f"the effect of the penalty λ and the Dirichlet parameter α, {_seeds(drawn)}"
        yield caption, partial(plotting.ablation_figure, panels)


def _faces(cells: Sequence[CellResult]) -> Drawable:
    """Fronts of two tasks in one figure, each front of COSMOS on three in one of its own."""
    called = labels(cells)
    yield from _fronts(cells)
    for cell in cells:
        if len(cell.objectives) == 3 and cell.volume_of == "front":
            where = set_title(cell, protocol=False)
            caption = f"front of {called[cell.name]} on {where}, {_seeds([cell])}"
            yield caption, partial(plotting.three_figure, front_of(cell))


def _intuition(cells: Sequence[CellResult]) -> Drawable:
    """A row per problem that knows its front, a panel per method and penalty."""
    toys = [cell for cell in cells if exact_front(cell.problem) is not None]
    sets = panel_titles(toys, dict.fromkeys((cell.name for cell in toys), ""))
    called = labels(toys, aside=["penalty"])
    several = len({called[cell.name] for cell in toys if "penalty" in cell.varied}) > 1
    order = list(dict.fromkeys(sets.values()))
    panels, rows = {}, {}
    for cell in sorted(toys, key=lambda one: order.index(sets[one.name])):
        penalty, exact = cell.varied.get("penalty"), exact_front(cell.problem)
        assert exact is not None
        told = [called[cell.name] if penalty is None or several else ""]
        told += [] if penalty is None else [f"λ {penalty:g}"]
        title = f"{sets[cell.name]}: {', '.join(filter(None, told))}"
        panels[title] = plotting.Known(front_of(cell), exact.values)
        rows[title] = sets[cell.name]
    if panels:
        caption = "what a weighted sum finds, and what the penalty λ of COSMOS does"
        yield caption, partial(plotting.intuition_figure, panels, rows=rows)


def _seeds(cells: Sequence[CellResult]) -> str:
    counts = sorted({len(cell.seeds) for cell in cells})
    if counts == [1]:
        return "one seed"
    return f"mean of {counts[0] if len(counts) == 1 else f'{counts[0]} to {counts[-1]}'} seeds"
