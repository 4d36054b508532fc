"""Pictures of fronts and of methods: two objectives in one panel, more in a grid of pairs.

Sheets of panels, three a row as the paper has them, are for reproductions.
"""

import copy
import math
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING

from paretocosmos.errors import ConfigurationError, DataError
from paretocosmos.pareto.front import Front
from paretocosmos.pareto.metrics import ideal_hypervolume
from paretocosmos.pareto.rays import each_alone
from paretocosmos.plotting._ablation import ablation_figure
from paretocosmos.plotting._comparison import comparison_figure, save_comparison
from paretocosmos.plotting._convergence import convergence_figure
from paretocosmos.plotting._dark import save_dark
from paretocosmos.plotting._fronts import fronts_figure
from paretocosmos.plotting._grid import draw_grid
from paretocosmos.plotting._intuition import Known, intuition_figure
from paretocosmos.plotting._key import dominated
from paretocosmos.plotting._pair import STAR, draw_pair, joined
from paretocosmos.plotting._sheet import finite, same_objectives, save_figure, sheet, volume
from paretocosmos.plotting._style import INK, MARKS, MUTED, shown
from paretocosmos.plotting._three import three_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

__all__ = [
    "Known",
    "ablation_figure",
    "comparison_figure",
    "convergence_figure",
    "front_figure",
    "fronts_figure",
    "intuition_figure",
    "save_comparison",
    "save_dark",
    "save_figure",
    "save_front",
    "three_figure",
]


def front_figure(fronts: Sequence[Front], *, title: str = "") -> "Figure":
    """Draw fronts into one figure that belongs to no window and no global state.

    A point has the colour of its ray, and the small panel shows every ray in that colour, so one
    sees which preference gave which trade-off. The shape of a point tells the fronts apart.
    Dominated points are faded. With two objectives the other points are joined by a line, and a
    panel shows how far away the reference point is, or, where groups of people are compared, which
    share of each is selected and how often that is right; with more objectives there is one panel
    per pair.

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
    with sheet(title) as figure:
        draw = draw_pair if drawn[0].objectives == 2 else draw_grid
        draw(figure, drawn)
        beside = any(each_alone(front.rays) for front in drawn)  # a pair below each other
        columns = 2 if beside else 3
        figure.legend(handles=_legend(drawn), loc="outside lower left", ncols=columns)
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


def _checked(fronts: Sequence[Front]) -> list[Front]:
    """The fronts without the points that cannot be drawn; mistakes are one sentence."""
    if len(fronts) == 0:
        raise ConfigurationError("`fronts` needs at least one front to draw, found none")
    same_objectives(fronts)
    for front in fronts:
        if finite(front) is None:
            raise DataError(
                f"no point of the {front.split} front has finite values, so there is nothing to "
                "draw; train again with a smaller learning rate"
            )
    return [kept for kept in map(finite, fronts) if kept is not None]


def _legend(fronts: list[Front]) -> list["Line2D"]:
    from matplotlib.lines import Line2D

    handles = []
    for label, front, mark in zip(_titles(fronts), fronts, cycle(MARKS)):
        handles.append(
            Line2D(
                [],
                [],
                color=MUTED,
                linewidth=0.9 if joined(front) else 0,
                linestyle=mark.line,
                marker=mark.marker,
                markersize=math.sqrt(mark.size),
                markerfacecolor=INK if mark.filled else "white",
                markeredgecolor=INK,
                markeredgewidth=0 if mark.filled else 1.1,
                label=f"{label}: hypervolume {volume(front):.4f}",
            )
        )
        if each_alone(front.rays):
            said = f"{label}: ideal point, {ideal_hypervolume(front):.4f}"
            handles.append(copy.copy(handles[-1]))
            handles[-1].set(marker="*", markersize=math.sqrt(STAR * mark.size), label=said)
            handles[-1].set_markeredgewidth(0.8)
    if not all(front.non_dominated.all() for front in fronts):
        handles.append(dominated(30, colour=INK))
    return handles


def _titles(fronts: list[Front]) -> list[str]:
    """The split of each front; where that says nothing, its method, its seed or its number."""
    known = [{**front.provenance, "split": front.split} for front in fronts]
    for key in ("split", "method", "seed"):
        found = [shown(str(one.get(key, "")), 40) for one in known]
        if all(found) and len(set(found)) == len(found):
            return found
    return [f"{shown(front.split, 40)} {number}" for number, front in enumerate(fronts, start=1)]
