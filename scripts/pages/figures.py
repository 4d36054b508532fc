"""Pictures of README, the results and the idea."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from pages import gallery_figures
from pages.common import ROOT, load_result
from pages.dark import save_dark
from pages.fairness import OURS, RIVALS, Way, average_curve, list_curves
from pages.measured import list_speedups
from pages.results import group_fronts
from paretocosmos import Front
from paretocosmos.paper.published import problem_title
from paretocosmos.plotting import save_front
from paretocosmos.plotting.style import ANCHORS, DPI, HAIRLINE, INK, MUTED, ray_colours, use_style

__all__ = ["draw_figures"]

DOCS = ROOT / "docs"
MEN, WOMEN = ANCHORS[0], ANCHORS[1]
PAIRS = ("multi_mnist", "multi_fashion", "fashion_and_mnist")
# Curves of the picture of limits: colours by method, and which of ours.
COLOURS = {"ours": ANCHORS[0], "ThresholdOptimizer": ANCHORS[1], "ExponentiatedGradient": ANCHORS[2]}  # fmt: skip
STROKES = {Way("ours", "trees", "input"): "-", Way("ours", "trees", "estimate"): "--", Way("ours", "network", "none"): ":"}  # fmt: skip


def draw_figures() -> None:
    """Draw every picture, and each once more for dark pages."""
    fronts = [Front.from_dict(load_result(f"demo/{name}")) for name in ("front", "front_val")]
    save_front(DOCS / "adult.png", fronts, title="Adult: one network, 25 trade-offs")
    draw_consequences(DOCS / "consequences.png")
    draw_idea(DOCS / "idea.png")
    draw_images(DOCS / "images.png")
    draw_constraint(DOCS / "constraint.png")
    draw_speed(DOCS / "speed.png")
    gallery_figures.draw_quantiles(DOCS / "gallery" / "all_quantiles.png")
    gallery_figures.draw_robustness(DOCS / "gallery" / "robust_accuracy.png")
    for name in ("adult", "consequences", "idea", "images", "constraint", "speed"):
        save_dark(DOCS / f"{name}.png")
    for name in ("all_quantiles", "robust_accuracy"):
        save_dark(DOCS / "gallery" / f"{name}.png")
    for dark in (False, True):
        gallery_figures.draw_rate_distortion(DOCS / "gallery", dark=dark)


@contextmanager
def _sheet(path: Path, size: tuple[float, float], *grid: int, **options: Any) -> Iterator[Any]:
    """Give the panels of a figure in the common style, and write it."""
    with use_style():
        figure = Figure(figsize=size, dpi=DPI, layout="constrained")
        panels = figure.subplots(*grid, **options)
        for axes in np.atleast_1d(panels):
            axes.grid(color=HAIRLINE, linewidth=0.4, alpha=0.7)
            axes.tick_params(length=0, pad=5)
        yield panels
        figure.savefig(path, dpi=DPI)


def _title(axes: Any, text: str) -> None:
    axes.set_title(text, loc="left", color=INK, fontsize=9.5)


def draw_consequences(path: Path) -> None:
    """Draw who is predicted a yes, and how many predictions are wrong, by the weight on fairness."""
    front = Front.from_dict(load_result("demo/front"))
    weight = np.asarray(front.rays)[:, 1]
    wrong = 100 * np.asarray(front.metrics["misclassification"])
    with _sheet(path, (9.6, 3.5), 1, 2, width_ratios=(1.35, 1)) as (left, right):
        shares = {}
        for name, label, colour in (("Male", "men", MEN), ("Female", "women", WOMEN)):
            share = shares[label] = 100 * np.asarray(front.metrics[f"selection_rate_{name}"])
            _draw_line(left, weight, share, colour, f"of 100 {label}", below=label == "women")
        left.fill_between(weight, shares["men"], shares["women"], color=HAIRLINE, alpha=0.5)
        _title(left, "Predicted to earn over 50,000 dollars")
        _draw_line(right, weight, wrong, ANCHORS[2], "of 100 people")
        _title(right, "Wrong predictions")
        for axes in (left, right):
            axes.set(ylim=(0, 30), xlim=(-0.02, 1.1), xlabel="weight on fairness")


def _draw_line(axes: Any, x: Any, y: Any, colour: str, label: str, *, below: bool = False) -> None:
    """Draw a line with its name and first value at its start, and the last value at its end."""
    axes.plot(x, y, color=colour, linewidth=1.8, marker="o", markersize=3.5)
    beside, after = ((2, -17), (7, -7)) if below else ((2, 9), (7, 1))
    style = {"textcoords": "offset points", "color": colour, "fontweight": "bold"}
    axes.annotate(f"{y[0]:.0f} {label}", (x[0], y[0]), beside, **style)
    axes.annotate(f"{y[-1]:.0f}", (x[-1], y[-1]), after, **style)


def draw_images(path: Path) -> None:
    """Draw fronts on pairs of images: means over five seeds with bars of one deviation."""
    looks = {
        "separate": ("five separate networks", "D", MUTED),
        "default": ("one network, the default of 0.2", "o", ANCHORS[0]),
        "paper": ("one network, COSMOS as published", "s", ANCHORS[1]),
    }
    fronts = group_fronts()
    with _sheet(path, (9.6, 4.0), 1, len(PAIRS)) as panels:
        for axes, problem in zip(panels, PAIRS, strict=True):
            for arm, (label, marker, colour) in looks.items():
                runs = fronts[problem, "published"][arm]
                points = np.array([run["points"] for run in runs])
                (x, y), (dx, dy) = points.mean(0).T, points.std(0, ddof=1).T
                line = "none" if arm == "separate" else "-"
                axes.errorbar(
                    x, y, dy, dx, color=colour, marker=marker, linestyle=line, linewidth=1.2,
                    markersize=5, elinewidth=0.8, label=label,
                )  # fmt: skip
                if arm != "separate":
                    first = int(np.argmax(np.array(runs[0]["rays"])[:, 0]))
                    axes.scatter(x[first], y[first], s=110, facecolors="none", edgecolors=colour)
            axes.locator_params(nbins=5)
            _title(axes, problem_title(problem))
            axes.set(xlabel="cross-entropy, top left")
        panels[0].set(ylabel="cross-entropy, bottom right")
        handles, labels = panels[0].get_legend_handles_labels()
        panels[0].figure.legend(
            handles, labels, loc="outside lower center", ncols=3, frameon=False,
            title="circled: the most weight on the top-left image, whose loss the default lowers and COSMOS as published raises",
        )  # fmt: skip


def draw_constraint(path: Path) -> None:
    """Draw mean accuracy against the mean gap on Adult's test rows, a curve for each method."""
    ways = list_curves()["adult", "demographic_parity"]
    rivals = {name: way for name, way in RIVALS.items() if way.method in COLOURS}
    shown = {name: way for name, way in OURS.items() if way in STROKES} | rivals
    with _sheet(path, (7.2, 4.8)) as axes:
        for name, way in shown.items():
            gaps, accuracies = average_curve(ways[way])
            axes.plot(
                gaps, accuracies, marker="o", markersize=3, linewidth=1.2,
                color=COLOURS[way.method], linestyle=STROKES.get(way, "-"),
                label=f"ours, {name}".replace("`", "") if way.method == "ours" else name.replace("`", ""),
            )  # fmt: skip
        axes.set_xlim(left=0)
        axes.set(xlabel="gap in selection rates on test rows", ylabel="accuracy on test rows")
        _title(axes, "Adult: means over splits, from every tolerance or preference")
        axes.legend(
            loc="upper center",
            bbox_to_anchor=(0.5, -0.14),
            ncols=2,
            frameon=False,
            handlelength=3.5,
        )


def draw_speed(path: Path) -> None:
    """Draw how many times as fast as the textbook loop we are, on a logarithmic scale."""
    ratios = {title: theirs / ours for title, (theirs, ours) in list_speedups().items()}
    with _sheet(path, (7.2, 2.6)) as axes:
        bars = axes.barh(list(ratios)[::-1], list(ratios.values())[::-1], color=ANCHORS[0], height=0.6)  # fmt: skip
        axes.bar_label(bars, fmt="%.1f", padding=4, color=INK)
        axes.set_xscale("log", base=2)
        axes.set(xlim=(1, 64), xticks=[1, 2, 4, 8, 16, 32, 64])
        axes.set_xticklabels(["1", "2", "4", "8", "16", "32", "64"])
        axes.grid(visible=False, axis="y")
        _title(axes, "Times as fast as a textbook loop, on a CPU")


def draw_idea(path: Path) -> None:
    """Draw a training for each trade-off, beside one network whose input r moves along the front."""
    rays = np.stack([np.linspace(0.9, 0.1, 5), np.linspace(0.1, 0.9, 5)], axis=1)
    many = np.stack([np.linspace(0.97, 0.03, 25), np.linspace(0.03, 0.97, 25)], axis=1)
    colours = ray_colours(rays)
    with _sheet(path, (9.6, 3.7), 1, 2) as (left, right):
        _title(left, "A training for each trade-off")
        _title(right, "One network: move r, and the point moves")
        for axes in (left, right):
            axes.grid(visible=False)
            axes.set(xlim=(0, 1), ylim=(-0.06, 1), xticks=[], yticks=[])
            axes.spines[["left", "bottom"]].set_visible(False)
            _draw_axes(axes)
        right.scatter(
            *np.array([_place(ray) for ray in many]).T, c=ray_colours(many), s=16, zorder=2
        )
        _draw_box(right, (0.17, 0.4), (0.27, 0.28), "one network", INK)
        _draw_arrow(right, (0.06, 0.54), (0.165, 0.54), "x")
        right.plot([0.06, 0.44], [0.16, 0.16], color=HAIRLINE, linewidth=4, solid_capstyle="round")
        right.text(0.25, 0.03, "r, moved after training", ha="center", color=MUTED)
        for index, (ray, colour) in enumerate(zip(rays, colours, strict=True)):
            height = 0.86 - 0.18 * index
            _draw_box(left, (0.12, height - 0.055), (0.3, 0.11), f"network {index + 1}", colour)
            _draw_arrow(left, (0.02, height), (0.115, height), "x" if index == 2 else "")
            _draw_arrow(left, (0.425, height), _place(ray), "")
            left.scatter(*_place(ray), color=[colour], s=42, zorder=3)
            knob = 0.06 + 0.38 * ray[1]
            right.scatter(knob, 0.16, color=[colour], s=60, zorder=3)
            _draw_arrow(right, (knob, 0.19), (0.2 + 0.05 * index, 0.395), "", colour)
            _draw_arrow(right, (0.445, 0.62 - 0.04 * index), _place(ray), "", colour)
            right.scatter(*_place(ray), color=[colour], s=60, zorder=3)


def _place(ray: Any) -> tuple[float, float]:
    """Return a place on the drawn front: L₁ = (1 - s)², L₂ = s², as in `toy_convex`."""
    return 0.58 + 0.38 * (1 - ray[0]) ** 2, 0.1 + 0.78 * (1 - ray[1]) ** 2


def _draw_box(
    axes: Any, corner: tuple[float, float], size: tuple[float, float], text: str, colour: Any
) -> None:
    style = "round,pad=0,rounding_size=0.025"
    box = FancyBboxPatch(corner, *size, boxstyle=style, fill=False, edgecolor=colour, linewidth=1.5)
    axes.add_patch(box)
    x, y = corner[0] + size[0] / 2, corner[1] + size[1] / 2
    axes.text(x, y, text, ha="center", va="center", fontsize=9)


def _draw_arrow(
    axes: Any, start: tuple[float, float], end: tuple[float, float], text: str, colour: Any = MUTED
) -> None:
    style = {"arrowstyle": "->", "color": colour, "linewidth": 0.8, "shrinkB": 4}
    axes.annotate("", end, start, arrowprops=style)
    if text:
        axes.text(*start, f"{text} ", ha="right", va="center", style="italic", fontsize=10)


def _draw_axes(axes: Any) -> None:
    style = {"arrowstyle": "->", "color": MUTED, "linewidth": 0.8}
    axes.annotate("", (1.0, 0.04), (0.55, 0.04), arrowprops=style)
    axes.annotate("", (0.55, 0.96), (0.55, 0.04), arrowprops=style)
    axes.text(0.99, -0.02, "loss 1", ha="right", va="top", color=MUTED)
    axes.text(0.56, 0.97, "loss 2", ha="left", va="center", color=MUTED)
