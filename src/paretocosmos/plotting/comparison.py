"""Fronts of several methods in one figure, with a legend of their hypervolumes."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from paretocosmos.errors import ConfigurationError, DataError, check_choice
from paretocosmos.io.formatting import format_mean
from paretocosmos.pareto.front import Array, Front
from paretocosmos.pareto.metrics import ideal, ideal_hypervolume
from paretocosmos.plotting.front import pad_limits, select_limits
from paretocosmos.plotting.style import (
    MUTED,
    Look,
    add_pairs,
    check_same_objectives,
    compute_volume,
    create_handle,
    dominated_handle,
    draw_points,
    format_axes,
    is_separate,
    keep_finite,
    method_look,
    objective_labels,
    open_sheet,
    save_figure,
    shorten_text,
    sort_points,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D


Box = tuple[Array, Array]
"""The limits of the panels: the least and the largest value of every objective."""

PALE = 0.3  # opacity of the seeds after the first
# How much larger points without a line are drawn: of a method of one point, of one per objective.
# A single point has to be found among the lines of the others.
LONE, APART = 3.2, 1.8


@dataclass(frozen=True, eq=False)
class Method:
    """One method in a comparison: a front per seed, all values of which are finite."""

    name: str
    fronts: list[Front]
    look: Look
    ideal: bool

    @cached_property
    def points(self) -> Array:
        """``[S * N, J]``: all points of all seeds; ``[0, 1]`` if none is finite."""
        return np.concatenate([front.values for front in self.fronts] or [np.empty((0, 1))])

    @cached_property
    def best(self) -> Array:
        """``[S * N, J]``: those that no point of the same seed dominates."""
        return np.concatenate([front.values[front.non_dominated] for front in self.fronts])

    @cached_property
    def ideals(self) -> Array:
        """``[S, J]`` for a method whose ideal point is shown, ``[0, J]`` for another."""
        points = [ideal(front) for front in self.fronts if self.ideal]
        return np.stack(points) if points else self.points[:0]

    @property
    def is_point(self) -> bool:
        """True if every ray gives the same point."""
        return all((front.values == front.values[0]).all() for front in self.fronts)

    @property
    def joined(self) -> bool:
        """True if a line through its points is meaningful."""
        several = any(front.non_dominated.sum() > 1 for front in self.fronts)
        apart = any(is_separate(front) for front in self.fronts)
        return self.points.shape[1] == 2 and several and not (self.is_point or self.ideal or apart)

    @property
    def size(self) -> float:
        """The area of its marks."""
        return self.look.size * (APART if self.ideal else LONE if self.is_point else 1.0)

    def outside(self, low: Array, high: Array) -> npt.NDArray[np.bool_]:
        """``[S * N]``: which points lie outside the panels."""
        return np.asarray(((self.points < low) | (self.points > high)).any(axis=1))


def compute_box(methods: list[Method]) -> Box:
    """Return the limits of the panels, by the methods that have fronts if there are any."""
    # points far apart would stretch the panel until the fronts are dots
    several = [m for m in methods if not (m.is_point or m.ideal)]
    # in this order, so that something decides even if no method has a front
    leading = several or [m for m in methods if not m.ideal] or methods
    beside, always = [m.points for m in methods], [m.ideals for m in methods]
    # a front of one point says nothing of how far the others may lie
    fronts = [m.best if len(m.best) > 1 else m.points for m in leading]
    return pad_limits(*select_limits(fronts, beside, always))


def draw_methods(axes: "Axes", methods: list[Method], pair: tuple[int, int], box: Box) -> None:
    """Draw methods in two of their objectives, points outside the box at its border."""
    # one box for all pairs, so that panels of a grid share their axes
    low, high = box[0][list(pair)], box[1][list(pair)]
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    for method in methods:
        # the first seed is drawn with the marks that the legend shows
        for number, front in enumerate(method.fronts):
            _draw_front(axes, method, front, pair, first=number == 0)
        _draw_outside(axes, method, method.points[:, pair], low, high)
        for number, point in enumerate(method.ideals[:, pair]):
            _draw_ideal(axes, method, point, first=number == 0)


def _draw_front(
    axes: "Axes", method: Method, front: Front, pair: tuple[int, int], *, first: bool
) -> None:
    """Draw one seed: its points, and with two objectives the line through non-dominated ones."""
    colour, shape, _ = method.look
    seed = "" if first else ", other seed,"
    opacity = 1.0 if first else PALE
    keep = front.non_dominated
    if method.joined and keep.sum() > 1:
        axes.plot(
            *sort_points(front.values[keep]).T,
            color=colour,
            linewidth=1.0 if first else 0.8,
            alpha=opacity,
            zorder=3 if first else 2,
            label=f"{method.name}{seed} line",
        )
    if method.joined and not first:
        return  # points of all seeds would hide each other; the line is enough
    draw_points(
        axes,
        front,
        pair,
        colour,
        s=method.size if first else 0.5 * method.size,
        marker=shape,
        linewidths=0.5 if first else 0,
        alpha=opacity,
        order=4 + method.is_point - (not first),
        label=f"{method.name}{seed}",
    )


def _draw_outside(axes: "Axes", method: Method, points: Array, low: Array, high: Array) -> None:
    """Draw a small triangle at the border for every point outside, in its direction."""
    # -1, 0 or 1 on each axis: eight directions, a triangle for each
    side = np.where(points > high, 1, 0) - np.where(points < low, 1, 0)
    for toward in np.unique(side[side.any(axis=1)], axis=0):
        x, y = np.clip(points[(side == toward).all(axis=1)], low, high).T
        # matplotlib turns markers counterclockwise, in degrees
        turn = round(np.degrees(np.arctan2(toward[1], toward[0])))
        axes.scatter(
            x,
            y,
            s=30,
            marker=(3, 0, turn - 90),  # unturned it points up
            facecolors=method.look.colour,
            edgecolors="white",
            linewidths=0.4,
            zorder=6,
            clip_on=False,
            label=f"{method.name} outside",
        )


def _draw_ideal(axes: "Axes", method: Method, point: Array, *, first: bool) -> None:
    """Draw a star, and for the first seed the lines that no network of its kind goes beyond."""
    x, y = point
    colour = method.look.colour
    if first:
        # up to the border, which the limits set by `draw_methods` have fixed
        right, top = axes.get_xlim()[1], axes.get_ylim()[1]
        axes.plot([x, x, right], [top, y, y], color=colour, linewidth=0.7, linestyle=(0, (5, 4)))
        axes.lines[-1].set(zorder=1.5, label=f"{method.name} ideal lines")
    axes.scatter(
        x,
        y,
        s=130 if first else 50,
        marker="*",
        facecolors=colour,
        edgecolors="white",
        linewidths=0.6 if first else 0,
        alpha=1.0 if first else PALE,
        zorder=6 if first else 5,
        clip_on=False,
        label=f"{method.name} ideal{'' if first else ' other seed'}",
    )


WIDTH = 32  # letters of a method's name


def create_legend(
    panels: Sequence[tuple[Sequence[Method], Box]],
    texts: Mapping[str, str],
    ideals: Mapping[str, str],
) -> list["Line2D"]:
    """Create legend entries of methods, ideal points, and of every other mark that is drawn.

    Args:
        panels: the methods of each panel, and its limits.
        texts: of the entries of methods, by their names, in order.
        ideals: of the entries of ideal points.
    """
    drawn = [method for methods, _ in panels for method in methods]
    handles = []
    for name, text in texts.items():
        same_method = [method for method in drawn if method.name == name]
        if same_method:
            look = same_method[0].look
            handles.append(create_handle(text, look.colour, look.shape, same_method[0].size))
            handles[-1].set_linewidth(1.0 if any(m.joined for m in same_method) else 0)
            if any(len(method.ideals) for method in same_method):
                handles.append(create_handle(ideals[name], look.colour, "*", 130))
    if not all(front.non_dominated.all() for method in drawn for front in method.fronts):
        handles.append(dominated_handle(20, "dominated by its own front"))
    if any(len(method.fronts) > 1 for method in drawn):
        handles.append(create_handle("other seeds than the first", MUTED, "o", 10, PALE))
        handles[-1].set_linewidth(0.8)
    if any(method.outside(*box).any() for methods, box in panels for method in methods):
        handles.append(create_handle("lies outside", MUTED, (3, 0, -90), 30))
    return handles


def _describe_method(method: Method, seeds: Sequence[Front], box: Box) -> str:
    """Return a method's name and hypervolume, and how many of its points are not shown."""
    # a method that failed must not vanish from the picture without a word
    if not method.fronts:
        return f"{_legend_name(method)}\nnot one finite value"
    # of all seeds, also those without finite points, which are worth 0
    numbers = format_mean([compute_volume(front) for front in seeds])
    outside, lost = int(method.outside(*box).sum()), len(seeds) - len(method.fronts)
    numbers += f", {outside} outside" * bool(outside) + f", {lost} not finite" * bool(lost)
    return f"{_legend_name(method)}\n{numbers}"


def _legend_name(method: Method) -> str:
    """Return a method's name, shortened at its start, where names of modules are alike."""
    name = shorten_text(method.name, len(method.name))
    # of `package.module:Class` the end tells methods apart
    name = name if len(name) <= WIDTH else f"…{name[1 - WIDTH :]}"
    # matplotlib hides entries with a leading underscore
    return f" {name}" if name.startswith("_") else name


def comparison_figure(
    fronts: Mapping[str, Sequence[Front]], *, title: str = "", ideal: Collection[str] = ()
) -> "Figure":
    """Draw several methods into one figure that belongs to no window and no global state.

    Colour and shape tell methods apart. The first seed of a method is drawn in full, the others
    pale; dominated points are faded. With two objectives the others are joined by a line; with
    more there is one panel per pair. The legend has each method's hypervolume, the mean and the
    standard deviation over its seeds. The panels show the region of the fronts: a point far worse
    is a small triangle at the border, and the legend says how many there are.

    Args:
        fronts: by the name of the method, one front per seed; the same objectives and reference
            everywhere. Points that are not finite are left out.
        title: a line above the picture.
        ideal: methods with one network per objective (Single Task). Their ideal point is a star:
            none of their networks is left of it or below.

    Returns:
        A matplotlib figure; `Figure.savefig` writes it.

    >>> rays, names = [[0.9, 0.1], [0.1, 0.9]], ("loss", "gap")
    >>> front = Front(rays, [[1.0, 1.5], [1.5, 1.0]], names, (2, 2))
    >>> figure = comparison_figure({"cosmos": [front], "mgda": [front]}, title="adult")
    >>> [text.get_text().split() for text in figure.legends[0].get_texts()]
    [['cosmos', '0.7500'], ['mgda', '0.7500']]
    """
    methods = _build_methods(fronts, ideal)
    drawn = [method for method in methods if method.fronts]
    with open_sheet(title) as figure:
        box = compute_box(drawn)
        # also of methods without a finite point, which are not drawn
        texts = {m.name: _describe_method(m, fronts[m.name], box) for m in methods}
        ideals = {
            m.name: f"ideal point of {_legend_name(m)}\n"
            + format_mean([ideal_hypervolume(front) for front in fronts[m.name]])
            for m in methods
        }
        entries = create_legend([(methods, box)], texts, ideals)
        first = drawn[0].fronts[0]
        if first.objectives == 2:
            figure.set_size_inches(8.4, 4.9)
            axes = figure.add_subplot(label="front")
            labels = [f"{name}   ← smaller is better" for name in objective_labels(first, 40)]
            format_axes(axes, *labels)
            draw_methods(axes, drawn, (0, 1), box)
        else:  # a panel per pair of objectives below the diagonal
            side = min(2.7 * first.objectives - 0.5, 14.0)
            figure.set_size_inches(side, side)
            labels = [f"{name}  (← better)" for name in objective_labels(first, 26)]
            for axes, pair in add_pairs(figure, labels):
                draw_methods(axes, drawn, pair, box)
        point = ", ".join(f"{value:g}" for value in first.reference)
        # methods may have been trained with different numbers of seeds
        counts = {len(seeds) for seeds in fronts.values()}
        seeds = f"{min(counts)} seeds" if len(counts) == 1 else f"up to {max(counts)} seeds"
        spread = f"\nmean ± deviation of {seeds}" if max(counts) > 1 else ""
        heading = f"hypervolume at ({shorten_text(point, 24)}){spread}"
        _draw_legend(figure, entries, heading, first.objectives)
    return figure


def save_comparison(
    path: Path,
    fronts: Mapping[str, Sequence[Front]],
    *,
    title: str = "",
    ideal: Collection[str] = (),
) -> None:
    """Draw methods as `comparison_figure` does and write the picture atomically.

    Args:
        path: where the PNG goes, or the PDF if it ends in ``.pdf``; an older one is replaced.
        fronts: by the name of the method, one front per seed.
        title: a line above the picture.
        ideal: methods whose ideal point is shown.

    >>> import tempfile
    >>> front = Front([[0.5, 0.5]], [[0.3, 0.2]], ("loss", "gap"), (2, 2))
    >>> path = Path(tempfile.mkdtemp()) / "comparison.png"
    >>> save_comparison(path, {"uniform": [front]})
    >>> path.read_bytes()[1:4]
    b'PNG'
    """
    save_figure(path, comparison_figure(fronts, title=title, ideal=ideal))


def _build_methods(fronts: Mapping[str, Sequence[Front]], ideal: Collection[str]) -> list[Method]:
    """Return the methods with their finite points; raise if nothing can be drawn."""
    if not fronts:
        raise ConfigurationError("`fronts` needs at least one method to draw, found none")
    for name, seeds in fronts.items():
        if not seeds:
            raise ConfigurationError(
                f"the method `{name}` needs at least one front, found none: leave it out"
            )
    for name in ideal:
        check_choice("method in `ideal`", name, fronts)
    # checked together, so that the error names two methods and not two seeds
    all_fronts = [front for seeds in fronts.values() for front in seeds]
    check_same_objectives(all_fronts)
    for front in all_fronts:
        if not np.array_equal(front.reference, all_fronts[0].reference):
            raise ConfigurationError(
                "hypervolumes in one picture need the same `reference`, found "
                f"{all_fronts[0].reference.tolist()} and {front.reference.tolist()}: evaluate "
                "again with the same one"
            )
    methods = [
        Method(
            name,
            [finite for finite in map(keep_finite, seeds) if finite],
            method_look(number),
            name in ideal,
        )
        for number, (name, seeds) in enumerate(fronts.items())
    ]
    if not any(method.fronts for method in methods):
        raise DataError(
            f"no point of {', '.join(fronts)} has finite values, so there is nothing to draw; "
            "train again with a smaller learning rate"
        )
    return methods


def _draw_legend(figure: "Figure", entries: list["Line2D"], title: str, objectives: int) -> None:
    """Draw the legend beside the panel or in the free corner; the figure grows to hold it."""
    size = objectives - 1
    free = max(size // 2, 1)  # columns of the corner
    legend = figure.legend(
        handles=entries,
        loc="outside right upper" if objectives == 2 else "upper right",
        title=title,
        title_fontsize=8,
        labelspacing=0.7 if objectives == 2 else 0.55,
        alignment="left",
    )
    legend.get_title().set(linespacing=1.4, color=MUTED)
    # the size of a legend is known once it is laid out
    figure.draw_without_rendering()
    needed = np.array(legend.get_window_extent().size) / figure.dpi + 0.25
    # the part of the figure that is free for the legend: the corner above the diagonal of the grid
    share = (1.0, 1.0) if objectives == 2 else (free / size, (size - free) / size)
    figure.set_size_inches(*np.maximum(figure.get_size_inches(), needed / share))
