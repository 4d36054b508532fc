"""The points of several methods in one panel: a colour and a shape each, one front per seed."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from paretocosmos.pareto import metrics
from paretocosmos.pareto.front import Array, Front
from paretocosmos.plotting._limits import limits
from paretocosmos.plotting._pair import in_order, padded
from paretocosmos.plotting._sheet import separate
from paretocosmos.plotting._style import Look, faded

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PALE = 0.3  # opacity of the seeds after the first
# How much larger points without a line are drawn: of a method of one point, of one per objective.
LONE, APART = 3.2, 1.8


@dataclass(frozen=True, eq=False)
class Method:
    """One method in a comparison: a front per seed, none of which holds a NaN."""

    name: str
    fronts: list[Front]
    look: Look
    ideal: bool

    @cached_property
    def points(self) -> Array:
        """``[S * N, J]``: all points of all seeds."""
        return np.concatenate([front.values for front in self.fronts])

    @cached_property
    def best(self) -> Array:
        """``[S * N, J]``: those that no point of the same seed dominates."""
        return np.concatenate([front.values[front.non_dominated] for front in self.fronts])

    @cached_property
    def ideals(self) -> Array:
        """``[S, J]`` for a method whose ideal point is shown, ``[0, J]`` for another."""
        found = [metrics.ideal(front) for front in self.fronts]
        return np.stack(found) if self.ideal else self.points[:0]

    @property
    def is_point(self) -> bool:
        """Whether it gives a single trade-off, whatever the ray."""
        return all((front.values == front.values[0]).all() for front in self.fronts)

    @property
    def joined(self) -> bool:
        """Whether a line through its points says something."""
        several = any(front.non_dominated.sum() > 1 for front in self.fronts)
        apart = any(separate(front) for front in self.fronts)
        return self.points.shape[1] == 2 and several and not (self.is_point or self.ideal or apart)

    @property
    def size(self) -> float:
        """The area of its marks."""
        return self.look.size * (APART if self.ideal else LONE if self.is_point else 1.0)

    def outside(self, low: Array, high: Array) -> npt.NDArray[np.bool_]:
        """``[S * N]``: which points lie outside the panels."""
        return np.asarray(((self.points < low) | (self.points > high)).any(axis=1))


def box_of(methods: list[Method]) -> tuple[Array, Array]:
    """The limits of the panels: what gives a front decides, or else what there is."""
    several = [m for m in methods if not (m.is_point or m.ideal)]
    leading = several or [m for m in methods if not m.ideal] or methods
    beside, always = [m.points for m in methods], [m.ideals for m in methods]
    # a front of one point says nothing of how far the others may lie
    fronts = [m.best if len(m.best) > 1 else m.points for m in leading]
    return padded(*limits(fronts, beside, always))


def draw_methods(
    axes: "Axes", methods: list[Method], pair: tuple[int, int], box: tuple[Array, Array]
) -> None:
    """All methods in two of their objectives, inside the box; what lies further at its border."""
    low, high = box[0][list(pair)], box[1][list(pair)]
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    for method in methods:
        for number, front in enumerate(method.fronts):
            _draw_front(axes, method, front, pair, first=number == 0)
        _draw_outside(axes, method, method.points[:, pair], low, high)
        for number, point in enumerate(method.ideals[:, pair]):
            _draw_ideal(axes, method, point, first=number == 0)


def _draw_front(
    axes: "Axes", method: Method, front: Front, pair: tuple[int, int], *, first: bool
) -> None:
    """One seed: its points, and with two objectives the line through the non-dominated ones."""
    colour, shape, _ = method.look
    seed = "" if first else " other seed"
    opacity = 1.0 if first else PALE
    keep = front.non_dominated
    if method.joined and keep.sum() > 1:
        axes.plot(
            *in_order(front.values[keep]).T,
            color=colour,
            linewidth=1.0 if first else 0.8,
            alpha=opacity,
            zorder=3 if first else 2,
            label=f"{method.name} line{seed}",
        )
    if method.joined and not first:
        return  # its line says enough
    for select, shade, order, kind in (
        (~keep, faded(colour), 2, "dominated"),
        (keep, colour, 4, "non-dominated"),
    ):
        x, y = front.values[select][:, pair].T
        axes.scatter(
            x,
            y,
            s=method.size if first else 0.5 * method.size,
            marker=shape,
            facecolors=shade,
            edgecolors="white",
            linewidths=0.5 if first else 0,
            alpha=opacity,
            zorder=order + (1 if method.is_point else 0) - (0 if first else 1),
            label=f"{method.name} {kind}{seed}",
        )


def _draw_outside(axes: "Axes", method: Method, points: Array, low: Array, high: Array) -> None:
    """A small triangle at the border for every point further out, in its direction."""
    side = np.where(points > high, 1, 0) - np.where(points < low, 1, 0)
    for toward in np.unique(side[side.any(axis=1)], axis=0):
        x, y = np.clip(points[(side == toward).all(axis=1)], low, high).T
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
    """A star, and from the first seed's the lines that no network of its kind goes beyond."""
    x, y = point
    colour = method.look.colour
    if first:
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
