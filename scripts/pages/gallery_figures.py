"""The pictures and the slider of docs/gallery.md, from results/."""

import io
import json
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from pages.common import ROOT, load_result
from pages.measured import compare_codecs, describe_codecs
from paretocosmos.io.palette import DARK, LIGHT, RUNS
from paretocosmos.plotting.style import ANCHORS, DPI, HAIRLINE, INK, MUTED, ray_colours, use_style

__all__ = ["draw_quantiles", "draw_rate_distortion", "draw_robustness", "write_slider"]

SPRITE = ROOT / "docs" / "_static" / "rate_distortion.webp"
CROP_DPI = 125  # enough for crops of 128 pixels
CROPS = (0, 3, 5, 7, 10)  # of the crops, in the picture
# Where the words stand, in minutes.
NAMED = {
    0.9: ("enough on 9 days of 10", 38.5),
    0.5: ("enough every other day", 25.0),
    0.1: ("enough on 1 day of 10", 10.3),
}
# The digits that are shown, and what their rows are.
SHOWN = 4
ROWS = ("plain", "attacked,\nattacks do\nnot count", "attacked,\nonly attacks\ncount")
RIGHT, WRONG = ANCHORS[2], ANCHORS[1]


def write_slider() -> str:
    """Return docs/gallery/rate_distortion.html: crops at the preference that one drags to."""
    found = load_result("rate_distortion")
    points = found["crops"]
    with Image.open(SPRITE) as sprite:
        width, height = sprite.size
    rounded = [{name: round(value, 3) for name, value in point.items()} for point in points]
    page = (Path(__file__).parent / "rate_distortion.html").read_text(encoding="utf-8")
    return (
        page.replace("WIDTH", str(width))
        .replace("HEIGHT", str(height // (len(points) + 1)))
        .replace("LAST", str(len(points) - 1))
        .replace("POINTS", json.dumps(rounded))
        .replace("FINDING", describe_codecs(found))
    )


def draw_quantiles(path: Path) -> None:
    """The fan of quantiles over the true ones, and the share of new drives within each.

    Args:
        path: where the picture goes.
    """
    found = load_result("quantiles")
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


def draw_robustness(path: Path) -> None:
    """The front of accuracies beside that of separate networks, and digits under attack.

    Args:
        path: where the picture goes.
    """
    found = load_result("robustness")
    with use_style():
        figure = Figure(figsize=(9.6, 3.9), dpi=DPI, layout="constrained")
        parts: Any = figure.subfigures(1, 2, width_ratios=(1.35, 1), wspace=0.05)
        left, right = parts
        _draw_accuracies(left.subplots(), found)
        _digits(right, found["cells"][0]["digits"])
        figure.savefig(path, dpi=DPI)


def _accuracies(found: dict[str, Any], name: str) -> tuple[Any, Any]:
    """Rays ``[N, 2]``, and percent correct on plain and attacked digits, in the mean over seeds."""
    values = np.mean([cell[name]["values"] for cell in found["cells"]], axis=0)
    return np.array(found["cells"][0][name]["rays"]), 100 * (1 - values)


def _draw_accuracies(axes: Any, found: dict[str, Any]) -> None:
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


def draw_rate_distortion(folder: Path, *, dark: bool = False) -> None:
    """One network's curve among nine networks, and crops as it decodes them.

    Args:
        folder: where the PNG goes.
        dark: in the colours of dark pages; the photographs stay as they are.
    """
    found, names = load_result("rate_distortion"), DARK if dark else LIGHT
    ours, theirs = RUNS["dark" if dark else "light"][:2]
    one, separate, curve = (
        np.mean([run[name] for run in found["runs"]], axis=0)
        for name in ("one", "separate", "curve")
    )
    ink = dict.fromkeys(("text.color", "axes.labelcolor"), names["ink"])
    quiet = dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), names["quiet"])
    paper = dict.fromkeys(
        ("figure.facecolor", "axes.facecolor"), names["paper"] if dark else "white"
    )
    look: Any = ink | quiet | paper
    with use_style(), matplotlib.rc_context(look):
        figure = Figure(figsize=(9.6, 8.0), dpi=CROP_DPI, layout="constrained")
        parts: Any = figure.subfigures(2, 1, height_ratios=(1, 1.2))
        top, below = parts
        axes: Any = top.subplots()
        axes.plot(*curve.T, color=ours, linewidth=2.2, label="one network, any preference")
        axes.scatter(*one.T, color=ours, s=22, zorder=3)
        axes.scatter(
            *separate.T,
            s=46,
            marker="D",
            facecolors="none",
            edgecolors=theirs,
            linewidths=1.4,
            zorder=4,
            label="nine networks, trained one by one",
        )
        axes.set(xlabel="bits per pixel", ylabel="PSNR in dB")
        axes.grid(color=names["line"], linewidth=0.4, alpha=0.7)
        axes.tick_params(length=0, pad=5)
        axes.legend(loc="lower right", fontsize=9.5)
        numbers = compare_codecs(found)
        title = f"Held-out parts of two photographs, mean of {len(found['runs'])} seeds. "
        title += (
            f"Bits, one network against nine: {numbers['least']:+.1%} to {numbers['most']:+.1%}"
        )
        axes.set_title(title, loc="left", color=names["ink"], fontsize=9.5)
        _strip(below, found["crops"], names["ink"])
        stream = io.BytesIO()
        figure.savefig(stream, dpi=CROP_DPI)
    picture = Image.open(stream).convert("RGB").quantize(256)  # a quarter of the size
    picture.save(folder / f"rate_distortion{'-dark' if dark else ''}.png", optimize=True)


def _strip(figure: Any, points: Any, ink: str) -> None:
    """Both crops from the fewest bits to the most, and the original."""
    with Image.open(SPRITE) as sprite:
        rows = np.split(np.asarray(sprite.convert("RGB")), len(points) + 1)
    titles = [
        f"{points[at]['bits']:.2f} bits per pixel\n{points[at]['psnr']:.1f} dB" for at in CROPS
    ]
    grid = figure.subplots(2, len(CROPS) + 1)
    for column, (at, title) in enumerate(
        zip((*CROPS, -1), [*titles, "original\n24 bits per pixel"], strict=True)
    ):
        for axes, crop in zip(grid[:, column], np.split(rows[at], 2, axis=1), strict=True):
            axes.imshow(crop)
            axes.axis("off")
        grid[0, column].set_title(title, color=ink, fontsize=8.5)
