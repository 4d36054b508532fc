"""Fronts beside a true front in closed form, with their rays."""

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from paretocosmos.pareto.front import Array, Front
from paretocosmos.plotting.panels import Panel, draw_legend_below, place_panels
from paretocosmos.plotting.style import (
    MUTED,
    check_two_objectives,
    create_handle,
    keep_finite,
    open_sheet,
    ray_colours,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D


class Known(NamedTuple):
    """An evaluated front beside the true one, with enough points of it to draw a line."""

    front: Front
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
    check_two_objectives([panel.front for panel in panels.values()])
    drawn = {
        name: Known(finite, panel.exact)
        for name, panel in panels.items()
        if (finite := keep_finite(panel.front)) is not None
    }
    with open_sheet(title) as figure:
        places = [Panel(k, panel.front, (rows or {}).get(k, "")) for k, panel in drawn.items()]
        columns = max(Counter(panel.row for panel in places).values(), default=1)
        # square panels, since equal axes would leave the rest of an oblong one empty
        wide = 9.6 / columns  # all of them as wide as any sheet
        panel_axes = place_panels(figure, places, columns=columns, size=(wide, wide), foot=0.6)
        for axes, panel in zip(panel_axes, drawn.values(), strict=True):
            _draw_known(axes, panel)
        draw_legend_below(figure, _intuition_legend())
    return figure


def _draw_known(axes: "Axes", panel: Known) -> None:
    """Draw one training; equal axes keep angles as they are."""
    front, exact = panel
    points = np.concatenate([front.values, exact])
    # from the origin, where all rays begin
    size = 1.06 * float(points.max())
    axes.plot(*exact.T, color=MUTED, linewidth=2.2, alpha=0.35, zorder=2, label="true front")
    shades = ray_colours(front.rays)
    for ray, shade in zip(front.rays, shades, strict=True):
        # up to the border of the square: the larger entry reaches it
        end = size * ray / ray.max()
        axes.plot([0, end[0]], [0, end[1]], color=shade, linewidth=0.6, alpha=0.45, zorder=1)
    x, y = front.values.T
    axes.scatter(x, y, s=22, c=shades, edgecolors="white", linewidths=0.5, zorder=4, label="found")
    axes.collections[-1].set_clip_on(False)
    axes.set(xlim=(0, size), ylim=(0, size), aspect="equal")
    axes.grid(visible=False)
    axes.locator_params(nbins=4)


def _intuition_legend() -> list["Line2D"]:
    from matplotlib.colors import to_hex
    from matplotlib.lines import Line2D

    # every ray has its own colour, so the legend shows that of the middle one
    middle = ray_colours(np.array([[0.5, 0.5]]))[0]
    exact = Line2D([], [], color=MUTED, linewidth=2.2, alpha=0.35, label="the true front")
    ray = Line2D([], [], color=middle, linewidth=0.8, alpha=0.6, label="a ray")
    return [exact, ray, create_handle("the point found for it", to_hex(middle), "o", 22)]
