"""COSMOS on pairs of images for README and docs/results.md, from results/reproduction/."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from paretocosmos.paper.collect import read_result
from paretocosmos.paper.published import (
    device_title,
    get_authors_result,
    get_paper_row,
    problem_title,
)
from paretocosmos.plotting.style import DPI, HAIRLINE, INK, MUTED, ray_colours, use_style

RESULTS = Path(__file__).resolve().parents[1] / "results"
PAIRS = ("multi_mnist", "multi_fashion", "fashion_and_mnist")
Experiment = dict[str, Any]


def cosmos_on_images(recipe: str) -> list[Experiment]:
    """The cells of COSMOS in a table, in the order of the paper's."""
    cells = read_result(RESULTS / "reproduction" / f"{recipe}.json").to_dict()["cells"]
    found = {c["problem"]: c for c in cells if c["method"] == "cosmos"}
    return [found[problem] for problem in PAIRS]


def images_table() -> Iterator[str]:
    """Hypervolume of five seeds on the image sets, on both draws."""
    published, text = (cosmos_on_images(name) for name in ("table_1", "table_1_text"))
    seeds = len(published[0]["seeds"])
    titles = " | ".join(map(problem_title, PAIRS))
    yield f"| test hypervolume at (2, 2), {seeds} seeds | {titles} |"
    yield "|---|---|---|---|"
    for label, found in (
        ("paretocosmos, images by the published rule", _volumes(published)),
        ("the paper", [f"{(get_paper_row(p, 'cosmos') or {})['hypervolume']:.2f}" for p in PAIRS]),
        ('paretocosmos, a harder draw (`rule="text"`)', _volumes(text)),
        (
            "the authors' code on the harder draw, seed 1",
            [f"{get_authors_result(p):.3f}" for p in PAIRS],
        ),
    ):
        yield f"| {label} | {' | '.join(found)} |"


def _volumes(cells: list[Experiment]) -> list[str]:
    return [f"{c['volume']['mean']:.3f} ± {c['volume']['std']:.3f}" for c in cells]


def images_note() -> Iterator[str]:
    """How they were trained, what a preference means there, and what half precision changes."""
    cells = cosmos_on_images("table_1")
    first, made = cells[0], cells[0]["made"]
    seconds, preparing, evaluating = (
        " / ".join(f"{cell['seconds'][f'all_{part}']:.0f}" for cell in cells)
        for part in ("training", "preparing", "evaluating")
    )
    turned = " / ".join(f"{cell['metrics']['monotonicity']['mean']:.2f}" for cell in cells)
    yield (
        f"The paper's settings, {first['epochs']} epochs, {first['parameters']:,} parameters, "
        f"{made['seeds_together'][0]} seeds together on one {device_title(made['device'][0])}: "
        f"{seconds} s of training for all seeds of a set (engine {made['engine'][0]}, {preparing} "
        f"s to compile and capture it, {evaluating} s to validate every five epochs on 25 rays). "
        "Scores are means over batches of 256, as published."
    )
    yield ""
    yield (
        f"Monotonicity is {turned}: negative values mean that more weight on a task *raises* "
        "its loss, because the cosine term dominates "
        "([why](concepts.md#what-a-preference-means))."
    )
    yield ""
    kept = json.loads((RESULTS / "precision.json").read_text(encoding="utf-8"))
    full, half = kept["cells"]
    yield (
        "Half precision, on the harder draw: Multi-MNIST reaches "
        f"{half['hypervolume']['mean']:.3f} ± {half['hypervolume']['std']:.3f} in bf16 "
        f"({half['seconds_training']:.0f} s for five seeds) and {full['hypervolume']['mean']:.3f} "
        f"± {full['hypervolume']['std']:.3f} in tf32 ({full['seconds_training']:.0f} s) in one "
        "session, both with the first layer initialised for the image alone. bf16 is slower "
        "because the fused kernels exist only in float32."
    )


def fingerprint() -> Iterator[str]:
    """Networks that were trained on the lost files, on images by several rules."""
    found = json.loads((RESULTS / "fingerprint.json").read_text(encoding="utf-8"))
    yield (
        "The published files are lost. Others published networks trained on them, with "
        f"their test losses ({found['networks']}). These networks can identify the images "
        "(`benchmarks/fingerprint.py`, [why](decisions/image_data.md)). "
        "Cross-entropy and accuracy of the bottom-right image:"
    )
    yield ""
    yield "| network for | published | rule `published` | rule `text` | divided by 255 |"
    yield "|---|---|---|---|---|"
    first, second, *_ = found["together"]
    for problem, one in found["sets"].items():
        (ours,) = [rule["found"] for rule in one["rules"] if _is(rule, first, problem)]
        others = (one["others"][name]["found"] for name in ("text", "pixels 0..1"))
        told = (f"{x[1]:.3f}, {x[3]:.1%}" for x in (one["published"], ours, *others))
        yield f"| {problem_title(problem)} | {' | '.join(told)} |"
    yield ""
    low, high = first["bottom_right"]
    yield (
        f"Of all rules with shifts along the diagonal, the one used here (d in 0..4, e in {low}..{high}"
        f", different classes) fits the three networks best: χ² is {first['chi_square']:.1f} for "
        f"{first['of']} numbers, of which two per network come from a head that was never trained. "
        f"The next rule has {second['chi_square']:.1f}: the same places, with any two classes. "
        f"{_wider(found)}"
    )


def _wider(found: dict[str, Any]) -> str:
    """How well e in 5..8 fits each file by itself, where that is among its best rules."""
    wide = {"top_left": [0, 4], "bottom_right": [5, 8], "classes": "different"}
    told = []
    for problem, one in found["sets"].items():
        both = [
            [rule["chi_square"] for rule in one["rules"] if _is(rule, of, problem)]
            for of in (wide, found["together"][0])
        ]
        if all(both):
            (new,), (taken,) = both
            told.append(f"{problem_title(problem)} {new:.1f} instead of {taken:.1f}")
    return (
        f"With e in 5..8, some files fit better on their own: {', '.join(told)}. For the others this "
        "rule fits badly."
    )


def _is(rule: dict[str, Any], best: dict[str, Any], problem: str) -> bool:
    """Whether it is the best rule; a digit and a garment may be of the same class."""
    classes = "free" if problem == "fashion_and_mnist" else best["classes"]
    places = all(rule[key] == best[key] for key in ("top_left", "bottom_right"))
    return places and rule["classes"] == classes


def images_seeds() -> Iterator[str]:
    """Every seed of the image sets."""
    yield "| problem | rule | seed | HV | span | dominated | monotonicity | epoch |"
    yield "|---|---|---|---|---|---|---|---|"
    for recipe, rule in (("table_1", "published"), ("table_1_text", "text")):
        for cell in cosmos_on_images(recipe):
            each = {key: found["each"] for key, found in cell["metrics"].items()}
            for at, seed in enumerate(cell["seeds"]):
                yield (
                    f"| {cell['problem']} | {rule} | {seed} | {each['hypervolume'][at]:.4f} "
                    f"| {each['span'][at]:.3f} | {each['dominated_share'][at]:.0%} "
                    f"| {each['monotonicity'][at]:.2f} | {cell['epochs_selected'][at]} |"
                )


def draw_images(path: Path) -> None:
    """Write the figure: a panel per set, the mean front in colour and that of the harder draw."""
    published, text = (cosmos_on_images(name) for name in ("table_1", "table_1_text"))
    with use_style():
        figure = Figure(figsize=(9.6, 3.5), dpi=DPI, layout="constrained")
        axes = figure.subplots(1, len(PAIRS))
        for one, cell, harder in zip(axes, published, text, strict=True):
            draw_cell(one, cell, harder)
        figure.suptitle(
            f"25 trade-offs of one network, mean of {len(published[0]['seeds'])} seeds, darker for "
            "more weight on the top-left image; grey: the harder draw",
            x=0.01,
            ha="left",
            fontsize=8.5,
            color=MUTED,
        )
        figure.savefig(path, dpi=DPI)


def draw_cell(axes: Any, cell: Experiment, harder: Experiment) -> None:
    """One panel: both mean fronts ray by ray."""
    axes.grid(color=HAIRLINE, linewidth=0.4, alpha=0.7)
    axes.tick_params(length=0, pad=5)
    axes.locator_params(nbins=6)
    axes.scatter(*np.array(harder["front"]).T, color=MUTED, s=9, alpha=0.6, zorder=2, linewidths=0)
    values, rays = np.array(cell["front"]), np.array(cell["rays"])
    axes.scatter(*values.T, c=ray_colours(rays), s=26, zorder=3, linewidths=0)
    (reached,) = _volumes([cell])
    title = f"{problem_title(cell['problem'])}: HV {reached}"
    axes.set_title(title, color=INK, fontsize=9, loc="left")
    axes.set(xlabel="cross-entropy, top left", ylabel="cross-entropy, bottom right")
