"""Three objectives in the paper's arrangement: a panel per pair in one row, and the rays."""

from itertools import combinations
from typing import TYPE_CHECKING

from paretocosmos.errors import ConfigurationError
from paretocosmos.pareto.front import Front
from paretocosmos.plotting._grid import draw_star
from paretocosmos.plotting._pair import draw_panel
from paretocosmos.plotting._panels import frame_panel
from paretocosmos.plotting._sheet import finite, sheet
from paretocosmos.plotting._style import shown_names

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def three_figure(front: Front, *, title: str = "") -> "Figure":
    """Draw a front of three objectives: every pair of them, and the rays in their colours.

    A surface in perspective hides which point is better; three projections with one colour per
    ray do not. A point that another dominates in all three objectives is faded.

    Args:
        front: of three objectives.
        title: a line above the picture.

    >>> rays = [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]
    >>> front = Front(rays, rays, ("one", "two", "three"), (2, 2, 2))
    >>> [axes.get_label() for axes in three_figure(front).axes]
    ['one, two', 'one, three', 'two, three', 'rays']
    """
    kept = finite(front)
    if front.objectives != 3 or kept is None:
        raise ConfigurationError(
            f"this picture is for fronts of three objectives with finite values, found "
            f"{', '.join(front.names)}: use `front_figure`"
        )
    with sheet(title) as figure:
        figure.set_size_inches(9.7, 3.0)
        grid = figure.add_gridspec(1, 4, width_ratios=[1, 1, 1, 0.8], wspace=0.04)
        names = shown_names(kept, 24)
        for column, pair in enumerate(combinations(range(3), 2)):
            label = ", ".join(names[objective] for objective in pair)
            axes = figure.add_subplot(grid[0, column], label=label)
            draw_panel(axes, [kept], pair, [f"{name}  (← better)" for name in names])
            frame_panel(axes, "")
            axes.xaxis.label.set_fontsize(8)
            axes.yaxis.label.set_fontsize(8)
        star = figure.add_subplot(grid[0, 3], label="rays")
        draw_star(star, [kept], names)
        star.set_title("colour of a ray")
    return figure
