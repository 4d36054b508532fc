"""Who is selected: the shares of the groups along a front, beside the share of wrong answers."""

from typing import TYPE_CHECKING

from paretocosmos.pareto.front import Front
from paretocosmos.plotting._style import INK, MUTED, colours, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PREFIX = "selection_rate_"
# Groups that one small panel can tell apart.
MOST = 4
SHAPES = "os^D"


def has_shares(front: Front) -> bool:
    """Whether a front has the selection rates of a few groups, and the accuracy."""
    count = sum(name.startswith(PREFIX) for name in front.metrics)
    return 2 <= count <= MOST and "accuracy" in front.metrics


def draw_shares(axes: "Axes", front: Front) -> None:
    """A line for each group: the share that is predicted positive, by how often that is wrong."""
    wrong, shade = 100 * (1 - front.metrics["accuracy"]), colours(front.rays)
    groups = [name for name in front.metrics if name.startswith(PREFIX)]
    highest = max(groups, key=lambda name: float(front.metrics[name][0]))
    for name, shape in zip(groups, SHAPES, strict=False):
        share = 100 * front.metrics[name]
        axes.plot(wrong, share, color=MUTED, linewidth=0.7, zorder=2)
        axes.scatter(wrong, share, s=13, c=shade, marker=shape, linewidths=0, zorder=3)
        axes.annotate(
            shown(name.removeprefix(PREFIX), 12),
            (wrong[0], share[0]),
            xytext=(0, 5 if name == highest else -12),
            textcoords="offset points",
            ha="left",
            fontsize=8,
            color=INK,
        )
    axes.margins(x=0.08, y=0.18)
    axes.set_ylim(bottom=0)
    axes.locator_params(nbins=3, steps=[1, 2, 5, 10])
    axes.tick_params(labelsize=7.5, length=2)
    axes.set_title(f"selected, of 100 ({front.split})", loc="left")
    axes.set_xlabel("wrong answers of 100", fontsize=7.5, labelpad=4)
