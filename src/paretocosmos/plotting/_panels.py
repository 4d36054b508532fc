"""A sheet of panels, three a row as in the paper: their places, titles and labels."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from paretocosmos.errors import ConfigurationError
from paretocosmos.front import Front
from paretocosmos.plotting._style import HAIRLINE, INK, shown, shown_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

COLUMNS = 3
SIZE = (3.15, 2.75)  # of a panel, in inches
FOOT = 0.75  # what title and legend take


class Panel(NamedTuple):
    """One panel: what stands above it, and a front whose objectives are its axes."""

    title: str
    front: Front


def place_panels(
    figure: "Figure",
    panels: Sequence[Panel],
    *,
    columns: int = COLUMNS,
    size: tuple[float, float] = SIZE,
    foot: float = FOOT,
) -> list["Axes"]:
    """Axes for panels in rows, the figure as large as they need.

    A label stands once where its neighbours have the same: at the left end of a row, at the foot
    of a column.

    Args:
        figure: an empty one.
        panels: in reading order.
        columns: panels a row.
        size: inches of a panel.
        foot: inches for what stands above and below all panels.
    """
    if not panels:
        raise ConfigurationError("a picture needs at least one panel, found none")
    across = min(columns, len(panels))
    rows = -(-len(panels) // across)
    figure.set_size_inches(0.25 + size[0] * across, foot + size[1] * rows)
    grid = figure.add_gridspec(rows, across, wspace=0.03, hspace=0.05)
    names = [tuple(shown_names(panel.front, 30)) for panel in panels]
    every = []
    for number, panel in enumerate(panels):
        row, column = divmod(number, across)
        axes = figure.add_subplot(grid[row, column], label=panel.title)
        frame_panel(axes, panel.title)
        below, left = number + across, number - 1
        if below >= len(panels) or names[below] != names[number]:
            axes.set_xlabel(f"{names[number][0]}  (← better)", fontsize=8)
        if column == 0 or names[left] != names[number]:
            axes.set_ylabel(f"{names[number][1]}  (← better)", fontsize=8)
        every.append(axes)
    figure.align_labels(every)
    return every


def frame_panel(axes: "Axes", title: str) -> None:
    """What every panel has before a point is in it."""
    axes.grid(color=HAIRLINE, linewidth=0.4, alpha=0.7)
    axes.tick_params(length=0, pad=4, labelsize=7.5)
    axes.locator_params(nbins=5)
    axes.set_title(shown(title, 44), loc="left", color=INK, fontsize=9, fontweight="bold")


def legend_below(figure: "Figure", handles: Sequence["Line2D"]) -> None:
    """One legend for all panels, in as few lines as fit the figure, all about as long."""
    for lines in range(1, len(handles) + 1):
        legend = figure.legend(
            handles=handles,
            loc="outside lower left",
            ncols=-(-len(handles) // lines),
            columnspacing=1.3,
            handlelength=1.6,
            fontsize=8,
        )
        if legend.get_window_extent().width < 0.98 * figure.bbox.width:
            return
        legend.remove()
