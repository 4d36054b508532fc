"""The fronts of methods, a panel for each problem."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from paretocosmos.pareto.front import Front
from paretocosmos.plotting._key import dominated, mark
from paretocosmos.plotting._methods import Method, box_of, draw_methods
from paretocosmos.plotting._panels import Panel, legend_below, place_panels, row_of
from paretocosmos.plotting._sheet import finite, sheet, two_objectives
from paretocosmos.plotting._style import MUTED, Look, look

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D


def fronts_figure(
    panels: Mapping[str, Mapping[str, Front]],
    *,
    title: str = "",
    ideal: Collection[str] = (),
    order: Sequence[str] = (),
    rows: Mapping[str, str] | None = None,
) -> "Figure":
    """Draw a panel for each problem, with one front for each method, three panels a row.

    A method has the same colour and shape in every panel. What is far worse than the fronts of a
    panel is a small triangle at its border, in its direction.

    Args:
        panels: by the title of the panel, by the name of the method; two objectives each.
        title: a line above the picture.
        ideal: methods with one network per objective; their ideal point is a star.
        order: methods, drawn here or not, each of which keeps its look from picture to picture;
            others come after them.
        rows: by the title of a panel, the name of its row; a panel with another name begins a
            row, and a long row takes several lines.

    >>> front = Front([[0.9, 0.1], [0.1, 0.9]], [[0.3, 0.2], [0.5, 0.1]], ("loss", "gap"), (2, 2))
    >>> figure = fronts_figure({"Adult": {"COSMOS": front}, "COMPAS": {"COSMOS": front}})
    >>> [axes.get_title(loc="left") for axes in figure.axes]
    ['Adult', 'COMPAS']
    """
    found = (name for fronts in panels.values() for name in fronts)
    names = list(dict.fromkeys([*order, *found]))
    two_objectives([front for fronts in panels.values() for front in fronts.values()])
    drawn = {
        panel: [
            _method(name, kept, look(names.index(name)), name in ideal)
            for name, front in fronts.items()
            if (kept := finite(front)) is not None
        ]
        for panel, fronts in panels.items()
    }
    drawn = {panel: methods for panel, methods in drawn.items() if methods}
    with sheet(title) as figure:
        places = [Panel(k, m[0].fronts[0], row_of(rows, k)) for k, m in drawn.items()]
        every = place_panels(figure, places)
        for axes, methods in zip(every, drawn.values(), strict=True):
            draw_methods(axes, methods, (0, 1), box_of(methods))
        legend_below(figure, _legend(drawn, names))
    return figure


def _method(name: str, front: Front, own: Look, ideal: bool) -> Method:
    """A method of one front; points on a line are smaller, for a panel is a third of a sheet."""
    method = Method(name, [front], own, ideal)
    return replace(method, look=own._replace(size=0.6 * own.size)) if method.joined else method


def _legend(drawn: Mapping[str, list[Method]], names: list[str]) -> list["Line2D"]:
    """One entry per method, and what the other marks are, where there are some."""
    every = [method for methods in drawn.values() for method in methods]
    handles = []
    for name in names:
        own = [method for method in every if method.name == name]
        if own:
            handles.append(mark(name, own[0].look.colour, own[0].look.shape, own[0].size))
            handles[-1].set_linewidth(1.0 if any(m.joined for m in own) else 0)
        if any(method.ideal for method in own):
            handles.append(mark(f"{name}, ideal point", own[0].look.colour, "*", 130))
    if not all(front.non_dominated.all() for method in every for front in method.fronts):
        handles.append(dominated(20))
    if any(m.outside(*box_of(methods)).any() for methods in drawn.values() for m in methods):
        handles.append(mark("lies outside", MUTED, (3, 0, -90), 30))
    return handles
