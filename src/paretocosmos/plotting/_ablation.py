"""Penalty and alpha: a row for each problem, a panel for each alpha, a colour for each penalty."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from paretocosmos.pareto.front import Front
from paretocosmos.plotting._key import dominated, mark
from paretocosmos.plotting._methods import Method, box_of, draw_methods
from paretocosmos.plotting._panels import Panel, place_panels
from paretocosmos.plotting._sheet import finite, sheet, two_objectives
from paretocosmos.plotting._style import BRIGHTEST, SHAPES, Look

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

Grid = Mapping[tuple[float, float], Front]


def ablation_figure(panels: Mapping[str, Grid], *, title: str = "") -> "Figure":
    """Draw a row of panels for each problem, one panel for each alpha, all of a row alike.

    A penalty has one colour in all panels, the larger the darker.

    Args:
        panels: by the problem, by penalty and alpha, the front that was reached.
        title: a line above the picture.

    >>> front = Front([[0.9, 0.1], [0.1, 0.9]], [[0.3, 0.2], [0.5, 0.1]], ("loss", "gap"), (2, 2))
    >>> figure = ablation_figure({"Adult": {(0.0, 0.1): front, (0.0, 0.7): front}})
    >>> [axes.get_title(loc="left") for axes in figure.axes]
    ['Adult, α 0.1', 'Adult, α 0.7']
    """
    two_objectives([front for grid in panels.values() for front in grid.values()])
    kept = {
        problem: {at: one for at, front in grid.items() if (one := finite(front)) is not None}
        for problem, grid in panels.items()
    }
    kept = {problem: grid for problem, grid in kept.items() if grid}
    with sheet(title) as figure:
        looks = _looks(kept)
        rows = {problem: _row(grid, looks) for problem, grid in kept.items()}
        columns = max((len(row) for row in rows.values()), default=1)
        places = []
        for problem, row in rows.items():
            some = next(method for methods in row.values() for method in methods).fronts[0]
            places += [Panel(f"{problem}, α {alpha:g}", some, problem) for alpha in row]
        every = iter(place_panels(figure, places, columns=columns, foot=0.45))
        for row in rows.values():
            box = box_of([method for methods in row.values() for method in methods])
            for number, methods in enumerate(row.values()):
                axes = next(every)
                draw_methods(axes, methods, (0, 1), box)
                axes.tick_params(labelleft=number == 0)
            key = axes.legend(handles=_legend(row), loc="upper left", fontsize=8)
            key.set(bbox_to_anchor=(1, 1), in_layout=len(row) == columns)  # else there is room
    return figure


def _looks(kept: Mapping[str, Grid]) -> dict[float, Look]:
    """A colour and a shape for each penalty: its place among those of its problem decides."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    looks: dict[float, Look] = {}
    for grid in kept.values():
        penalties = sorted({penalty for penalty, _ in grid})
        for place, penalty in enumerate(penalties):
            share = BRIGHTEST * (1 - place / max(len(penalties) - 1, 1))
            colour = to_hex(colormaps["viridis"](float(np.clip(share, 0, 1))))
            looks.setdefault(penalty, Look(colour, SHAPES[place % len(SHAPES)], 12.0))
    return looks


def _row(grid: Grid, looks: Mapping[float, Look]) -> dict[float, list[Method]]:
    """By alpha, the penalties in order, each drawn as a method is."""
    return {
        alpha: [
            Method(f"λ {penalty:g}", [front], looks[penalty], ideal=False)
            for (penalty, own), front in sorted(grid.items(), key=lambda item: item[0])
            if own == alpha
        ]
        for alpha in sorted({alpha for _, alpha in grid})
    }


def _legend(row: Mapping[float, list[Method]]) -> list["Line2D"]:
    """The penalties of one row, and what a dominated point looks like, where there is one."""
    every = [method for methods in row.values() for method in methods]
    found = {method.name: method for method in every}
    handles = [mark(name, *method.look) for name, method in found.items()]
    for handle in handles:
        handle.set_linewidth(1.0)
    if not all(front.non_dominated.all() for method in every for front in method.fronts):
        handles.append(dominated(14))
    return handles
