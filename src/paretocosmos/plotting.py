"""Pictures of fronts: two objectives in one panel, more in a grid of pairs."""

import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from paretocosmos.errors import ConfigurationError, DataError, MissingExtraError
from paretocosmos.files import write_bytes
from paretocosmos.front import Array, Front
from paretocosmos.metrics import hypervolume

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.gridspec import GridSpec

__all__ = ["front_figure", "save_front"]

DPI = 200
INK, MUTED, HAIRLINE = "#22262b", "#6b7280", "#d9dce1"
FADED = 0.38  # opacity of a dominated point
# Okabe and Ito's colours (2008) stay apart for every common kind of colour blindness.
ANCHORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
# The end of viridis is too bright on white.
BRIGHTEST = 0.9

# The reader's own matplotlib settings (usetex, a dark style) must not reach a run's picture.
STYLE: dict[str, Any] = {
    "font.family": ["DejaVu Sans"],  # comes with matplotlib: the same letters on every machine
    "font.size": 8.5,
    "text.usetex": False,
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
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "legend.frameon": False,
}


class _Mark(NamedTuple):
    """How the points of one front look; the shape tells fronts apart, the colour rays."""

    marker: str
    filled: bool
    size: float
    line: Literal["-", "--", ":", "-."]


MARKS = (
    _Mark("o", True, 30, "-"),
    _Mark("D", False, 20, "--"),
    _Mark("s", True, 26, ":"),
    _Mark("^", False, 28, "-."),
)


def front_figure(fronts: Sequence[Front], *, title: str = "") -> "Figure":
    """Draw fronts into one figure that belongs to no window and no global state.

    A point has the colour of its ray, and the small panel shows every ray in that colour, so one
    sees which preference gave which trade-off. The shape of a point tells the fronts apart.
    Dominated points are faded. With two objectives the other points are joined by a line, and a
    panel shows how far away the reference point is; with more there is one panel per pair.

    Args:
        fronts: one or more fronts with the same objectives, such as test and val.
        title: a line above the picture.

    Returns:
        A matplotlib figure; `Figure.savefig` writes it.

    >>> front = Front([[0.9, 0.1], [0.1, 0.9]], [[0.3, 0.2], [0.5, 0.1]], ("loss", "gap"), (2, 2))
    >>> [axes.get_label() for axes in front_figure([front]).axes]
    ['front', 'rays', 'box']
    """
    matplotlib = _matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    shown = _checked(fronts)
    objectives = shown[0].objectives
    side = min(1.8 + 2.3 * (objectives - 1), 14.0)
    with matplotlib.style.context(["default", STYLE]):
        figure = Figure(
            figsize=(7.6, 4.7) if objectives == 2 else (side + 0.6, side),
            dpi=DPI,
            layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.10),
            facecolor="white",
        )
        FigureCanvasAgg(figure)
        if objectives == 2:
            _draw_two(figure, shown)
        else:
            _draw_pairs(figure, shown)
        figure.legend(handles=_legend(shown), loc="outside lower left", ncols=3, fontsize=8.5)
        if title:
            figure.suptitle(_text(title, 90), x=0.018, ha="left", fontsize=10.5, fontweight="bold")
        # Ticks are made when first drawn: draw once while the style holds.
        figure.draw_without_rendering()
    return figure


def save_front(path: Path, fronts: Sequence[Front], *, title: str = "") -> None:
    """Draw fronts as `front_figure` does and write a PNG, whole or not at all.

    Args:
        path: where the PNG goes; an older one is replaced.
        fronts: one or more fronts with the same objectives.
        title: a line above the picture.

    >>> import tempfile
    >>> front = Front([[0.5, 0.5]], [[0.3, 0.2]], ("loss", "gap"), (2, 2))
    >>> path = Path(tempfile.mkdtemp()) / "front.png"
    >>> save_front(path, [front])
    >>> path.read_bytes()[1:4]
    b'PNG'
    """
    matplotlib = _matplotlib()
    figure = front_figure(fronts, title=title)
    stream = io.BytesIO()
    with matplotlib.style.context(["default", STYLE]):
        figure.savefig(stream, format="png", dpi=DPI, facecolor="white")
    write_bytes(path, stream.getvalue())


def _matplotlib() -> Any:
    try:
        import matplotlib
        import matplotlib.style
    except ImportError as error:
        raise MissingExtraError("matplotlib", "plot", "drawing a front") from error
    return matplotlib


def _checked(fronts: Sequence[Front]) -> list[Front]:
    """The fronts without the points that cannot be drawn; mistakes are one sentence."""
    if len(fronts) == 0:
        raise ConfigurationError("`fronts` needs at least one front to draw, found none")
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
    return [_finite(front) for front in fronts]


def _finite(front: Front) -> Front:
    keep = np.isfinite(front.values).all(axis=1)
    if keep.all():
        return front
    if not keep.any():
        raise DataError(
            f"no point of the {front.split} front has finite values, so there is nothing to draw; "
            "train again with a smaller learning rate"
        )
    return Front(
        rays=front.rays[keep],
        values=front.values[keep],
        names=front.names,
        reference=front.reference,
        split=front.split,
        provenance=front.provenance,
    )


def _draw_two(figure: "Figure", fronts: list[Front]) -> None:
    grid = figure.add_gridspec(2, 2, width_ratios=[3.0, 1.0], wspace=0.06, hspace=0.08)
    main = figure.add_subplot(grid[:, 0], label="front")
    _grid_lines(main)
    for front, mark in zip(fronts, _marks(fronts), strict=True):
        keep = front.non_dominated
        line = front.values[keep]
        line = line[np.lexsort((-line[:, 1], line[:, 0]))]
        main.plot(line[:, 0], line[:, 1], mark.line, color=MUTED, linewidth=0.9, zorder=2)
        _points(main, front, mark, (0, 1))
    _zoom(main, fronts, (0, 1))
    _label(main, fronts[0].names, (0, 1))
    _cross(main, fronts[0].reference, only_inside=True)

    _draw_fan(figure.add_subplot(grid[0, 1], label="rays"), fronts)
    _draw_box(figure.add_subplot(grid[1, 1], label="box"), fronts, main)


def _draw_fan(axes: "Axes", fronts: list[Front]) -> None:
    """The rays of two objectives as lines from the origin, in the colours of their points."""
    for ray in _distinct_rays(fronts):
        end = ray / np.linalg.norm(ray)
        axes.plot([0, end[0]], [0, end[1]], color=_colours(ray[None])[0], linewidth=1.0)
    arc = np.linspace(0, math.pi / 2, 60)
    axes.plot(np.cos(arc), np.sin(arc), color=HAIRLINE, linewidth=0.6, zorder=0)
    axes.set(xlim=(0, 1.06), ylim=(0, 1.06), xticks=[], yticks=[], aspect="equal", anchor="NW")
    _small_title(axes, "rays: weight on")
    axes.set_xlabel(_text(fronts[0].names[0], 24), fontsize=7.5, labelpad=4)
    axes.set_ylabel(_text(fronts[0].names[1], 24), fontsize=7.5, labelpad=4)


def _draw_box(axes: "Axes", fronts: list[Front], main: "Axes") -> None:
    """From the origin to the reference point: what the hypervolume measures."""
    from matplotlib.patches import Rectangle
    from matplotlib.ticker import MaxNLocator

    for front, mark in zip(fronts, _marks(fronts), strict=True):
        reference = front.reference
        inside = front.values[front.non_dominated & (front.values < reference).all(axis=1)]
        inside = inside[np.lexsort((-inside[:, 1], inside[:, 0]))]
        if len(inside) and front is fronts[0]:
            axes.fill_between(
                [*inside[:, 0], reference[0]],
                [*inside[:, 1], inside[-1, 1]],
                reference[1],
                step="post",
                color=ANCHORS[0],
                alpha=0.10,
                linewidth=0,
            )
        colours = _colours(front.rays)
        x, y = front.values.T
        axes.scatter(x, y, s=5, c=colours, marker=mark.marker, linewidths=0, zorder=3)
        _cross(axes, reference)
    points = np.concatenate([*(front.values for front in fronts), [fronts[0].reference]])
    low, high = np.minimum(points.min(axis=0), 0), points.max(axis=0)
    pad = 0.07 * np.where(high > low, high - low, 1.0)
    low = np.where(points.min(axis=0) < 0, low - pad, low)
    axes.set(xlim=(low[0], (high + pad)[0]), ylim=(low[1], (high + pad)[1]))
    (left, right), (bottom, top) = main.get_xlim(), main.get_ylim()
    corner, width, height = (left, bottom), right - left, top - bottom
    axes.add_patch(Rectangle(corner, width, height, fill=False, edgecolor=MUTED, linewidth=0.6))
    axes.xaxis.set_major_locator(MaxNLocator(3, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_locator(MaxNLocator(3, steps=[1, 2, 5, 10]))
    axes.tick_params(labelsize=7, length=2)
    axes.set_box_aspect(1)
    axes.set_anchor("NW")
    at = ", ".join(f"{value:g}" for value in fronts[0].reference)
    _small_title(axes, f"reference ({at})")


def _draw_pairs(figure: "Figure", fronts: list[Front]) -> None:
    """One panel per pair of objectives below the diagonal, the rays in the free corner."""
    names, size = fronts[0].names, fronts[0].objectives - 1
    grid = figure.add_gridspec(size, size, wspace=0.05, hspace=0.05)
    for row in range(size):
        for column in range(row + 1):
            axes = figure.add_subplot(grid[row, column], label=f"front {column} {row + 1}")
            pair = (column, row + 1)
            _grid_lines(axes)
            for front, mark in zip(fronts, _marks(fronts), strict=True):
                _points(axes, front, mark, pair)
            _zoom(axes, fronts, pair)
            _label(axes, names, pair, x=row == size - 1, y=column == 0)
            _cross(axes, fronts[0].reference[list(pair)], only_inside=True)
    _draw_star(figure, grid, size, fronts)


def _draw_star(figure: "Figure", grid: "GridSpec", size: int, fronts: list[Front]) -> None:
    """The rays between the corners of a polygon, one corner per objective (J = 3: the simplex)."""
    room = max(size // 2, 1)
    axes = figure.add_subplot(grid[:room, size - room :], label="rays")
    names = fronts[0].names
    turn = math.pi / 2 + 2 * math.pi * np.arange(len(names)) / len(names)
    corners = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    outline = np.concatenate([corners, corners[:1]])
    axes.plot(*outline.T, color=HAIRLINE, linewidth=0.8, zorder=1)
    rays = _distinct_rays(fronts)
    across, up = (rays @ corners).T
    axes.scatter(across, up, s=14, c=_colours(rays), linewidths=0, zorder=2)
    for name, (x, y), colour in zip(names, corners, _colours(np.eye(len(names))), strict=True):
        side = "center" if abs(x) < 0.1 or len(names) == 3 else ("left" if x > 0 else "right")
        high = "bottom" if y > 0.1 else ("top" if y < -0.1 else "center")
        axes.text(1.1 * x, 1.1 * y, _text(name, 16), ha=side, va=high, fontsize=7.5, color=colour)
    axes.set(xlim=(-1.5, 1.5), ylim=(-1.2, 1.5), aspect="equal")
    axes.set_axis_off()
    _small_title(axes, "rays: a point has the colour of its ray", centre=True)


def _points(axes: "Axes", front: Front, mark: _Mark, pair: tuple[int, int]) -> None:
    """The points of one front, dominated ones faded."""
    colours, keep = _colours(front.rays), front.non_dominated
    for select, opacity, order in ((~keep, FADED, 3), (keep, 1.0, 4)):
        if not select.any():
            continue
        axes.scatter(
            front.values[select, pair[0]],
            front.values[select, pair[1]],
            s=mark.size,
            marker=mark.marker,
            facecolors=colours[select] if mark.filled else "white",
            edgecolors="white" if mark.filled else colours[select].tolist(),
            linewidths=0.5 if mark.filled else 1.1,
            alpha=opacity,
            zorder=order,
            clip_on=False,
            label=f"{front.split} {'dominated' if order == 3 else 'non-dominated'}",
        )


def _legend(fronts: list[Front]) -> list[Any]:
    from matplotlib.lines import Line2D

    handles = []
    for label, front, mark in zip(_titles(fronts), fronts, _marks(fronts), strict=True):
        # `hypervolume` warns if no point counts; whoever evaluated the front was told already.
        counts = bool((front.values < front.reference).all(axis=1).any())
        volume = hypervolume(front) if counts else 0.0
        handles.append(
            Line2D(
                [],
                [],
                color=MUTED,
                linewidth=0.9 if front.objectives == 2 else 0,
                linestyle=mark.line,
                marker=mark.marker,
                markersize=math.sqrt(mark.size),
                markerfacecolor=INK if mark.filled else "white",
                markeredgecolor=INK,
                markeredgewidth=0 if mark.filled else 1.1,
                label=f"{label}: hypervolume {volume:.4f}",
            )
        )
    if not all(front.non_dominated.all() for front in fronts):
        faded = Line2D([], [], color=INK, alpha=FADED, linewidth=0, marker="o", markersize=5.5)
        faded.set(label="dominated", markeredgewidth=0)
        handles.append(faded)
    return handles


def _titles(fronts: list[Front]) -> list[str]:
    """The split of each front; where that says nothing, its method or its number."""
    for key in ("", "method", "seed"):
        found = [
            _text(str(front.provenance.get(key, "") if key else front.split), 40)
            for front in fronts
        ]
        if all(found) and len(set(found)) == len(found):
            return found
    return [f"{front.split} {number}" for number, front in enumerate(fronts, start=1)]


def _marks(fronts: list[Front]) -> list[_Mark]:
    return [MARKS[number % len(MARKS)] for number in range(len(fronts))]


def _colours(rays: Array) -> Array:
    """``[N, 4]``: two objectives along viridis, more as a mixture of one colour per objective."""
    import matplotlib
    from matplotlib.colors import to_rgba_array

    total = rays.sum(axis=1, keepdims=True)
    weights = np.divide(rays, total, out=np.full_like(rays, 1 / rays.shape[1]), where=total > 0)
    if rays.shape[1] == 2:
        return np.asarray(matplotlib.colormaps["viridis"](BRIGHTEST * weights[:, 1]))
    anchors = to_rgba_array([ANCHORS[n % len(ANCHORS)] for n in range(rays.shape[1])])
    mixed: Array = np.clip(weights @ anchors, 0, 1)
    return mixed


def _distinct_rays(fronts: list[Front]) -> Array:
    return np.unique(np.concatenate([front.rays for front in fronts]).round(9), axis=0)


def _zoom(axes: "Axes", fronts: list[Front], pair: tuple[int, int]) -> None:
    """The smallest box around all points, with air; a front of one value gets some width."""
    points = np.concatenate([front.values for front in fronts])[:, list(pair)]
    low, high = points.min(axis=0), points.max(axis=0)
    flat = high - low <= 1e-9 * np.maximum(np.abs(high), np.abs(low))
    pad = np.where(flat, np.maximum(0.05 * np.abs(high), 1e-3), 0.06 * (high - low))
    low, high = low - pad, high + pad
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))


def _label(
    axes: "Axes", names: tuple[str, ...], pair: tuple[int, int], *, x: bool = True, y: bool = True
) -> None:
    """Objective names; the arrow points to smaller values on both axes, the turned one included."""
    hint = "   ← smaller is better" if len(names) == 2 else "  (← better)"
    width = 40 if len(names) == 2 else 18
    if x:
        axes.set_xlabel(_text(names[pair[0]], width) + hint)
    else:
        axes.tick_params(labelbottom=False)
    if y:
        axes.set_ylabel(_text(names[pair[1]], width) + hint)
    else:
        axes.tick_params(labelleft=False)


def _cross(axes: "Axes", reference: Array, *, only_inside: bool = False) -> None:
    if only_inside:
        (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
        if not (left <= reference[0] <= right and bottom <= reference[1] <= top):
            return
    x, y = reference
    axes.scatter(x, y, marker="x", s=26, c=INK, linewidths=1.1, zorder=5, label="reference")


def _grid_lines(axes: "Axes") -> None:
    from matplotlib.ticker import MaxNLocator

    axes.grid(color=HAIRLINE, linewidth=0.4, alpha=0.7)
    axes.tick_params(length=0, pad=5)
    axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))


def _small_title(axes: "Axes", text: str, *, centre: bool = False) -> None:
    axes.set_title(text, loc="center" if centre else "left", fontsize=8, color=MUTED)


def _text(text: str, width: int) -> str:
    """One line of at most `width` letters in which a dollar sign is a dollar sign."""
    line = " ".join(text.split())
    line = line if len(line) <= width else line[: width - 1] + "…"
    return line.replace("$", r"\$")
