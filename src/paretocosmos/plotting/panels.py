"""Sheets of panels, three a row, for reproductions: fronts of many trainings side by side."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from paretocosmos.errors import ConfigurationError
from paretocosmos.pareto.front import Array, Front
from paretocosmos.plotting.comparison import Method, compute_box, create_legend, draw_methods
from paretocosmos.plotting.style import (
    BRIGHTEST,
    HAIRLINE,
    INK,
    MUTED,
    SHAPES,
    Look,
    check_two_objectives,
    create_handle,
    keep_finite,
    method_look,
    objective_labels,
    open_sheet,
    ray_colours,
    shorten_text,
    wrap_text,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D


# More panels a row would be too small to read on a page.
COLUMNS = 3
SIZE = (3.15, 2.75)  # of a panel, in inches
ALONE = (5.6, 3.6)  # of one that has a row for itself
# By the width of bold DejaVu Sans at 9 points, the font of the titles.
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
    """Create axes for panels in rows, and make the figure as large as they need.

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
    places: list[tuple[int, int]] = []
    for number, panel in enumerate(panels):
        # column -1 makes the first panel land in column 0
        row, column = places[-1] if places else (0, -1)
        # a row ends if it is full, or if its name changes
        ended = number > 0 and panel.row != panels[number - 1].row
        full = column + 1 == columns
        places.append((row + 1, 0) if full or ended else (row, column + 1))
    # the last cell is in the last row, but not always in the last column
    down, across = (1 + max(indices) for indices in zip(*places, strict=True))
    # a figure of one column has room for larger panels
    width, height = ALONE if across == 1 and size == SIZE else size
    figure.set_size_inches(0.25 + width * across, foot + height * down)
    grid = figure.add_gridspec(down, across, wspace=0.03, hspace=0.05)
    names = {
        cell: objective_labels(panel.front, 30) for cell, panel in zip(places, panels, strict=True)
    }
    panel_axes = []
    for (row, column), panel in zip(places, panels, strict=True):
        axes = figure.add_subplot(grid[row, column], label=panel.title)
        axes.grid(color=HAIRLINE, linewidth=0.4, alpha=0.7)
        axes.tick_params(length=0, pad=4, labelsize=7.5)
        axes.locator_params(nbins=5)
        # a title too long for its panel takes two lines
        text = wrap_text(shorten_text(panel.title, 88), int(width * LETTERS))
        axes.set_title(text, loc="left", color=INK, fontsize=9, fontweight="bold")
        labels = names[row, column]
        # also where there is no panel below, since `get` then gives `None`
        if names.get((row + 1, column)) != labels:
            axes.set_xlabel(f"{labels[0]}  (← better)", fontsize=8)
        if names.get((row, column - 1)) != labels:
            axes.set_ylabel(f"{labels[1]}  (← better)", fontsize=8)
        panel_axes.append(axes)
    # tick labels differ in width, by which matplotlib would shift each label
    figure.align_labels(panel_axes)
    return panel_axes


def draw_legend_below(figure: "Figure", handles: Sequence["Line2D"]) -> None:
    """Draw one legend for all panels, in as few lines as fit, all about as long."""
    for lines in range(1, len(handles) + 1):
        legend = figure.legend(
            handles=handles,
            loc="outside lower left",
            # rounded up, so that no line is left over
            ncols=-(-len(handles) // lines),
            columnspacing=1.3,
            handlelength=1.6,
            fontsize=8,
        )
        # the width is known only once the legend exists, so it is tried and removed
        if legend.get_window_extent().width < 0.98 * figure.bbox.width:
            return
        legend.remove()


def fronts_figure(
    panels: Mapping[str, Mapping[str, Front]],
    *,
    title: str = "",
    ideal: Collection[str] = (),
    order: Sequence[str] = (),
    rows: Mapping[str, str] | None = None,
    graded: bool = False,
    share_limits: bool = False,
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
        graded: the methods are steps, such as epochs: their colours go from light to dark.
        share_limits: panels of a row have equal limits.

    >>> front = Front([[0.9, 0.1], [0.1, 0.9]], [[0.3, 0.2], [0.5, 0.1]], ("loss", "gap"), (2, 2))
    >>> figure = fronts_figure({"Adult": {"COSMOS": front}, "COMPAS": {"COSMOS": front}})
    >>> [axes.get_title(loc="left") for axes in figure.axes]
    ['Adult', 'COMPAS']
    """
    drawn_names = (name for fronts in panels.values() for name in fronts)
    # the names in `order` count even if they are not drawn: a method's look depends on its index
    names = list(dict.fromkeys([*order, *drawn_names]))
    check_two_objectives([front for fronts in panels.values() for front in fronts.values()])
    with open_sheet(title) as figure:
        looks = _grade_looks(len(names)) if graded else map(method_look, range(len(names)))
        look_by_name = dict(zip(names, looks, strict=True))
        drawn = {
            panel: [
                _panel_method(name, finite, look_by_name[name], name in ideal)
                for name, front in fronts.items()
                if (finite := keep_finite(front)) is not None
            ]
            for panel, fronts in panels.items()
        }
        places = [
            # a panel without a finite point has no limits
            Panel(panel, methods[0].fronts[0], (rows or {}).get(panel, ""))
            for panel, methods in drawn.items()
            if methods
        ]
        # limits of its own for every panel: problems differ in scale
        boxes = {panel.title: compute_box(drawn[panel.title]) for panel in places}
        for panel in places if share_limits else ():
            beside = [other.title for other in places if other.row == panel.row]
            boxes[panel.title] = compute_box([m for title in beside for m in drawn[title]])
        for axes, panel in zip(place_panels(figure, places), places, strict=True):
            draw_methods(axes, drawn[panel.title], (0, 1), boxes[panel.title])
        ideals = {name: f"{name}, ideal point" for name in names}
        shown = [(drawn[panel.title], boxes[panel.title]) for panel in places]
        # matplotlib hides entries with a leading underscore
        texts = {name: name if name[0] != "_" else f" {name}" for name in names}
        draw_legend_below(figure, create_legend(shown, texts, ideals))
    return figure


def _panel_method(name: str, front: Front, look: Look, ideal: bool) -> Method:
    """Create a method of one front; points on a line are small, as a panel is."""
    method = Method(name, [front], look, ideal)
    return replace(method, look=look._replace(size=0.6 * look.size)) if method.joined else method


def _grade_looks(count: int) -> list[Look]:
    """Return looks from light to dark, so that the last, which is the result, is seen best."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    shares = np.linspace(BRIGHTEST, 0, count) if count > 1 else np.zeros(1)
    return [
        Look(to_hex(colormaps["viridis"](share)), SHAPES[step % len(SHAPES)], 14.0)
        for step, share in enumerate(shares)
    ]


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
        from matplotlib.colors import to_hex
        from matplotlib.lines import Line2D

        places = [Panel(k, panel.front, (rows or {}).get(k, "")) for k, panel in drawn.items()]
        columns = max(Counter(panel.row for panel in places).values(), default=1)
        # square panels, since equal axes would leave the rest of an oblong one empty
        wide = 9.6 / columns  # all of them as wide as any sheet
        panel_axes = place_panels(figure, places, columns=columns, size=(wide, wide), foot=0.6)
        for axes, panel in zip(panel_axes, drawn.values(), strict=True):
            _draw_known(axes, panel)
        # every ray has its own colour, so the legend shows that of the middle one
        middle = ray_colours(np.array([[0.5, 0.5]]))[0]
        exact = Line2D([], [], color=MUTED, linewidth=2.2, alpha=0.35, label="the true front")
        ray = Line2D([], [], color=middle, linewidth=0.8, alpha=0.6, label="a ray")
        point = create_handle("the point found for it", to_hex(middle), "o", 22)
        draw_legend_below(figure, [exact, ray, point])
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
