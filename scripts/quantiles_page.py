"""All quantiles in one network: the table of docs/results.md and the picture of the gallery."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from paretocosmos.plotting.style import ANCHORS, DPI, HAIRLINE, INK, MUTED, ray_colours, use_style

__all__ = ["draw_quantiles", "quantiles_table"]

RESULTS = Path(__file__).resolve().parents[1] / "results"
# Where the words stand, in minutes.
NAMED = {
    0.9: ("enough on 9 days of 10", 38.5),
    0.5: ("enough every other day", 25.0),
    0.1: ("enough on 1 day of 10", 10.3),
}


def quantiles_table() -> Iterator[str]:
    """One network beside one for each of nine levels."""
    found = json.loads((RESULTS / "quantiles.json").read_text())
    one, nine = found["mean"]["one"], found["mean"]["separate"]
    yield (
        f"`python -m benchmarks.quantiles`, {len(found['seeds'])} seeds: the [example](gallery.md#all-quantiles-in-one-network) on {found['rows']:,} simulated drives, "
        f"judged on {found['new']:,} others. Nine networks without a ray are trained as long, one for each level; both have the best of four "
        "learning rates on other drives. Pinball loss: 1 is that of the true quantiles. The time of the nine is that of training them together, as one stack."
    )
    yield ""
    yield "| mean over nine levels | one network | nine networks |"
    yield "|---|---|---|"
    for label, key, scale, form in (
        ("pinball loss, relative to the truth", "pinball", 1, "{:.4f}"),
        ("distance from the true quantile, minutes", "minutes", 1, "{:.2f}"),
        ("coverage asked for and measured differ by, points", "coverage", 100, "{:.2f}"),
        ("neighbouring quantiles that cross, %", "crossings", 100, "{:.2f}"),
        ("training, relative", "seconds", 1 / one["seconds"], "{:.1f}"),
    ):
        numbers = (form.format(scale * part[key]) for part in (one, nine))
        yield f"| {label} | {' | '.join(numbers)} |"


def draw_quantiles(path: Path) -> None:
    """The fan of quantiles over the true ones, and the share of new drives within each.

    Args:
        path: where the picture goes.
    """
    found = json.loads((RESULTS / "quantiles.json").read_text())
    with use_style():
        figure = Figure(figsize=(9.6, 3.9), dpi=DPI, layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=(2.1, 1))
        _fan(left, found)
        _coverage(right, found)
        for axes in (left, right):
            axes.grid(color=HAIRLINE, linewidth=0.4, alpha=0.7)
            axes.tick_params(length=0, pad=5)
        figure.savefig(path, dpi=DPI)


def _fan(axes: Any, found: dict[str, Any]) -> None:
    shown, levels = found["picture"], np.array(found["levels"])
    hours = np.array(shown["hours"])
    axes.scatter(*shown["drives"], s=3, color=MUTED, alpha=0.4, linewidths=0, zorder=0)
    every = ray_colours(np.stack([levels, 1 - levels], axis=1))
    for level, colour, curve, true in zip(
        levels, every, shown["curves"], shown["true"], strict=True
    ):
        axes.plot(hours, curve, color=colour, linewidth=1.5)
        axes.plot(hours, true, color=INK, linewidth=0.7, linestyle=(0, (1, 2)))
        if level in NAMED:
            words, height = NAMED[level]
            at = int(np.abs(hours - 9).argmin())
            axes.annotate(
                words,
                (hours[at], curve[at]),
                (10.5, height),
                va="center",
                color=INK,
                fontweight="bold",
                arrowprops={
                    "arrowstyle": "-",
                    "color": colour,
                    "linewidth": 0.7,
                    "relpos": (0, 0.5),
                },
            )
    axes.set(xlim=(5, 22), ylim=(8, 58), xlabel="hour of the day", ylabel="minutes to allow")
    axes.set_title(
        "One network, nine of its quantiles; dotted: the truth",
        loc="left",
        color=INK,
        fontsize=9.5,
    )


def _coverage(axes: Any, found: dict[str, Any]) -> None:
    levels = 100 * np.array(found["levels"])
    own = [100 * np.array(c["covered"]) for c in found["cells"] if c["networks"] == "one"]
    axes.plot([0, 100], [0, 100], color=MUTED, linewidth=0.7, zorder=0)
    for covered in own:
        axes.scatter(levels, covered, s=20, color=ANCHORS[0], alpha=0.7, linewidths=0)
    off = 100 * found["mean"]["one"]["coverage"]
    axes.text(95, 8, f"{off:.1f} points off\non average", ha="right", color=ANCHORS[0])
    axes.set(xlim=(0, 100), ylim=(0, 100), xlabel="asked for, %", ylabel="new drives in time, %")
    axes.set_title("In time as often as asked", loc="left", color=INK, fontsize=9.5)
