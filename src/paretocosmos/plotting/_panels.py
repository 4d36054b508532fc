"""A sheet of panels, three a row as in the paper: their places, titles and labels."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from paretocosmos.errors import ConfigurationError
from paretocosmos.pareto.front import Front
from paretocosmos.plotting._style import HAIRLINE, INK, lines_of, shown, shown_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

COLUMNS = 3
SIZE = (3.15, 2.75)  # of a panel, in inches
ALONE = (5.6, 3.6)  # of one that has a row for itself
LETTERS = 10.5  # of a panel's title to an inch
FOOT = 0.75  # what title and legend take


class Panel(NamedTuple):
    """One panel: its title, a front whose objectives are its axes, and the name of its row.

    Panels with one name share a row; another name begins one.
    """

    title: str
    front: Front
    row: str = ""


def place_panels(
    figure: "Figure",
    panels: Sequence[Panel],
    *,
    columns: int = COLUMNS,
    size: tuple[float, float] = SIZE,
    foot: float = FOOT,
) -> list["Axes"]:
    """Axes for panels in rows, the figure as large as they need.

    A label is shown once where its neighbours have the same: at the left end of a row, at the foot
    of a column. A panel that has the width of the figure for itself is larger.

    Args:
        figure: an empty one.
        panels: in reading order.
        columns: panels a row.
        size: inches of a panel.
        foot: inches for what is above and below all panels.
    """
    if not panels:
        raise ConfigurationError("`panels` needs a front with finite values, found none")
    places = _places(panels, columns)
    down, across = (1 + max(place[way] for place in places) for way in (0, 1))
    width, height = ALONE if across == 1 and size == SIZE else size
    figure.set_size_inches(0.25 + width * across, foot + height * down)
    grid = figure.add_gridspec(down, across, wspace=0.03, hspace=0.05)
    names = {
        place: shown_names(panel.front, 30) for place, panel in zip(places, panels, strict=True)
    }
    every = []
    for (row, column), panel in zip(places, panels, strict=True):
        axes = figure.add_subplot(grid[row, column], label=panel.title)
        frame_panel(axes, panel.title, width)
        own = names[row, column]
        if names.get((row + 1, column)) != own:
            axes.set_xlabel(f"{own[0]}  (← better)", fontsize=8)
        if names.get((row, column - 1)) != own:
            axes.set_ylabel(f"{own[1]}  (← better)", fontsize=8)
        every.append(axes)
    figure.align_labels(every)
    return every


def row_of(rows: Mapping[str, str] | None, title: str) -> str:
    """The name of a panel's row; all are in one by default."""
    return (rows or {}).get(title, "")


def _places(panels: Sequence[Panel], columns: int) -> list[tuple[int, int]]:
    """Row and column of every panel: a row ends when it is full, and where its name does."""
    places: list[tuple[int, int]] = []
    for number, panel in enumerate(panels):
        row, column = places[-1] if places else (0, -1)
        full = column + 1 == columns
        ended = number > 0 and panel.row != panels[number - 1].row
        places.append((row + 1, 0) if full or ended else (row, column + 1))
    return places


def frame_panel(axes: "Axes", title: str, width: float = SIZE[0]) -> None:
    """What every panel has before a point is in it; a title too long for it takes two lines."""
    axes.grid(color=HAIRLINE, linewidth=0.4, alpha=0.7)
    axes.tick_params(length=0, pad=4, labelsize=7.5)
    axes.locator_params(nbins=5)
    text = lines_of(shown(title, 88), int(width * LETTERS))
    axes.set_title(text, loc="left", color=INK, fontsize=9, fontweight="bold")


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
