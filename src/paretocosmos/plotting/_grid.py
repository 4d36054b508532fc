"""Three objectives and more: a panel per pair, and all rays in the free corner."""

import math
from typing import TYPE_CHECKING

import numpy as np

from paretocosmos.pareto.front import Front
from paretocosmos.plotting._pair import draw_panel
from paretocosmos.plotting._style import HAIRLINE, colours, distinct_rays, shown_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_grid(figure: "Figure", fronts: list[Front]) -> None:
    """One panel per pair of objectives below the diagonal, the rays above it."""
    size = fronts[0].objectives - 1
    side = min(1.8 + 2.3 * size, 14.0)
    figure.set_size_inches(side + 0.6, side)
    grid = figure.add_gridspec(size, size, wspace=0.05, hspace=0.05)
    names = shown_names(fronts[0], 20)
    labels = [f"{name}  (← better)" for name in names]
    for row in range(size):
        for column in range(row + 1):
            axes = figure.add_subplot(grid[row, column], label=f"front {column} {row + 1}")
            draw_panel(axes, fronts, (column, row + 1), labels)
            axes.label_outer()
    room = max(size // 2, 1)
    draw_star(figure.add_subplot(grid[:room, size - room :], label="rays"), fronts, names)


def draw_star(axes: "Axes", fronts: list[Front], names: list[str]) -> None:
    """The rays between the corners of a polygon, one corner per objective (J = 3: the simplex)."""
    objectives = len(names)
    turn = math.pi / 2 + 2 * math.pi * np.arange(objectives) / objectives
    corners = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    outline = np.concatenate([corners, corners[:1]])
    axes.plot(*outline.T, color=HAIRLINE, linewidth=0.8, zorder=1)
    rays = distinct_rays(fronts)
    across, up = (rays @ corners).T
    axes.scatter(across, up, s=14, c=colours(rays), linewidths=0, zorder=2)
    for name, (x, y), colour in zip(names, corners, colours(np.eye(objectives)), strict=True):
        side = "center" if abs(x) < 0.1 or objectives == 3 else ("left" if x > 0 else "right")
        high = "bottom" if y > 0.1 else ("top" if y < -0.1 else "center")
        axes.text(1.1 * x, 1.1 * y, name, ha=side, va=high, fontsize=7.5, color=colour)
    axes.set(xlim=(-1.5, 1.5), ylim=(-1.2, 1.5), aspect="equal")
    axes.set_axis_off()
    axes.set_title("rays: a point has the colour of its ray")
