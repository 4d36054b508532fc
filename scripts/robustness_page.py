"""Clean against robust accuracy: the table of docs/results.md and the picture of the gallery."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from paretocosmos.plotting.style import ANCHORS, DPI, HAIRLINE, INK, MUTED, ray_colours, use_style

__all__ = ["draw_robustness", "robustness_table"]

RESULTS = Path(__file__).resolve().parents[1] / "results"
# The digits that are shown, and what their rows are.
SHOWN = 4
ROWS = ("plain", "attacked,\nattacks do\nnot count", "attacked,\nonly attacks\ncount")
RIGHT, WRONG = ANCHORS[2], ANCHORS[1]


def robustness_table() -> Iterator[str]:
    """One network beside one for each of five weights."""
    found = json.loads((RESULTS / "robustness.json").read_text())
    mean = found["mean"]
    yield (
        f"`python -m benchmarks.robustness`, {len(found['seeds'])} seeds: the [example](gallery.md#clean-against-robust-accuracy), 500 test digits, pixels changed by up to "
        f"{16 * found['epsilon']:.0f} of 16 grey levels in {found['attack_steps']} projected gradient steps. Five networks without a ray are trained as long, one for each "
        "weight. Settings were chosen on validation digits."
    )
    yield ""
    yield (
        "| correct, plain / attacked, % | "
        + " | ".join(f"weight {weight:g} on attacks" for weight in found["weights"])
        + " |"
    )
    yield "|---|" + "---|" * len(found["weights"])
    for label, name in (("one network", "one"), ("five networks", "separate")):
        points = _accuracies(found, name)[1]
        yield f"| {label} | " + " | ".join(f"{a:.1f} / {b:.1f}" for a, b in points) + " |"
    yield ""
    yield (
        f"Order: {mean['order']:.2f} for the one network and {mean['order_separate']:.2f} for the five. Dominated: {mean['dominated']:.0%} and "
        f"{mean['dominated_separate']:.0%} of the points. The one network has {mean['hypervolume']:.3f} times the hypervolume of the five (from the corner where all is wrong), covers "
        f"{mean['range']:.0%} of their range in the narrower of the two objectives, and takes {mean['seconds'] / mean['seconds_separate']:.2f} of their training time."
    )


def draw_robustness(path: Path) -> None:
    """The front of accuracies beside that of separate networks, and digits under attack.

    Args:
        path: where the picture goes.
    """
    found = json.loads((RESULTS / "robustness.json").read_text())
    with use_style():
        figure = Figure(figsize=(9.6, 3.9), dpi=DPI, layout="constrained")
        parts: Any = figure.subfigures(1, 2, width_ratios=(1.35, 1), wspace=0.05)
        left, right = parts
        _front(left.subplots(), found)
        _digits(right, found["cells"][0]["digits"])
        figure.savefig(path, dpi=DPI)


def _accuracies(found: dict[str, Any], name: str) -> tuple[Any, Any]:
    """Rays ``[N, 2]``, and percent correct on plain and attacked digits, in the mean over seeds."""
    values = np.mean([cell[name]["values"] for cell in found["cells"]], axis=0)
    return np.array(found["cells"][0][name]["rays"]), 100 * (1 - values)


def _front(axes: Any, found: dict[str, Any]) -> None:
    rays, fine = _accuracies(found, "fine")
    shades = ray_colours(rays)
    axes.plot(*fine.T, color=HAIRLINE, linewidth=1.2, zorder=1)
    axes.scatter(*fine.T, c=shades, s=26, zorder=3)
    _, apart = _accuracies(found, "separate")
    axes.scatter(*apart.T, marker="D", s=34, facecolors="none", edgecolors=MUTED, zorder=2)
    told = {"textcoords": "offset points", "color": INK, "fontweight": "bold"}
    axes.annotate("only attacks count", fine[-1], (7, 4), **told)
    axes.annotate("attacks do not count", fine[0], (2, -14), ha="right", **told)
    quiet = {"textcoords": "offset points", "color": MUTED, "va": "center"}
    for weight, place in zip(found["weights"], apart, strict=True):
        axes.annotate(f"{weight:g}", place, (-7, 0), ha="right", **quiet)
    axes.annotate("five networks,\neach for one weight", apart[0], (-28, 8), ha="right", **quiet)
    axes.set(xlabel="plain digits read correctly, %", ylabel="attacked digits read correctly, %")
    axes.set_title("One network, 21 weights on attacks", loc="left", color=INK, fontsize=9.5)
    axes.grid(color=HAIRLINE, linewidth=0.4, alpha=0.7)
    axes.tick_params(length=0, pad=5)


def _digits(figure: Any, digits: list[dict[str, Any]]) -> None:
    every = figure.subplots(len(ROWS), SHOWN)
    for row, words in enumerate(ROWS):
        for axes, digit in zip(every[row], digits, strict=False):
            read = digit["read"][row]
            axes.imshow(digit["pixels"][row], cmap="gray_r", vmin=0, vmax=16)
            axes.set_xlabel(
                f"read as {read}", color=RIGHT if read == digit["digit"] else WRONG, labelpad=3
            )
            axes.set(xticks=[], yticks=[])
            axes.spines[["left", "bottom"]].set_visible(False)
        every[row][0].set_ylabel(words, rotation=0, ha="right", va="center")
    figure.suptitle("Digits on which the two ends differ", fontsize=9.5, color=INK)
