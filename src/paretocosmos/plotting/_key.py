"""The legend of a comparison: how each method looks and what its hypervolume is."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from paretocosmos.io.formatting import format_mean
from paretocosmos.pareto.front import Array, Front
from paretocosmos.pareto.metrics import ideal_hypervolume
from paretocosmos.plotting._methods import PALE, Method
from paretocosmos.plotting._sheet import volume
from paretocosmos.plotting._style import MUTED, faded, shown

if TYPE_CHECKING:
    from matplotlib.lines import Line2D
    from matplotlib.typing import MarkerType

WIDTH = 32  # letters of a method's name


def key_title(fronts: Mapping[str, Sequence[Front]]) -> str:
    """What the numbers below are."""
    reference = next(iter(fronts.values()))[0].reference
    point = ", ".join(f"{value:g}" for value in reference)
    counts = {len(seeds) for seeds in fronts.values()}
    seeds = f"{min(counts)} seeds" if len(counts) == 1 else f"up to {max(counts)} seeds"
    spread = f"\nmean ± deviation of {seeds}" if max(counts) > 1 else ""
    return f"hypervolume at ({shown(point, 24)}){spread}"


def key(
    methods: list[Method], fronts: Mapping[str, Sequence[Front]], box: tuple[Array, Array]
) -> list["Line2D"]:
    """One entry per method, one per ideal point, and what faded and outside points look like."""
    handles, outside = [], 0
    for method in methods:
        colour, shape, size = method.look
        if not method.fronts:
            handles.append(mark(f"{_name(method)}\nnot one finite value", colour, shape, size))
            continue
        seeds = fronts[method.name]
        count = int(method.outside(*box).sum())
        lost = len(seeds) - len(method.fronts)
        said = format_mean([volume(front) for front in seeds])
        said += f", {count} outside" if count else ""
        said += f", {lost} not finite" if lost else ""
        handles.append(mark(f"{_name(method)}\n{said}", colour, shape, method.size))
        if method.joined:
            handles[-1].set_linewidth(1.0)
        if method.ideal:
            said = format_mean([ideal_hypervolume(front) for front in seeds])
            handles.append(mark(f"ideal point of {_name(method)}\n{said}", colour, "*", 130))
        outside += count
    drawn = [front for method in methods for front in method.fronts]
    if not all(front.non_dominated.all() for front in drawn):
        handles.append(dominated(20, "dominated by its own front"))
    if any(len(method.fronts) > 1 for method in methods):
        handles.append(mark("other seeds than the first", MUTED, "o", 10, PALE))
        handles[-1].set_linewidth(0.8)
    if outside:
        points = "1 point lies" if outside == 1 else f"{outside} points lie"
        handles.append(mark(f"{points} outside", MUTED, (3, 0, -90), 30))
    return handles


def mark(
    text: str,
    colour: str,
    shape: "MarkerType",
    size: float,
    opacity: float = 1.0,
) -> "Line2D":
    """How something looks, with its name, for a legend."""
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


def dominated(size: float, text: str = "dominated", colour: str = MUTED) -> "Line2D":
    """What a dominated point looks like, for a legend."""
    from matplotlib.colors import to_hex

    return mark(text, to_hex(faded(colour)[0]), "o", size)


def _name(method: Method) -> str:
    """Its name, of which the end says most; matplotlib would hide a leading underscore."""
    name = shown(method.name, len(method.name))
    name = name if len(name) <= WIDTH else f"…{name[1 - WIDTH :]}"
    return f" {name}" if name.startswith("_") else name
