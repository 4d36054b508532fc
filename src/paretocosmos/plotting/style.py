"""Style, colours and marks of every picture, and the sheet from an empty figure to a file."""

import io
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from paretocosmos.errors import ConfigurationError, require_extra
from paretocosmos.io.files import user_path, write_bytes
from paretocosmos.io.palette import LIGHT, RUNS
from paretocosmos.objectives import measure_of
from paretocosmos.pareto.front import Array, Front
from paretocosmos.pareto.metrics import hypervolume

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.typing import MarkerType


DPI = 200
INK, MUTED, HAIRLINE = LIGHT["ink"], LIGHT["quiet"], LIGHT["line"]
FADED = 0.38  # how much of its colour a dominated point has
ANCHORS = RUNS["light"][:6]
# The end of viridis is too bright on white.
BRIGHTEST = 0.9
FONT = "DejaVu Sans"  # comes with matplotlib: the same letters on every machine
ABSENT = "□"  # in place of a letter the font lacks, about which matplotlib would warn

# The reader's own matplotlib settings (usetex, a dark style) must not reach a run's picture.
STYLE: dict[str, Any] = {
    "figure.facecolor": "white",
    "font.family": [FONT],
    "font.size": 8.5,
    "text.usetex": False,
    "text.parse_math": False,  # a dollar sign is a dollar sign
    "text.color": INK,
    "axes.unicode_minus": True,
    "axes.facecolor": "white",
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.labelsize": 9,
    "axes.labelpad": 6,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": False,
    "axes.axisbelow": True,
    "axes.titlesize": 8,
    "axes.titlecolor": MUTED,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
}


class Mark(NamedTuple):
    """Look of the points of one front; the shape tells fronts apart, the colour rays."""

    marker: str
    filled: bool
    size: float
    line: Literal["-", "--", ":", "-."]


# Sizes are areas, chosen so that the shapes look equally large; open marks show points below them.
MARKS = (
    Mark("o", True, 30, "-"),
    Mark("D", False, 20, "--"),
    Mark("s", True, 26, ":"),
    Mark("^", False, 28, "-."),
)


# Seven colours and eight shapes, so that 56 methods look different. No star, which is an ideal
# point, and no triangle to the side or down: those lie at the border.
COLOURS = (*ANCHORS, INK)
SHAPES = ("o", "s", "^", "D", "P", "X", "p", "h")


class Look(NamedTuple):
    """Look of one method among others."""

    colour: str
    shape: str
    size: float


def method_look(number: int) -> Look:
    """Return the look of the method with that index; shapes are sized to look equally large."""
    shape = SHAPES[number % len(SHAPES)]
    size = {"o": 20.0, "s": 17.0, "D": 15.0, "h": 24.0}.get(shape, 25.0)
    return Look(COLOURS[number % len(COLOURS)], shape, size)


def use_style() -> AbstractContextManager[None]:
    """Return a context in which this style holds, whatever the reader has set."""
    require_extra("matplotlib", "plot", "drawing a front")
    from matplotlib import style

    # "default" first resets whatever STYLE does not name
    return style.context(["default", STYLE])


def ray_colours(rays: Array) -> Array:
    """Return ``[N, 4]`` colours: two objectives along viridis, more as a mixture of one each."""
    import matplotlib
    from matplotlib.colors import to_rgba_array

    total = rays.sum(axis=1, keepdims=True)
    # a ray of zeros gets equal weights instead of NaN
    weights = np.divide(rays, total, out=np.full_like(rays, 1 / rays.shape[1]), where=total > 0)
    if rays.shape[1] == 2:
        return np.asarray(matplotlib.colormaps["viridis"](BRIGHTEST * weights[:, 1]))
    anchors = to_rgba_array([ANCHORS[n % len(ANCHORS)] for n in range(rays.shape[1])])
    mixed: Array = np.clip(weights @ anchors, 0, 1)
    return mixed


def fade_colour(colour: Any) -> Array:
    """Return ``[N, 4]``: one colour or several as for dominated points, nearer to white.

    They stay opaque: transparent points on top of each other would look non-dominated.

    >>> fade_colour("black")[0].round(2).tolist()
    [0.62, 0.62, 0.62, 1.0]
    """
    from matplotlib.colors import to_rgba_array

    colours: Array = to_rgba_array(colour)
    colours[:, :3] = 1 - FADED * (1 - colours[:, :3])
    return colours


def draw_points(
    axes: "Axes",
    front: Front,
    pair: tuple[int, int],
    colour: Any,
    *,
    order: int = 4,
    label: str = "",
    **style: Any,
) -> None:
    """Draw the points of a front in two of its objectives, dominated ones faded and underneath.

    Args:
        axes: of one panel.
        front: all values of which are finite.
        pair: the objectives across and up.
        colour: of all points, or one each.
        order: the z-order of points that no other dominates; that of lines is less.
        label: begins the labels of the two collections.
        style: as for `scatter`; with ``facecolors="white"`` the marks are open.
    """
    from matplotlib.colors import to_rgba_array

    shades = np.broadcast_to(to_rgba_array(colour), (len(front), 4))
    keep = front.non_dominated
    # two calls, since `scatter` takes one z-order for all of its points
    for select, shade, below, kind in (
        (~keep, fade_colour(shades[~keep]), 2, "dominated"),
        (keep, shades[keep], 0, "non-dominated"),
    ):
        colours = (
            {"edgecolors": shade.tolist()}
            if "facecolors" in style
            else {"facecolors": shade, "edgecolors": "white"}
        )
        axes.scatter(
            *front.values[select][:, pair].T,
            zorder=order - below,
            label=f"{label} {kind}",
            **{**colours, **style},
        )


def sort_points(points: Array) -> Array:
    """Sort points from the left end of a front to its right end."""
    return points[np.lexsort((-points[:, 1], points[:, 0]))]


def unique_rays(fronts: list[Front]) -> Array:
    """Return ``[N, J]``: every ray of the fronts once."""
    # rounded, since rays that were stored as float32 differ in the last digits
    return np.unique(np.concatenate([front.rays for front in fronts]).round(9), axis=0)


def shorten_text(text: str, width: int) -> str:
    """Shorten a text to one line of at most `width` characters, all of which the font has."""
    line = " ".join(text.split())
    line = line if len(line) <= width else line[: width - 1] + "…"
    return "".join(letter if ord(letter) in _font_characters() else ABSENT for letter in line)


def wrap_text(text: str, width: int) -> str:
    """Wrap a text in lines of at most `width` characters, after commas and colons if possible.

    >>> wrap_text("Adult, COSMOS, batch size 64, α 0.1", 32).splitlines()
    ['Adult, COSMOS, batch size 64,', 'α 0.1']
    """
    # no-break spaces glue phrases together, so that `wrap` can only break after commas and colons
    glued = re.sub(r"(?<![,:]) ", "\N{NO-BREAK SPACE}", text)
    fits = all(len(phrase) <= width for phrase in glued.split(" "))
    lines = wrap(glued if fits else text, width, break_on_hyphens=False)
    return "\n".join(lines).replace("\N{NO-BREAK SPACE}", " ")


def objective_labels(front: Front, width: int) -> list[str]:
    """Return the labels of the objectives; one that the font cannot show becomes its number."""
    names = [shorten_text(measure_of(name).label, width) for name in front.names]
    return [
        name if name.strip(f"{ABSENT}… ") else f"objective {number}"
        for number, name in enumerate(names, start=1)
    ]


@cache
def _font_characters() -> frozenset[int]:
    """Characters that the font has in both of its weights."""
    from matplotlib.font_manager import findfont
    from matplotlib.ft2font import FT2Font

    plain, bold = (FT2Font(findfont(FONT + weight)).get_charmap() for weight in ("", ":bold"))
    return frozenset(plain.keys() & bold.keys())


EDGE = 0.018  # how far the title begins from the left, of the width


def add_pairs(figure: "Figure", labels: Sequence[str]) -> Iterator[tuple["Axes", tuple[int, int]]]:
    """Add a panel for each pair of objectives below the diagonal; yield them to be drawn."""
    size = len(labels) - 1
    grid = figure.add_gridspec(size, size, wspace=0.05, hspace=0.05)
    for row in range(size):
        for column in range(row + 1):
            axes = figure.add_subplot(grid[row, column], label=f"front {column} {row + 1}")
            format_axes(axes, labels[column], labels[row + 1])
            yield axes, (column, row + 1)
            # inner panels share the labels of the left column and the bottom row
            axes.label_outer()


def format_axes(axes: "Axes", across: str, up: str) -> None:
    """Set the grid, ticks and labels of a panel of points."""
    axes.grid(color=HAIRLINE, linewidth=0.4, alpha=0.7)
    axes.tick_params(length=0, pad=5)
    axes.locator_params(nbins=6)
    axes.set(xlabel=across, ylabel=up)


@contextmanager
def open_sheet(title: str) -> Iterator["Figure"]:
    """Create an empty figure of this style, which belongs to no window; draw its title last.

    Ticks are made when they are first drawn: while the style holds.
    """
    with use_style():
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine

        figure = Figure(dpi=DPI, layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.10))
        yield figure
        if title:
            _set_title(figure, shorten_text(title, 180))
        # lays the figure out: ticks would otherwise be made outside of the style
        figure.draw_without_rendering()


def _set_title(figure: "Figure", title: str) -> None:
    """Draw a title above all panels, in as many lines as it needs; the figure grows."""
    text = figure.suptitle(title, x=EDGE, ha="left", fontsize=10.5, fontweight="bold")
    room = (1 - 2 * EDGE) * figure.bbox.width
    low = text.get_window_extent().height
    letters = len(title)
    # letters differ in width, so the number that fits is found by trying
    while text.get_window_extent().width > room and letters > 1:
        # at least one letter fewer each time, so that the loop ends
        letters = min(letters - 1, int(letters * room / text.get_window_extent().width) + 1)
        text.set_text(wrap_text(title, letters))
    more = (text.get_window_extent().height - low) / figure.dpi
    wide, high = figure.get_size_inches()
    figure.set_size_inches(wide, high + more)


def save_figure(path: Path, figure: "Figure") -> None:
    """Write a PNG, or a PDF if the path ends so, atomically, with the same bytes every time."""
    stream = io.BytesIO()
    with use_style():
        # a PDF holds the time of its creation, unless told not to
        if path.suffix.lower() == ".pdf":
            figure.savefig(stream, format="pdf", metadata={"CreationDate": None})
        else:
            figure.savefig(stream, format="png", dpi=DPI)
    write_bytes(path, stream.getvalue())


def check_same_objectives(fronts: Sequence[Front]) -> None:
    """Raise if fronts do not fit into one figure."""
    names = fronts[0].names
    if len(names) < 2:
        raise ConfigurationError(
            f"a picture of a front needs two objectives or more, found only `{names[0]}`"
        )
    for front in fronts:
        if front.names != names:
            raise ConfigurationError(
                f"fronts in one picture need the same objectives, found {', '.join(names)} and "
                f"{', '.join(front.names)}: draw them in two pictures"
            )


def check_two_objectives(fronts: Sequence[Front]) -> None:
    """Raise if a front does not have two objectives."""
    for front in fronts:
        if front.objectives != 2:
            raise ConfigurationError(
                f"a panel shows two objectives, found {', '.join(front.names)}: draw this front "
                "with `front_figure`"
            )


def keep_finite(front: Front) -> Front | None:
    """Return the front without points that cannot be drawn; `None` if it has no other."""
    keep = np.isfinite(front.values).all(axis=1)
    return front.take(keep) if keep.any() else None


def compute_volume(front: Front) -> float:
    """Return the hypervolume without a warning: evaluating the front warned already."""
    counts = (front.values < front.reference).all(axis=1).any()
    return hypervolume(front) if counts else 0.0


def is_separate(front: Front) -> bool:
    """Return True if the points are separate networks, with nothing between them."""
    return front.provenance.get("networks") is not None


# Dots an inch of a page in a browser, and of the picture in it, which is fine enough.
BROWSER, SHOWN = 96, 150


@dataclass(frozen=True, eq=False)
class Picture:
    """A figure of matplotlib, shown as the last value of a notebook's cell.

    Attributes:
        figure: to change it further.
    """

    figure: "Figure"

    def save(self, path: str | Path) -> Path:
        """Write a PNG, or a PDF if the path ends in ``.pdf``; return the path."""
        target = user_path(path)
        save_figure(target, self.figure)
        return target

    def __repr__(self) -> str:
        wide, high = self.figure.get_size_inches()
        return f"Picture({wide:g} x {high:g} inches; `.save(path)` writes it)"

    def _repr_png_(self) -> tuple[bytes, dict[str, Any]]:
        stream = io.BytesIO()
        with use_style():
            self.figure.savefig(stream, format="png", dpi=SHOWN)
        wide = self.figure.get_size_inches()[0]
        return stream.getvalue(), {"width": round(wide * BROWSER)}


def create_handle(
    text: str,
    colour: str,
    shape: "MarkerType",
    size: float,
    opacity: float = 1.0,
) -> "Line2D":
    """Create a legend entry."""
    from matplotlib.lines import Line2D

    return Line2D(
        [],
        [],
        color=colour,
        linewidth=0,
        marker=shape,
        markersize=math.sqrt(size),
        markeredgecolor="white",
        markeredgewidth=0.5 if opacity == 1.0 else 0,
        alpha=opacity,
        label=text,
    )


def dominated_handle(size: float, text: str = "dominated", colour: str = MUTED) -> "Line2D":
    """Create the legend entry of dominated points."""
    from matplotlib.colors import to_hex

    return create_handle(text, to_hex(fade_colour(colour)[0]), "o", size)
