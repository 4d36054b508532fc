"""The figures of a recipe, from what was collected of it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from paretocosmos.paper._names import method_title
from paretocosmos.paper._sets import set_title
from paretocosmos.paper.report._fronts import (
    GRID,
    course_fronts,
    exact_front,
    front_of,
    on_a_grid,
)
from paretocosmos.paper.report._labels import by_kind, groups, labels, panel_titles
from paretocosmos.pareto.front import Front
from paretocosmos.plotting import (
    Known,
    ablation_figure,
    convergence_figure,
    fronts_figure,
    intuition_figure,
    three_figure,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["figures"]

# The paper's methods look the same in all pictures.
LOOKS = ("COSMOS", "PHN-LS", "PHN-EPO", "ParetoMTL", "Single Task")

Cell = Mapping[str, Any]
Drawn = tuple[str, Callable[[], "Figure"]]


def figures(content: Mapping[str, Any]) -> Iterator[Drawn]:
    """Every figure of a recipe: its caption, which is its title too, and how to draw it.

    Args:
        content: what `collect` gave.
    """
    cells = [cell for cell in content["cells"] if cell["seeds"]]
    kinds: dict[str, Callable[[Sequence[Cell], str], Iterator[Drawn]]] = {
        "table": _fronts,
        "fronts": _fronts,
        "convergence": _convergence,
        "ablation": _ablation,
        "celeba": _faces,
        "intuition": _intuition,
    }
    epochs = content["rehearsal"]
    mark = "" if epochs is None else f"REHEARSAL, {epochs} epoch{'s' * (epochs > 1)}: "
    yield from kinds[content["shows"]](cells, mark)


def _fronts(cells: Sequence[Cell], mark: str) -> Iterator[Drawn]:
    """A panel per set, those with the same objectives and protocol in a row."""
    planar = by_kind([cell for cell in cells if len(cell["objectives"]) == 2])
    several = len({c["protocol"] for c in planar}) > 1
    called = labels(planar)
    titles = {c["name"]: set_title(c, protocol=several) for c in planar}
    panels: dict[str, dict[str, Front]] = {}
    for cell in planar:
        panels.setdefault(titles[cell["name"]], {})[called[cell["name"]]] = front_of(cell)
    if panels:
        caption = f"{mark}fronts on the test split, {_seeds(planar)}"
        yield (
            caption,
            partial(
                fronts_figure,
                panels,
                title=_first_up(caption),
                ideal={called[c["name"]] for c in planar if c["volume_of"] == "ideal point"},
                order=LOOKS,
                rows=groups(planar, titles),
            ),
        )


def _convergence(cells: Sequence[Cell], mark: str) -> Iterator[Drawn]:
    """A panel per set and method."""
    drawn = by_kind([cell for cell in cells if course_fronts(cell)])
    titles = panel_titles(drawn, labels(drawn))
    panels = {titles[cell["name"]]: course_fronts(cell) for cell in drawn}
    if panels:
        names = ", ".join(dict.fromkeys(method_title(cell["method"]) for cell in drawn))
        caption = f"{mark}validation fronts of {names} over epochs, {_seeds(drawn)}"
        title, rows = _first_up(caption), groups(drawn, titles)
        yield caption, partial(convergence_figure, panels, title=title, rows=rows)


def _ablation(cells: Sequence[Cell], mark: str) -> Iterator[Drawn]:
    """A row per set, a panel per alpha."""
    varied = list(on_a_grid(cells))
    drawn = [cell for _, cell in varied]
    titles = panel_titles(drawn, labels(drawn, aside=GRID))
    panels: dict[str, dict[tuple[float, float], Front]] = {}
    for at, cell in varied:
        panels.setdefault(titles[cell["name"]], {})[at] = front_of(cell)
    if panels:
        caption = f"{mark}what the penalty λ and the Dirichlet parameter α do, {_seeds(drawn)}"
        yield caption, partial(ablation_figure, panels, title=_first_up(caption))


def _faces(cells: Sequence[Cell], mark: str) -> Iterator[Drawn]:
    """Fronts of two tasks in one figure, each front of COSMOS on three in one of its own."""
    called = labels(cells)
    yield from _fronts(cells, mark)
    for cell in cells:
        if len(cell["objectives"]) == 3 and cell["volume_of"] == "front":
            who = called[cell["name"]]
            where = set_title(cell, protocol=False)
            caption = f"{mark}front of {who} on {where}, {_seeds([cell])}"
            yield caption, partial(three_figure, front_of(cell), title=_first_up(caption))


def _intuition(cells: Sequence[Cell], mark: str) -> Iterator[Drawn]:
    """A row per problem that knows its front, a panel per method and penalty."""
    toys = [cell for cell in cells if exact_front(cell["problem"]) is not None]
    sets = panel_titles(toys, dict.fromkeys((cell["name"] for cell in toys), ""))
    called = labels(toys, aside=["penalty"])
    several = len({called[c["name"]] for c in toys if "penalty" in c["varied"]}) > 1
    order = list(dict.fromkeys(sets.values()))
    panels, rows = {}, {}
    for cell in sorted(toys, key=lambda one: order.index(sets[one["name"]])):
        who, penalty = called[cell["name"]], cell["varied"].get("penalty")
        told = [who if penalty is None or several else ""]
        told += [] if penalty is None else [f"λ {penalty:g}"]
        exact = exact_front(cell["problem"])
        assert exact is not None
        title = f"{sets[cell['name']]}: {', '.join(filter(None, told))}"
        panels[title] = Known(front_of(cell), exact.values)
        rows[title] = sets[cell["name"]]
    if panels:
        caption = f"{mark}what a weighted sum finds, and what the penalty λ of COSMOS does"
        title = _first_up(caption)
        yield caption, partial(intuition_figure, panels, title=title, rows=rows)


def _seeds(cells: Sequence[Cell]) -> str:
    counts = sorted({len(cell["seeds"]) for cell in cells})
    if counts == [1]:
        return "one seed"
    return f"mean of {counts[0] if len(counts) == 1 else f'{counts[0]} to {counts[-1]}'} seeds"


def _first_up(text: str) -> str:
    return text[:1].upper() + text[1:]
