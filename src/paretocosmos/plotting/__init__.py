"""Pictures of fronts: two objectives in one panel, more in a grid of pairs."""

import io
import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from paretocosmos.errors import ConfigurationError, DataError
from paretocosmos.files import write_bytes
from paretocosmos.front import Front
from paretocosmos.metrics import hypervolume
from paretocosmos.plotting._grid import draw_grid
from paretocosmos.plotting._pair import draw_pair
from paretocosmos.plotting._style import DPI, FADED, INK, MARKS, MUTED, shown, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

__all__ = ["front_figure", "save_front"]


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
    drawn = _checked(fronts)
    with styled():
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine

        figure = Figure(dpi=DPI, layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.10))
        draw = draw_pair if drawn[0].objectives == 2 else draw_grid
        draw(figure, drawn)
        figure.legend(handles=_legend(drawn), loc="outside lower left", ncols=3)
        if title:
            figure.suptitle(shown(title, 90), x=0.018, ha="left", fontsize=10.5, fontweight="bold")
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
    figure = front_figure(fronts, title=title)
    stream = io.BytesIO()
    with styled():
        figure.savefig(stream, format="png", dpi=DPI)
    write_bytes(path, stream.getvalue())


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
    if not keep.any():
        raise DataError(
            f"no point of the {front.split} front has finite values, so there is nothing to draw; "
            "train again with a smaller learning rate"
        )
    return replace(front, rays=front.rays[keep], values=front.values[keep], metrics={})


def _legend(fronts: list[Front]) -> list["Line2D"]:
    from matplotlib.lines import Line2D

    handles = []
    for label, front, mark in zip(_titles(fronts), fronts, cycle(MARKS)):
        # `hypervolume` warns if no point counts; whoever evaluated the front was told already.
        counts = (front.values < front.reference).all(axis=1).any()
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
    """The split of each front; where that says nothing, its method, its seed or its number."""
    known = [{**front.provenance, "split": front.split} for front in fronts]
    for key in ("split", "method", "seed"):
        found = [shown(str(one.get(key, "")), 40) for one in known]
        if all(found) and len(set(found)) == len(found):
            return found
    return [f"{shown(front.split, 40)} {number}" for number, front in enumerate(fronts, start=1)]
