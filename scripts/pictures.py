"""Pictures of the README and the site: what a trade-off does to people, and the idea."""

import json
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from paretocosmos import Front
from paretocosmos.plotting.style import ANCHORS, DPI, HAIRLINE, INK, MUTED, ray_colours, use_style

__all__ = ["draw_consequences", "draw_idea", "picture"]

RESULTS = Path(__file__).resolve().parents[1] / "results"
MEN, WOMEN = ANCHORS[0], ANCHORS[1]


def picture(name: str, alt: str) -> str:
    """A picture of docs/, the dark one for dark pages."""
    alt = escape(alt)
    dark = f'<source media="(prefers-color-scheme: dark)" srcset="{name}-dark.png">'
    return f'<picture>{dark}<img src="{name}.png" alt="{alt}"></picture>'


def draw_consequences(path: Path) -> None:
    """Who is predicted a yes, and how many predictions are wrong, by the weight on fairness."""
    front = Front.from_dict(json.loads((RESULTS / "demo" / "front.json").read_text()))
    weight = np.asarray(front.rays)[:, 1]
    wrong = 100 * np.asarray(front.metrics["misclassification"])
    with use_style():
        figure = Figure(figsize=(9.6, 3.5), dpi=DPI, layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=(1.35, 1))
        shares = {}
        for name, label, colour in (("Male", "men", MEN), ("Female", "women", WOMEN)):
            share = shares[label] = 100 * np.asarray(front.metrics[f"selection_rate_{name}"])
            _line(left, weight, share, colour, f"of 100 {label}", below=label == "women")
        left.fill_between(weight, shares["men"], shares["women"], color=HAIRLINE, alpha=0.5)
        left.set_title("Predicted to earn over 50,000 dollars", loc="left", color=INK, fontsize=9.5)
        _line(right, weight, wrong, ANCHORS[2], "of 100 people")
        right.set_title("Wrong predictions", loc="left", color=INK, fontsize=9.5)
        for axes in (left, right):
            axes.set_ylim(0, 30)
            axes.set_xlim(-0.02, 1.1)
            axes.set_xlabel("weight on fairness")
            axes.grid(color=HAIRLINE, linewidth=0.4, alpha=0.7)
            axes.tick_params(length=0, pad=5)
        figure.savefig(path, dpi=DPI)


def _line(axes: Any, x: Any, y: Any, colour: str, label: str, *, below: bool = False) -> None:
    """A line with its name and first value at its start, and the last value at its end."""
    axes.plot(x, y, color=colour, linewidth=1.8, marker="o", markersize=3.5)
    beside, after = ((2, -17), (7, -7)) if below else ((2, 9), (7, 1))
    style = {"textcoords": "offset points", "color": colour, "fontweight": "bold"}
    axes.annotate(f"{y[0]:.0f} {label}", (x[0], y[0]), beside, **style)
    axes.annotate(f"{y[-1]:.0f}", (x[-1], y[-1]), after, **style)


def draw_idea(path: Path) -> None:
    """A training for every trade-off, beside one network that takes the trade-off as an input."""
    with use_style():
        figure = Figure(figsize=(9.6, 3.7), dpi=DPI, layout="constrained")
        left, right = figure.subplots(1, 2)
        rays = np.stack([np.linspace(0.9, 0.1, 5), np.linspace(0.1, 0.9, 5)], axis=1)
        left.set_title("a training for every trade-off", loc="left", color=INK, fontsize=9.5)
        for at, (ray, colour) in enumerate(zip(rays, ray_colours(rays), strict=True)):
            height = 0.86 - 0.18 * at
            _box(left, (0.12, height - 0.055), (0.3, 0.11), "network", colour)
            _arrow(left, (0.02, height), (0.115, height), "x" if at == 2 else "")
            _arrow(left, (0.425, height), _on_front(ray), "")
            left.scatter(*_on_front(ray), color=[colour], s=42, zorder=3)
        right.set_title(
            "one network, the trade-off is an input", loc="left", color=INK, fontsize=9.5
        )
        _box(right, (0.12, 0.36), (0.3, 0.28), "one network", INK)
        _arrow(right, (0.02, 0.56), (0.115, 0.56), "x")
        _arrow(right, (0.02, 0.44), (0.115, 0.44), "r")
        many = np.stack([np.linspace(0.97, 0.03, 25), np.linspace(0.03, 0.97, 25)], axis=1)
        _arrow(right, (0.425, 0.5), _on_front(many[12]), "")
        right.scatter(
            *np.array([_on_front(ray) for ray in many]).T, c=ray_colours(many), s=30, zorder=3
        )
        for axes in (left, right):
            axes.set(xlim=(0, 1), ylim=(-0.06, 1), xticks=[], yticks=[])
            axes.spines[["left", "bottom"]].set_visible(False)
            _frame(axes)
        figure.savefig(path, dpi=DPI)


def _on_front(ray: Any) -> tuple[float, float]:
    """A place on the drawn front: L₁ = (1 - s)², L₂ = s², as in `toy_convex`."""
    return 0.58 + 0.38 * (1 - ray[0]) ** 2, 0.1 + 0.78 * (1 - ray[1]) ** 2


def _box(
    axes: Any, corner: tuple[float, float], size: tuple[float, float], text: str, colour: Any
) -> None:
    axes.add_patch(
        FancyBboxPatch(
            corner,
            *size,
            boxstyle="round,pad=0,rounding_size=0.025",
            fill=False,
            edgecolor=colour,
            linewidth=1.5,
        )
    )
    x, y = corner[0] + size[0] / 2, corner[1] + size[1] / 2
    axes.text(x, y, text, ha="center", va="center", fontsize=9)


def _arrow(axes: Any, start: tuple[float, float], end: tuple[float, float], text: str) -> None:
    style = {"arrowstyle": "->", "color": MUTED, "linewidth": 0.8, "shrinkB": 4}
    axes.annotate("", end, start, arrowprops=style)
    if text:
        axes.text(
            start[0] - 0.005, start[1], text, ha="right", va="center", style="italic", fontsize=10
        )


def _frame(axes: Any) -> None:
    """The axes of the drawn front."""
    style = {"arrowstyle": "->", "color": MUTED, "linewidth": 0.8}
    axes.annotate("", (1.0, 0.04), (0.55, 0.04), arrowprops=style)
    axes.annotate("", (0.55, 0.96), (0.55, 0.04), arrowprops=style)
    axes.text(0.99, -0.02, "loss 1", ha="right", va="top", color=MUTED)
    axes.text(0.56, 0.97, "loss 2", ha="left", va="center", color=MUTED)
