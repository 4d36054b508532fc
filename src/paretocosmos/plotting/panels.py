"""Sheets of panels, three a row, for reproductions: fronts, ablations, convergence, intuition."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from paretocosmos.errors import ConfigurationError
from paretocosmos.pareto.front import Array, Front
from paretocosmos.plotting.comparison import Method, compute_box, draw_methods
from paretocosmos.plotting.front import (
    draw_panel,
    draw_star,
    pad_limits,
    select_limits,
    sort_points,
)
from paretocosmos.plotting.style import (
    BRIGHTEST,
    HAIRLINE,
    INK,
    MUTED,
    SHAPES,
    Look,
    check_two_objectives,
    create_handle,
    dominated_handle,
    fade_colour,
    keep_finite,
    method_look,
    objective_labels,
    open_sheet,
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
    places = _assign_cells(panels, columns)
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
        frame_panel(axes, panel.title, width)
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


def _assign_cells(panels: Sequence[Panel], columns: int) -> list[tuple[int, int]]:
    """Return the row and column of every panel; a row ends if it is full, or its name changes."""
    cells: list[tuple[int, int]] = []
    for number, panel in enumerate(panels):
        # column -1 makes the first panel land in column 0
        row, column = cells[-1] if cells else (0, -1)
        full = column + 1 == columns
        ended = number > 0 and panel.row != panels[number - 1].row
        cells.append((row + 1, 0) if full or ended else (row, column + 1))
    return cells


def frame_panel(axes: "Axes", title: str, width: float = SIZE[0]) -> None:
    """Set grid, ticks and title of a panel; a title too long for it takes two lines."""
    axes.grid(color=HAIRLINE, linewidth=0.4, alpha=0.7)
    axes.tick_params(length=0, pad=4, labelsize=7.5)
    axes.locator_params(nbins=5)
    text = wrap_text(shorten_text(title, 88), int(width * LETTERS))
    axes.set_title(text, loc="left", color=INK, fontsize=9, fontweight="bold")


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
    drawn_names = (name for fronts in panels.values() for name in fronts)
    # the names in `order` count even if they are not drawn: a method's look depends on its index
    names = list(dict.fromkeys([*order, *drawn_names]))
    check_two_objectives([front for fronts in panels.values() for front in fronts.values()])
    drawn = {
        panel: [
            _panel_method(name, finite, method_look(names.index(name)), name in ideal)
            for name, front in fronts.items()
            if (finite := keep_finite(front)) is not None
        ]
        for panel, fronts in panels.items()
    }
    # a panel without a finite point has no limits
    drawn = {panel: methods for panel, methods in drawn.items() if methods}
    with open_sheet(title) as figure:
        places = [Panel(k, m[0].fronts[0], (rows or {}).get(k, "")) for k, m in drawn.items()]
        panel_axes = place_panels(figure, places)
        for axes, methods in zip(panel_axes, drawn.values(), strict=True):
            # limits of its own for every panel: problems differ in scale
            draw_methods(axes, methods, (0, 1), compute_box(methods))
        draw_legend_below(figure, _methods_legend(drawn, names))
    return figure


def _panel_method(name: str, front: Front, look: Look, ideal: bool) -> Method:
    """Create a method of one front; points on a line are small, as a panel is."""
    method = Method(name, [front], look, ideal)
    return replace(method, look=look._replace(size=0.6 * look.size)) if method.joined else method


def _methods_legend(drawn: Mapping[str, list[Method]], names: list[str]) -> list["Line2D"]:
    """Create an entry per method, and for each other mark that is drawn."""
    all_methods = [method for methods in drawn.values() for method in methods]
    handles = []
    for name in names:
        # a name of `order` may be drawn in no panel
        same_method = [method for method in all_methods if method.name == name]
        if same_method:
            handles.append(
                create_handle(
                    name, same_method[0].look.colour, same_method[0].look.shape, same_method[0].size
                )
            )
            handles[-1].set_linewidth(1.0 if any(m.joined for m in same_method) else 0)
        if any(method.ideal for method in same_method):
            handles.append(
                create_handle(f"{name}, ideal point", same_method[0].look.colour, "*", 130)
            )
    if not all(front.non_dominated.all() for method in all_methods for front in method.fronts):
        handles.append(dominated_handle(20))
    if any(m.outside(*compute_box(methods)).any() for methods in drawn.values() for m in methods):
        handles.append(create_handle("lies outside", MUTED, (3, 0, -90), 30))
    return handles


Grid = Mapping[tuple[float, float], Front]


def ablation_figure(panels: Mapping[str, Grid], *, title: str = "") -> "Figure":
    """Draw a row of panels for each problem, one panel for each alpha, with equal limits.

    A penalty has one colour in all panels, the larger the darker.

    Args:
        panels: by the problem, by penalty and alpha, the front that was reached.
        title: a line above the picture.

    >>> front = Front([[0.9, 0.1], [0.1, 0.9]], [[0.3, 0.2], [0.5, 0.1]], ("loss", "gap"), (2, 2))
    >>> figure = ablation_figure({"Adult": {(0.0, 0.1): front, (0.0, 0.7): front}})
    >>> [axes.get_title(loc="left") for axes in figure.axes]
    ['Adult, α 0.1', 'Adult, α 0.7']
    """
    check_two_objectives([front for grid in panels.values() for front in grid.values()])
    grids = {
        problem: {
            point: finite
            for point, front in grid.items()
            if (finite := keep_finite(front)) is not None
        }
        for problem, grid in panels.items()
    }
    grids = {problem: grid for problem, grid in grids.items() if grid}
    with open_sheet(title) as figure:
        # one look for all problems, so that rows can be compared
        looks = _penalty_looks(grids)
        rows = {problem: _group_by_alpha(grid, looks) for problem, grid in grids.items()}
        columns = max((len(row) for row in rows.values()), default=1)
        places = []
        for problem, row in rows.items():
            front = next(method for methods in row.values() for method in methods).fronts[0]
            places += [Panel(f"{problem}, α {alpha:g}", front, problem) for alpha in row]
        panel_axes = iter(place_panels(figure, places, columns=columns, foot=0.45))
        for row in rows.values():
            # equal limits within a row: what alpha changes has to be seen
            box = compute_box([method for methods in row.values() for method in methods])
            for number, methods in enumerate(row.values()):
                axes = next(panel_axes)
                draw_methods(axes, methods, (0, 1), box)
                # the limits are equal, so the numbers of the first panel hold for all
                axes.tick_params(labelleft=number == 0)
            key = axes.legend(handles=_penalty_legend(row), loc="upper left", fontsize=8)
            key.set(bbox_to_anchor=(1, 1), in_layout=len(row) == columns)  # else there is room
    return figure


def _penalty_looks(grids: Mapping[str, Grid]) -> dict[float, Look]:
    """Return a look for each penalty by its rank among those of its problem."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    looks: dict[float, Look] = {}
    for grid in grids.values():
        penalties = sorted({penalty for penalty, _ in grid})
        for rank, penalty in enumerate(penalties):
            # by rank, since penalties span orders of magnitude; `max` guards a single one
            share = BRIGHTEST * (1 - rank / max(len(penalties) - 1, 1))
            colour = to_hex(colormaps["viridis"](float(np.clip(share, 0, 1))))
            # the first problem decides, should others have other penalties
            looks.setdefault(penalty, Look(colour, SHAPES[rank % len(SHAPES)], 12.0))
    return looks


def _group_by_alpha(grid: Grid, looks: Mapping[float, Look]) -> dict[float, list[Method]]:
    """Return the penalties in order by alpha, each drawn as a method is."""
    return {
        alpha: [
            Method(f"λ {penalty:g}", [front], looks[penalty], ideal=False)
            for (penalty, panel_alpha), front in sorted(grid.items(), key=lambda item: item[0])
            if panel_alpha == alpha
        ]
        for alpha in sorted({alpha for _, alpha in grid})
    }


def _penalty_legend(row: Mapping[float, list[Method]]) -> list["Line2D"]:
    """Create entries for the penalties of one row, and for dominated points if there are any."""
    all_methods = [method for methods in row.values() for method in methods]
    by_name = {method.name: method for method in all_methods}
    handles = [create_handle(name, *method.look) for name, method in by_name.items()]
    # every front of an ablation is a line
    for handle in handles:
        handle.set_linewidth(1.0)
    if not all(front.non_dominated.all() for method in all_methods for front in method.fronts):
        handles.append(dominated_handle(14))
    return handles


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
    drawn = {panel: _finite_epochs(course) for panel, course in panels.items()}
    drawn = {panel: course for panel, course in drawn.items() if course}
    # after the empty courses are gone, which have no objectives to check
    check_two_objectives([front for course in drawn.values() for _, front in course])
    with open_sheet(title) as figure:
        from matplotlib import colormaps
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import ListedColormap, Normalize

        places = [Panel(k, course[0][1], (rows or {}).get(k, "")) for k, course in drawn.items()]
        panel_axes = place_panels(figure, places, foot=0.45)
        last = max(epoch for course in drawn.values() for epoch, _ in course)
        # the first epochs bright, the last dark: what counts is seen best
        shades = ListedColormap(colormaps["viridis"](np.linspace(BRIGHTEST, 0, 256)))
        scale = ScalarMappable(Normalize(0, last), shades)
        for axes, course in zip(panel_axes, drawn.values(), strict=True):
            for epoch, front in course:
                _draw_epoch(
                    axes, front, scale.to_rgba(np.array([epoch]))[0], last=epoch == course[-1][0]
                )
            # dominated points of the first epochs would stretch the axes
            best = [front.values[front.non_dominated] for _, front in course]
            (left, bottom), (right, top) = pad_limits(
                *select_limits(best, [], [course[-1][1].values])
            )
            axes.set(xlim=(left, right), ylim=(bottom, top))
        bar = figure.colorbar(
            scale, ax=panel_axes, label="epoch", aspect=28, pad=0.01, fraction=0.03
        )
        bar.outline.set_visible(False)
        bar.ax.tick_params(length=0, labelsize=7.5)
    return figure


def _finite_epochs(course: Course) -> Course:
    fronts = (
        (epoch, keep_finite(front)) for epoch, front in sorted(course, key=lambda stage: stage[0])
    )
    return [(epoch, front) for epoch, front in fronts if front is not None]


def _draw_epoch(axes: "Axes", front: Front, colour: Array, *, last: bool) -> None:
    """Draw one epoch: its points, and a line through the non-dominated ones."""
    keep = front.non_dominated
    # the last front lies on top: it is the result
    order = 4 if last else 2
    if keep.sum() > 1:
        axes.plot(*sort_points(front.values[keep]).T, color=colour, linewidth=1.0, zorder=order)
    for select, shade in ((~keep, fade_colour(colour)), (keep, [colour])):
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


def three_figure(front: Front, *, title: str = "") -> "Figure":
    """Draw a front of three objectives: every pair of them, and the rays in their colours.

    A surface in perspective hides which point is better; three projections with one colour per
    ray do not. A point that another dominates in all three objectives is faded.

    Args:
        front: of three objectives.
        title: a line above the picture.

    >>> rays = [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]
    >>> front = Front(rays, rays, ("one", "two", "three"), (2, 2, 2))
    >>> [axes.get_label() for axes in three_figure(front).axes]
    ['one, two', 'one, three', 'two, three', 'rays']
    """
    finite = keep_finite(front)
    if front.objectives != 3 or finite is None:
        raise ConfigurationError(
            f"this picture is for fronts of three objectives with finite values, found "
            f"{', '.join(front.names)}: use `front_figure`"
        )
    with open_sheet(title) as figure:
        figure.set_size_inches(9.7, 3.0)
        grid = figure.add_gridspec(1, 4, width_ratios=[1, 1, 1, 0.8], wspace=0.04)
        names = objective_labels(finite, 24)
        for column, pair in enumerate(combinations(range(3), 2)):
            label = ", ".join(names[objective] for objective in pair)
            axes = figure.add_subplot(grid[0, column], label=label)
            draw_panel(axes, [finite], pair, [f"{name}  (← better)" for name in names])
            frame_panel(axes, "")
            axes.xaxis.label.set_fontsize(8)
            axes.yaxis.label.set_fontsize(8)
        star = figure.add_subplot(grid[0, 3], label="rays")
        draw_star(star, [finite], names)
        star.set_title("colour of a ray")
    return figure
