"""Where the points for rays lie on a front that is known: what a method finds, and what not."""

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from paretocosmos.pareto.front import Array, Front
from paretocosmos.plotting._key import mark
from paretocosmos.plotting._panels import Panel, legend_below, place_panels, row_of
from paretocosmos.plotting._sheet import finite, sheet, two_objectives
from paretocosmos.plotting._style import MUTED, colours

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D


class Known(NamedTuple):
    """What was found, and the true front, as many points of it as make a line."""

    found: Front
    exact: Array


def intuition_figure(
    panels: Mapping[str, Known], *, title: str = "", rows: Mapping[str, str] | None = None
) -> "Figure":
    """Draw a panel for each training, with the true front, the rays, and what was found for them.

    A ray is a thin line from the origin in its colour; the point found for it has that colour. A
    point on its ray is what the cosine asks for.

    Args:
        panels: by the title of the panel.
        title: a line above the picture.
        rows: by the title of a panel, the name of its row; all panels are in one by default.

    >>> rays = [[0.9, 0.1], [0.1, 0.9]]
    >>> front = Front(rays, rays, ("first", "second"), (2, 2))
    >>> exact = np.array([[0.0, 1.0], [0.25, 0.25], [1.0, 0.0]])
    >>> figure = intuition_figure({"a weighted sum": Known(front, exact)})
    >>> [axes.get_label() for axes in figure.axes]
    ['a weighted sum']
    """
    two_objectives([known.found for known in panels.values()])
    drawn = {
        name: Known(kept, known.exact)
        for name, known in panels.items()
        if (kept := finite(known.found)) is not None
    }
    with sheet(title) as figure:
        places = [Panel(k, known.found, row_of(rows, k)) for k, known in drawn.items()]
        columns = max(Counter(panel.row for panel in places).values(), default=1)
        wide = 9.6 / columns  # all of them as wide as any sheet
        every = place_panels(figure, places, columns=columns, size=(wide, wide), foot=0.6)
        for axes, known in zip(every, drawn.values(), strict=True):
            _draw(axes, known)
        legend_below(figure, _legend())
    return figure


def _draw(axes: "Axes", known: Known) -> None:
    """One training; both axes alike, or an angle would not look as it is."""
    found, exact = known
    every = np.concatenate([found.values, exact])
    size = 1.06 * float(every.max())
    axes.plot(*exact.T, color=MUTED, linewidth=2.2, alpha=0.35, zorder=2, label="true front")
    shades = colours(found.rays)
    for ray, shade in zip(found.rays, shades, strict=True):
        end = size * ray / ray.max()
        axes.plot([0, end[0]], [0, end[1]], color=shade, linewidth=0.6, alpha=0.45, zorder=1)
    x, y = found.values.T
    axes.scatter(x, y, s=22, c=shades, edgecolors="white", linewidths=0.5, zorder=4, label="found")
    axes.collections[-1].set_clip_on(False)
    axes.set(xlim=(0, size), ylim=(0, size), aspect="equal")
    axes.grid(visible=False)
    axes.locator_params(nbins=4)


def _legend() -> list["Line2D"]:
    from matplotlib.colors import to_hex
    from matplotlib.lines import Line2D

    middle = colours(np.array([[0.5, 0.5]]))[0]
    exact = Line2D([], [], color=MUTED, linewidth=2.2, alpha=0.35, label="the true front")
    ray = Line2D([], [], color=middle, linewidth=0.8, alpha=0.6, label="a ray")
    return [exact, ray, mark("the point found for it", to_hex(middle), "o", 22)]
