"""Fronts over epochs: how training reaches its front."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from paretocosmos.pareto.front import Array, Front
from paretocosmos.plotting._limits import limits
from paretocosmos.plotting._pair import in_order, padded
from paretocosmos.plotting._panels import Panel, place_panels, row_of
from paretocosmos.plotting._sheet import finite, sheet, two_objectives
from paretocosmos.plotting._style import BRIGHTEST, faded

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Course = Sequence[tuple[int, Front]]


def convergence_figure(
    panels: Mapping[str, Course], *, title: str = "", rows: Mapping[str, str] | None = None
) -> "Figure":
    """Draw a panel for each problem, with a front for every epoch, coloured by the epoch.

    The first epochs are left out of sight if they lie far from all later ones.

    Args:
        panels: by the title of the panel, epochs and the fronts that were reached after them.
        title: a line above the picture.
        rows: by the title of a panel, the name of its row; a panel with another name begins a
            row, and a long row takes several lines.

    >>> front = Front([[0.9, 0.1], [0.1, 0.9]], [[0.3, 0.2], [0.5, 0.1]], ("loss", "gap"), (2, 2))
    >>> figure = convergence_figure({"Adult": [(10, front), (20, front)]})
    >>> [axes.get_label() for axes in figure.axes]
    ['Adult', '<colorbar>']
    """
    drawn = {panel: _finite(course) for panel, course in panels.items()}
    drawn = {panel: course for panel, course in drawn.items() if course}
    two_objectives([front for course in drawn.values() for _, front in course])
    with sheet(title) as figure:
        from matplotlib import colormaps
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import ListedColormap, Normalize

        places = [Panel(k, course[0][1], row_of(rows, k)) for k, course in drawn.items()]
        every = place_panels(figure, places, foot=0.45)
        last = max(epoch for course in drawn.values() for epoch, _ in course)
        # the first epochs bright, the last dark: what counts is seen best
        shades = ListedColormap(colormaps["viridis"](np.linspace(BRIGHTEST, 0, 256)))
        scale = ScalarMappable(Normalize(0, last), shades)
        for axes, course in zip(every, drawn.values(), strict=True):
            for epoch, front in course:
                _draw(axes, front, scale.to_rgba(np.array([epoch]))[0], last=epoch == course[-1][0])
            best = [front.values[front.non_dominated] for _, front in course]
            (left, bottom), (right, top) = padded(*limits(best, [], [course[-1][1].values]))
            axes.set(xlim=(left, right), ylim=(bottom, top))
        bar = figure.colorbar(scale, ax=every, label="epoch", aspect=28, pad=0.01, fraction=0.03)
        bar.outline.set_visible(False)
        bar.ax.tick_params(length=0, labelsize=7.5)
    return figure


def _finite(course: Course) -> Course:
    found = ((epoch, finite(front)) for epoch, front in sorted(course, key=lambda one: one[0]))
    return [(epoch, front) for epoch, front in found if front is not None]


def _draw(axes: "Axes", front: Front, colour: Array, *, last: bool) -> None:
    """One epoch: its points, and a line through the non-dominated ones."""
    keep = front.non_dominated
    order = 4 if last else 2
    if keep.sum() > 1:
        axes.plot(*in_order(front.values[keep]).T, color=colour, linewidth=1.0, zorder=order)
    for select, shade in ((~keep, faded(colour)), (keep, [colour])):
        x, y = front.values[select].T
        axes.scatter(
            x,
            y,
            s=14 if last else 9,
            color=shade,
            edgecolors="white",
            linewidths=0.3,
            zorder=order + 1,
            label="dominated" if select is not keep else "non-dominated",
        )
