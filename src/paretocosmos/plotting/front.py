"""Figures of the fronts of one run: a pair of objectives in one panel, more in a grid of pairs."""

import copy
import math
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from paretocosmos.errors import ConfigurationError, DataError
from paretocosmos.pareto.front import Array, Front
from paretocosmos.pareto.metrics import ideal, ideal_hypervolume
from paretocosmos.pareto.rays import has_only_corners
from paretocosmos.plotting.style import (
    HAIRLINE,
    INK,
    MARKS,
    MUTED,
    add_pairs,
    check_same_objectives,
    compute_volume,
    dominated_handle,
    draw_points,
    format_axes,
    is_separate,
    keep_finite,
    objective_labels,
    open_sheet,
    ray_colours,
    save_figure,
    shorten_text,
    sort_points,
    unique_rays,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D


STAR = 4.0  # the area of a star as large as a point looks
PREFIX = "selection_rate_"
# Groups that one small panel can tell apart.
MOST = 4
SHAPES = "os^D"


def draw_pair(figure: "Figure", fronts: list[Front]) -> None:
    """Draw two objectives: the front with its line, the rays, and selection rates of groups."""
    figure.set_size_inches(8.2, 4.7)
    # the accuracy and the selection rates of a few groups
    groups = sum(name.startswith(PREFIX) for name in fronts[0].metrics)
    shares = 2 <= groups <= MOST and "accuracy" in fronts[0].metrics
    wide, high = ([2.1, 1.0], [1.0, 1.5]) if shares else ([3.0, 1.0], [1.0, 1.0])
    grid = figure.add_gridspec(
        2, 2, width_ratios=wide, height_ratios=high, wspace=0.06, hspace=0.08
    )
    main = figure.add_subplot(grid[:, 0], label="front")
    # The arrow points to smaller values on both axes, the turned one included.
    labels = [f"{name}   ← smaller is better" for name in objective_labels(fronts[0], 40)]
    format_axes(main, *labels)
    draw_panel(main, fronts, (0, 1))
    for front, mark in zip(fronts, cycle(MARKS)):
        if has_line(front):
            x, y = sort_points(front.values[front.non_dominated]).T
            # below the points, so that it does not cross them out
            main.plot(x, y, mark.line, color=MUTED, linewidth=0.9, zorder=2)
    fan = figure.add_subplot(grid[0, 1], label="rays")
    # the rays as lines from the origin, in the colours of their points
    rays = unique_rays(fronts)
    width = 1.0 if len(rays) > 9 else 2.0
    for (x, y), colour in zip(rays, ray_colours(rays), strict=True):
        length = math.hypot(x, y) or 1.0
        # drawn over the axes and not clipped, since a ray may coincide with one of them
        line = fan.plot([0, x / length], [0, y / length], color=colour, linewidth=width)[0]
        line.set(zorder=3, clip_on=False, solid_capstyle="round")
    arc = np.linspace(0, math.pi / 2, 60)
    fan.plot(np.cos(arc), np.sin(arc), color=HAIRLINE, linewidth=0.6, zorder=0)
    fan.set(xlim=(0, 1.06), ylim=(0, 1.06), xticks=[], yticks=[], aspect="equal", anchor="NW")
    fan.set_title("ray: weight on" if len(rays) == 1 else "rays: weight on", loc="left")
    across, up = objective_labels(fronts[0], 24)
    fan.set_xlabel(across, fontsize=7.5, labelpad=4)
    fan.set_ylabel(up, fontsize=7.5, labelpad=4)
    if shares:
        draw_shares(figure.add_subplot(grid[1, 1], label="shares"), fronts[0])


def has_line(front: Front) -> bool:
    """Return True if a line through the non-dominated points of a front is meaningful."""
    several = front.non_dominated.sum() > 1
    apart = is_separate(front) or has_only_corners(front.rays)
    return front.objectives == 2 and bool(several) and not apart


def draw_panel(axes: "Axes", fronts: list[Front], pair: tuple[int, int]) -> None:
    """Draw the points of all fronts in two of their objectives, as large as the panel allows."""
    for front, mark in zip(fronts, cycle(MARKS)):
        draw_points(
            axes,
            front,
            pair,
            ray_colours(front.rays),
            s=mark.size,
            marker=mark.marker,
            # a point on the border is shown in full
            clip_on=False,
            label=front.split,
            **({"linewidths": 0.5} if mark.filled else {"linewidths": 1.1, "facecolors": "white"}),
        )
        if has_only_corners(front.rays):
            # a star for the best of every objective, inside the panel as its points have them
            x, y = ideal(front)[list(pair)]
            colour, size = (INK if mark.filled else "white"), STAR * mark.size
            axes.scatter(
                x, y, marker="*", s=size, facecolors=colour, edgecolors=INK, linewidths=0.8
            )
            # above the points of its own front
            axes.collections[-1].set(zorder=5, clip_on=False, label=f"{front.split} ideal")
    points = np.concatenate([front.values for front in fronts])[:, pair]
    (left, bottom), (right, top) = pad_limits(points.min(axis=0), points.max(axis=0))
    axes.set(xlim=(left, right), ylim=(bottom, top))
    x, y = fronts[0].reference[list(pair)]
    axes.scatter(x, y, marker="x", s=26, c=INK, linewidths=1.1, zorder=5, label="reference")


def pad_limits(low: Array, high: Array) -> tuple[Array, Array]:
    """Return the limits of a panel around values; a front of one value gets some width."""
    # relative, since losses differ in scale; identical limits would make matplotlib warn
    flat = high - low <= 1e-9 * np.maximum(np.abs(high), np.abs(low))
    pad = np.where(flat, np.maximum(0.05 * np.abs(high), 1e-3), 0.06 * (high - low))
    return low - pad, high + pad


def draw_grid(figure: "Figure", fronts: list[Front]) -> None:
    """Draw a panel per pair of objectives below the diagonal, the rays above it."""
    size = fronts[0].objectives - 1
    side = min(1.8 + 2.3 * size, 14.0)
    figure.set_size_inches(side + 0.6, side)
    names = objective_labels(fronts[0], 20)
    for axes, pair in add_pairs(figure, [f"{name}  (← better)" for name in names]):
        draw_panel(axes, fronts, pair)
    # the rays take the corner above the diagonal, which has no pair
    room = max(size // 2, 1)
    grid = figure.axes[0].get_gridspec()
    assert grid is not None  # for the type checker: these panels are in one
    draw_star(figure.add_subplot(grid[:room, size - room :], label="rays"), fronts, names)


def draw_star(axes: "Axes", fronts: list[Front], names: list[str]) -> None:
    """Draw the rays in a polygon, one corner per objective (with three, the simplex)."""
    objectives = len(names)
    # the first corner is at the top
    turn = math.pi / 2 + 2 * math.pi * np.arange(objectives) / objectives
    corners = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    outline = np.concatenate([corners, corners[:1]])
    axes.plot(*outline.T, color=HAIRLINE, linewidth=0.8, zorder=1)
    rays = unique_rays(fronts)
    # barycentric coordinates: a ray is the mean of the corners weighted by its entries
    across, up = (rays @ corners).T
    axes.scatter(across, up, s=14, c=ray_colours(rays), linewidths=0, zorder=2)
    for name, (x, y), colour in zip(names, corners, ray_colours(np.eye(objectives)), strict=True):
        side = "center" if abs(x) < 0.1 or objectives == 3 else ("left" if x > 0 else "right")
        high = "bottom" if y > 0.1 else ("top" if y < -0.1 else "center")
        axes.text(1.1 * x, 1.1 * y, name, ha=side, va=high, fontsize=7.5, color=colour)
    axes.set(xlim=(-1.5, 1.5), ylim=(-1.2, 1.5), aspect="equal")
    axes.set_axis_off()
    axes.set_title("rays: a point has the colour of its ray")


def draw_shares(axes: "Axes", front: Front) -> None:
    """Draw a line for each group: the share predicted positive over the share of errors."""
    wrong, shade = 100 * (1 - front.metrics["accuracy"]), ray_colours(front.rays)
    groups = [name for name in front.metrics if name.startswith(PREFIX)]
    # its name stands above the line, the others below theirs, so that they do not collide
    highest = max(groups, key=lambda name: float(front.metrics[name][0]))
    for name, shape in zip(groups, SHAPES, strict=False):
        share = 100 * front.metrics[name]
        axes.plot(wrong, share, color=MUTED, linewidth=0.7, zorder=2)
        axes.scatter(wrong, share, s=13, c=shade, marker=shape, linewidths=0, zorder=3)
        axes.annotate(
            shorten_text(name.removeprefix(PREFIX), 12),
            (wrong[0], share[0]),
            xytext=(0, 5 if name == highest else -12),
            textcoords="offset points",
            ha="left",
            fontsize=8,
            color=INK,
        )
    axes.margins(x=0.08, y=0.18)
    axes.set_ylim(bottom=0)
    axes.locator_params(nbins=3, steps=[1, 2, 5, 10])
    axes.tick_params(labelsize=7.5, length=2)
    axes.set_title(f"selected, of 100 ({front.split})", loc="left")
    axes.set_xlabel("wrong answers of 100", fontsize=7.5, labelpad=4)


def front_figure(fronts: Sequence[Front], *, title: str = "") -> "Figure":
    """Draw fronts into one figure that belongs to no window and no global state.

    A point has the colour of its ray, and the small panel shows every ray in that colour, so one
    sees which preference gave which trade-off. The shape of a point tells the fronts apart.
    Dominated points are faded. With two objectives the other points are joined by a line; where
    groups of people are compared, a panel shows which share of each is selected and how often that
    is right. With more objectives there is one panel per pair.

    Args:
        fronts: one or more fronts with the same objectives, such as test and val.
        title: a line above the picture.

    Returns:
        A matplotlib figure; `Figure.savefig` writes it.

    >>> front = Front([[0.9, 0.1], [0.1, 0.9]], [[0.3, 0.2], [0.5, 0.1]], ("loss", "gap"), (2, 2))
    >>> [axes.get_label() for axes in front_figure([front]).axes]
    ['front', 'rays']
    """
    if len(fronts) == 0:
        raise ConfigurationError("`fronts` needs at least one front to draw, found none")
    check_same_objectives(fronts)
    drawn = []
    for front in fronts:
        finite = keep_finite(front)
        if finite is None:
            raise DataError(
                f"no point of the {front.split} front has finite values, so there is nothing to "
                "draw; train again with a smaller learning rate"
            )
        drawn.append(finite)
    with open_sheet(title) as figure:
        draw = draw_pair if drawn[0].objectives == 2 else draw_grid
        draw(figure, drawn)
        beside = any(has_only_corners(front.rays) for front in drawn)  # a pair below each other
        columns = 2 if beside else 3
        figure.legend(handles=_create_legend(drawn), loc="outside lower left", ncols=columns)
    return figure


def save_front(path: Path, fronts: Sequence[Front], *, title: str = "") -> None:
    """Draw fronts as `front_figure` does and write the picture atomically.

    Args:
        path: where the PNG goes, or the PDF if it ends in ``.pdf``; an older one is replaced.
        fronts: one or more fronts with the same objectives.
        title: a line above the picture.

    >>> import tempfile
    >>> front = Front([[0.5, 0.5]], [[0.3, 0.2]], ("loss", "gap"), (2, 2))
    >>> path = Path(tempfile.mkdtemp()) / "front.png"
    >>> save_front(path, [front])
    >>> path.read_bytes()[1:4]
    b'PNG'
    """
    save_figure(path, front_figure(fronts, title=title))


def _create_legend(fronts: list[Front]) -> list["Line2D"]:
    from matplotlib.lines import Line2D

    handles = []
    for label, front, mark in zip(_title_fronts(fronts), fronts, cycle(MARKS)):
        handles.append(
            Line2D(
                [],
                [],
                color=MUTED,
                linewidth=0.9 if has_line(front) else 0,
                linestyle=mark.line,
                marker=mark.marker,
                markersize=math.sqrt(mark.size),
                markerfacecolor=INK if mark.filled else "white",
                markeredgecolor=INK,
                markeredgewidth=0 if mark.filled else 1.1,
                label=f"{label}: hypervolume {compute_volume(front):.4f}",
            )
        )
        if has_only_corners(front.rays):
            text = f"{label}: ideal point, {ideal_hypervolume(front):.4f}"
            # a copy keeps the colours of the points, since it stands for the same networks
            handles.append(copy.copy(handles[-1]))
            handles[-1].set(marker="*", markersize=math.sqrt(STAR * mark.size), label=text)
            handles[-1].set_markeredgewidth(0.8)
    if not all(front.non_dominated.all() for front in fronts):
        handles.append(dominated_handle(30, colour=INK))
    return handles


def _title_fronts(fronts: list[Front]) -> list[str]:
    """Return the split of each front; if they are equal, its method, its seed or its number."""
    sources = [{**front.provenance, "split": front.split} for front in fronts]
    # the first of these that tells all fronts apart
    for key in ("split", "method", "seed"):
        titles = [shorten_text(str(source.get(key, "")), 40) for source in sources]
        if all(titles) and len(set(titles)) == len(titles):
            return titles
    return [
        f"{shorten_text(front.split, 40)} {number}" for number, front in enumerate(fronts, start=1)
    ]


# A tail of the fronts is left out if it is at most a third of them, each method counting as one,
# and lies further away than twice the width of all the rest: one method of three that failed.
TAIL, GAP = 1 / 3, 2.0
# Points beside the fronts are shown if they lie within half the width of the fronts.
REACH = 0.5


def select_limits(
    fronts: list[Array], beside: list[Array], always: list[Array]
) -> tuple[Array, Array]:
    """Return the smallest and the largest value of every objective to show, ``[J]`` each.

    Nothing is left out because it is too good. What is much worse than the fronts would squash
    them, so the picture may say of it only that it lies outside.

    Args:
        fronts: the non-dominated points ``[N, J]`` of each method that gives a front.
        beside: other points: dominated ones, those of networks for one objective.
        always: points that must be seen.
    """
    weights = np.concatenate([np.full(len(points), 1 / len(points)) for points in fronts])
    core = np.concatenate(fronts)
    points = np.concatenate([core, *beside])
    # every method counts as one, however many points it has
    high = np.array([_without_tail(column, weights / len(fronts)) for column in core.T])
    if not (core <= high).all(axis=1).any():  # every point is in the tail of some objective
        high = core.max(axis=0)
    low = np.concatenate([points[(points <= high).all(axis=1)], *always]).min(axis=0)
    reach = high + REACH * (high - low)
    near = points[(points <= reach).all(axis=1)]
    return low, np.concatenate([near, [high], *always]).max(axis=0)


def _without_tail(values: Array, weights: Array) -> float:
    """Return the largest value before a gap that only a light and distant tail follows."""
    # a gap must be wide compared with all that lies before it, not with its neighbours: a front
    # is often denser at one end
    order = np.argsort(values)
    values, weights = values[order], weights[order]
    rest = np.cumsum(weights[::-1])[::-1][1:]  # what lies behind each gap
    width = values[:-1] - values[0]
    lone = (rest <= TAIL + 1e-9) & (width > 0) & (np.diff(values) > GAP * width)
    return float(values[:-1][lone][0] if lone.any() else values[-1])
