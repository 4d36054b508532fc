"""Several methods in one picture, each with one front per seed and its hypervolume."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from paretocosmos.errors import ConfigurationError, DataError, unknown
from paretocosmos.pareto.front import Array, Front
from paretocosmos.plotting._key import key, key_title
from paretocosmos.plotting._methods import Method, box_of, draw_methods
from paretocosmos.plotting._pair import frame
from paretocosmos.plotting._sheet import finite, same_objectives, save_figure, sheet
from paretocosmos.plotting._style import MUTED, look, shown_names

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D


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
    methods = _checked(fronts, ideal)
    drawn = [method for method in methods if method.fronts]
    with sheet(title) as figure:
        box = box_of(drawn)
        entries = key(methods, fronts, box)
        draw = _draw_pair if drawn[0].fronts[0].objectives == 2 else _draw_grid
        draw(figure, drawn, box)
        _draw_key(figure, entries, key_title(fronts), drawn[0].fronts[0].objectives)
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


def _checked(fronts: Mapping[str, Sequence[Front]], ideal: Collection[str]) -> list[Method]:
    """The methods with what of them can be drawn; mistakes are one sentence."""
    if not fronts:
        raise ConfigurationError("`fronts` needs at least one method to draw, found none")
    for name, seeds in fronts.items():
        if not seeds:
            raise ConfigurationError(
                f"the method `{name}` needs at least one front, found none: leave it out"
            )
    for name in ideal:
        if name not in fronts:
            raise unknown("method in `ideal`", name, fronts)
    every = [front for seeds in fronts.values() for front in seeds]
    same_objectives(every)
    for front in every:
        if not np.array_equal(front.reference, every[0].reference):
            raise ConfigurationError(
                "hypervolumes in one picture need the same `reference`, found "
                f"{every[0].reference.tolist()} and {front.reference.tolist()}: evaluate again "
                "with the same one"
            )
    methods = [
        Method(name, [kept for kept in map(finite, seeds) if kept], look(number), name in ideal)
        for number, (name, seeds) in enumerate(fronts.items())
    ]
    if not any(method.fronts for method in methods):
        raise DataError(
            f"no point of {', '.join(fronts)} has finite values, so there is nothing to draw; "
            "train again with a smaller learning rate"
        )
    return methods


def _draw_pair(figure: "Figure", methods: list[Method], box: tuple[Array, Array]) -> None:
    """One large panel."""
    figure.set_size_inches(8.4, 4.9)
    labels = [f"{name}   ← smaller is better" for name in shown_names(methods[0].fronts[0], 40)]
    axes = figure.add_subplot(label="front")
    frame(axes, *labels)
    draw_methods(axes, methods, (0, 1), box)


def _draw_grid(figure: "Figure", methods: list[Method], box: tuple[Array, Array]) -> None:
    """One panel per pair of objectives below the diagonal."""
    first = methods[0].fronts[0]
    size = first.objectives - 1
    side = min(2.2 + 2.7 * size, 14.0)
    figure.set_size_inches(side, side)
    grid = figure.add_gridspec(size, size, wspace=0.05, hspace=0.05)
    labels = [f"{name}  (← better)" for name in shown_names(first, 26)]
    for row in range(size):
        for column in range(row + 1):
            axes = figure.add_subplot(grid[row, column], label=f"front {column} {row + 1}")
            frame(axes, labels[column], labels[row + 1])
            draw_methods(axes, methods, (column, row + 1), box)
            axes.label_outer()


def _draw_key(figure: "Figure", entries: list["Line2D"], title: str, objectives: int) -> None:
    """The legend beside the panel or in the free corner of the grid; both grow to hold it."""
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
    figure.draw_without_rendering()
    needed = np.array(legend.get_window_extent().size) / figure.dpi + 0.25
    share = (1.0, 1.0) if objectives == 2 else (free / size, (size - free) / size)
    figure.set_size_inches(*np.maximum(figure.get_size_inches(), needed / share))
