"""Two objectives: a panel of their points, and the picture of a front that has no more."""

import math
from collections.abc import Sequence
from itertools import cycle
from typing import TYPE_CHECKING

import numpy as np

from paretocosmos.pareto.front import Array, Front
from paretocosmos.pareto.metrics import ideal
from paretocosmos.pareto.rays import each_alone
from paretocosmos.plotting._shares import draw_shares, has_shares
from paretocosmos.plotting._sheet import separate
from paretocosmos.plotting._style import (
    ANCHORS,
    HAIRLINE,
    INK,
    MARKS,
    MUTED,
    Mark,
    colours,
    distinct_rays,
    faded,
    shown_names,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STAR = 4.0  # the area of a star as large as a point looks


def draw_pair(figure: "Figure", fronts: list[Front]) -> None:
    """The front with its line, and beside it the rays; below, who is selected or the reference."""
    figure.set_size_inches(8.2, 4.7)
    shares = has_shares(fronts[0])
    wide, high = ([2.1, 1.0], [1.0, 1.5]) if shares else ([3.0, 1.0], [1.0, 1.0])
    grid = figure.add_gridspec(
        2, 2, width_ratios=wide, height_ratios=high, wspace=0.06, hspace=0.08
    )
    main = figure.add_subplot(grid[:, 0], label="front")
    # The arrow points to smaller values on both axes, the turned one included.
    labels = [f"{name}   ← smaller is better" for name in shown_names(fronts[0], 40)]
    draw_panel(main, fronts, (0, 1), labels)
    for front, mark in zip(fronts, cycle(MARKS)):
        if joined(front):
            x, y = in_order(front.values[front.non_dominated]).T
            main.plot(x, y, mark.line, color=MUTED, linewidth=0.9, zorder=2)
    _draw_fan(figure.add_subplot(grid[0, 1], label="rays"), fronts)
    if shares:
        draw_shares(figure.add_subplot(grid[1, 1], label="shares"), fronts[0])
    else:
        _draw_box(figure.add_subplot(grid[1, 1], label="box"), fronts, main)


def joined(front: Front) -> bool:
    """Whether a line through the non-dominated points of a front says something."""
    several = front.non_dominated.sum() > 1
    apart = separate(front) or each_alone(front.rays)
    return front.objectives == 2 and bool(several) and not apart


def draw_panel(
    axes: "Axes", fronts: list[Front], pair: tuple[int, int], labels: Sequence[str]
) -> None:
    """The points of all fronts in two of their objectives, as large as the panel allows."""
    frame(axes, labels[pair[0]], labels[pair[1]])
    for front, mark in zip(fronts, cycle(MARKS)):
        _draw_points(axes, front, mark, pair)
        if each_alone(front.rays):
            _draw_ideal(axes, front, mark, pair)
    points = np.concatenate([front.values for front in fronts])[:, pair]
    (left, bottom), (right, top) = padded(points.min(axis=0), points.max(axis=0))
    axes.set(xlim=(left, right), ylim=(bottom, top))
    _draw_reference(axes, fronts[0].reference[list(pair)])


def frame(axes: "Axes", across: str, up: str) -> None:
    """What every panel of points has before a point is in it."""
    axes.grid(color=HAIRLINE, linewidth=0.4, alpha=0.7)
    axes.tick_params(length=0, pad=5)
    axes.locator_params(nbins=6)
    axes.set(xlabel=across, ylabel=up)


def padded(low: Array, high: Array) -> tuple[Array, Array]:
    """The limits of a panel around these; a front of one value gets some width."""
    flat = high - low <= 1e-9 * np.maximum(np.abs(high), np.abs(low))
    pad = np.where(flat, np.maximum(0.05 * np.abs(high), 1e-3), 0.06 * (high - low))
    return low - pad, high + pad


def _draw_points(axes: "Axes", front: Front, mark: Mark, pair: tuple[int, int]) -> None:
    """The points of one front, dominated ones faded and underneath."""
    (x, y), colour = front.values.T[list(pair)], colours(front.rays)
    keep = front.non_dominated
    for select, shade, order, kind in (
        (~keep, faded(colour[~keep]), 3, "dominated"),
        (keep, colour[keep], 4, "non-dominated"),
    ):
        axes.scatter(
            x[select],
            y[select],
            s=mark.size,
            marker=mark.marker,
            facecolors=shade if mark.filled else "white",
            edgecolors="white" if mark.filled else shade.tolist(),
            linewidths=0.5 if mark.filled else 1.1,
            zorder=order,
            clip_on=False,
            label=f"{front.split} {kind}",
        )


def _draw_ideal(axes: "Axes", front: Front, mark: Mark, pair: tuple[int, int]) -> None:
    """A star for the best of every objective; the panel reaches that far, for others have it."""
    x, y = ideal(front)[list(pair)]
    colour, size = (INK if mark.filled else "white"), STAR * mark.size
    axes.scatter(x, y, marker="*", s=size, facecolors=colour, edgecolors=INK, linewidths=0.8)
    axes.collections[-1].set(zorder=5, clip_on=False, label=f"{front.split} ideal")


def _draw_reference(axes: "Axes", reference: Array) -> None:
    x, y = reference
    axes.scatter(x, y, marker="x", s=26, c=INK, linewidths=1.1, zorder=5, label="reference")


def _draw_fan(axes: "Axes", fronts: list[Front]) -> None:
    """The rays as lines from the origin, in the colours of their points."""
    rays = distinct_rays(fronts)
    width = 1.0 if len(rays) > 9 else 2.0
    for (x, y), colour in zip(rays, colours(rays), strict=True):
        length = math.hypot(x, y) or 1.0
        # over the axes and not cut there: a ray may be one of them
        line = axes.plot([0, x / length], [0, y / length], color=colour, linewidth=width)[0]
        line.set(zorder=3, clip_on=False, solid_capstyle="round")
    arc = np.linspace(0, math.pi / 2, 60)
    axes.plot(np.cos(arc), np.sin(arc), color=HAIRLINE, linewidth=0.6, zorder=0)
    axes.set(xlim=(0, 1.06), ylim=(0, 1.06), xticks=[], yticks=[], aspect="equal", anchor="NW")
    axes.set_title("ray: weight on" if len(rays) == 1 else "rays: weight on", loc="left")
    across, up = shown_names(fronts[0], 24)
    axes.set_xlabel(across, fontsize=7.5, labelpad=4)
    axes.set_ylabel(up, fontsize=7.5, labelpad=4)


def _draw_box(axes: "Axes", fronts: list[Front], main: "Axes") -> None:
    """From the origin to the reference point: what the hypervolume of the first front measures."""
    from matplotlib.patches import Rectangle

    reference = fronts[0].reference
    values = fronts[0].values[fronts[0].non_dominated]
    inside = in_order(values[(values < reference).all(axis=1)])
    x, y = np.concatenate([inside, [reference]]).T
    axes.fill_between(x, y, reference[1], step="post", color=ANCHORS[0], alpha=0.1, linewidth=0)
    for front, mark in zip(fronts, cycle(MARKS)):
        x, y = front.values.T
        axes.scatter(x, y, s=5, c=colours(front.rays), marker=mark.marker, linewidths=0, zorder=3)
        _draw_reference(axes, front.reference)
    points = np.concatenate([*(front.values for front in fronts), [reference]])
    low, high = np.minimum(points.min(axis=0), 0), points.max(axis=0)
    pad = 0.07 * np.where(high > low, high - low, 1.0)
    (left, bottom), (right, top) = np.where(low < 0, low - pad, low), high + pad
    axes.set(xlim=(left, right), ylim=(bottom, top), box_aspect=1, anchor="NW")
    (left, right), (bottom, top) = main.get_xlim(), main.get_ylim()
    zoomed = Rectangle((left, bottom), right - left, top - bottom, fill=False, edgecolor=MUTED)
    axes.add_patch(zoomed).set_linewidth(0.6)
    axes.locator_params(nbins=3, steps=[1, 2, 5, 10])
    axes.tick_params(labelsize=7, length=2)
    axes.set_title(f"reference ({', '.join(f'{value:g}' for value in reference)})", loc="left")


def in_order(points: Array) -> Array:
    """From the left end of a front to its right end."""
    return points[np.lexsort((-points[:, 1], points[:, 0]))]
