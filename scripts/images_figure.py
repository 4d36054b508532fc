"""The figure of the image sets: a panel each, five seeds and their mean."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from paretocosmos.plotting._style import DPI, HAIRLINE, INK, MUTED, colours, styled

RESULTS = Path(__file__).resolve().parents[1] / "results"
TITLES = {
    "multi_mnist": "Multi-MNIST",
    "multi_fashion": "Multi-Fashion",
    "fashion_and_mnist": "Fashion+MNIST",
}


def draw_images(path: Path) -> None:
    """Write the figure from results/images.json."""
    cells = json.loads((RESULTS / "images.json").read_text(encoding="utf-8"))["cells"]
    with styled():
        figure = Figure(figsize=(9.6, 3.5), dpi=DPI, layout="constrained")
        for axes, cell in zip(figure.subplots(1, len(cells)), cells, strict=True):
            draw_cell(axes, cell)
        figure.suptitle(
            "One network per seed, 25 trade-offs each; the mean of five seeds in colour, "
            "darker for more weight on the top-left image",
            x=0.01,
            ha="left",
            fontsize=8.5,
            color=MUTED,
        )
        figure.savefig(path, dpi=DPI)


def draw_cell(axes: Any, cell: dict[str, Any]) -> None:
    """One panel: seeds as thin lines, the mean front ray by ray as points."""
    fronts = np.array([run["front"]["values"] for run in cell["runs"]])
    rays = np.array(cell["runs"][0]["front"]["rays"])
    axes.grid(color=HAIRLINE, linewidth=0.4, alpha=0.7)
    axes.tick_params(length=0, pad=5)
    axes.locator_params(nbins=6)
    for front in fronts:
        axes.plot(*front.T, color=MUTED, linewidth=0.7, alpha=0.5, zorder=1)
    mean = fronts.mean(axis=0)
    axes.scatter(*mean.T, c=colours(rays), s=26, zorder=3, linewidths=0)
    reached = cell["hypervolume"]
    axes.set_title(
        f"{TITLES[cell['problem']]}: HV {reached['mean']:.3f} ± {reached['std']:.3f}",
        color=INK,
        fontsize=9,
        loc="left",
    )
    axes.set(xlabel="cross-entropy, top left", ylabel="cross-entropy, bottom right")
