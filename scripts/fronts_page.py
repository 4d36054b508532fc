"""What `docs/results.md` and the README say of fronts by default: from `results/fronts.json`."""

import json
from pathlib import Path
from statistics import fmean
from typing import Any

__all__ = ["PROBLEMS", "fronts_table", "grouped", "mean_of", "study_table"]

RESULTS = Path(__file__).parents[1] / "results"
ARMS = {
    "separate": "nine separate networks",
    "default": "one network, default preset of version 0.2",
    "paper": "one network, the paper's recipe",
}
GOALS = {"published": "both tasks", "text": "both tasks, a harder draw"}
METHODS = {
    "linear": "the default of version 0.2, the weighted sum",
    "separate": "method `separate`: a network for each of nine rays",
    "cosmos": "method `cosmos`",
    "smooth_tchebycheff": "method `smooth_tchebycheff`",
    "phn_ls": "method `phn_ls`",
    "single_task": "method `single_task`: the ideal point of two networks",
}
PROBLEMS = {
    "adult": "Adult",
    "compas": "COMPAS",
    "default_credit": "Default",
    "multi_mnist": "Multi-MNIST",
    "multi_fashion": "Multi-Fashion",
    "fashion_and_mnist": "Fashion+MNIST",
}


def fronts_table() -> list[str]:
    """A row for every problem and arm: means over seeds, on test."""
    rows = [
        "| data | goals | trained | order | dominated | utility | hypervolume |",
        "|---|---|---|---|---|---|---|",
    ]
    for (problem, set_up), arms in grouped().items():
        goals = GOALS.get(set_up, f"cross-entropy, {set_up}")
        for arm, title in ARMS.items():
            runs = arms.get(arm, [])
            if not runs:
                continue
            means = {
                name: fmean(run[name] for run in runs)
                for name in ("monotonicity", "dominated_share", "expected_utility", "hypervolume")
            }
            rows.append(
                f"| {PROBLEMS[problem]} | {goals} | {title} | {means['monotonicity']:.2f} | "
                f"{means['dominated_share']:.0%} | {means['expected_utility']:.4f} | "
                f"{means['hypervolume']:.3f} |"
            )
    return rows


def study_table() -> list[str]:
    """What each ingredient is worth on Multi-Fashion, from `results/study_fronts.json`."""
    cells = json.loads((RESULTS / "study_fronts.json").read_text())["cells"]
    (whole,) = (c["hypervolume"] for c in cells if c["method"] == "linear" and not c["settings"])
    rows = ["| Multi-Fashion, default preset | hypervolume | difference |", "|---|---|---|"]
    for cell in cells:
        told = ", ".join(f"`{key}={value}`" for key, value in cell["settings"].items())
        name = f"the default with {told}" if told else METHODS.get(cell["method"], cell["method"])
        volume = cell["hypervolume"]
        rows.append(f"| {name} | {volume:.3f} | {volume - whole:+.3f} |")
    return rows


def mean_of(runs: list[dict[str, Any]], name: str) -> float:
    """The mean over runs of one number."""
    return fmean(run[name] for run in runs)


def grouped() -> dict[tuple[str, str], dict[str, list[dict[str, Any]]]]:
    """Runs by problem and set-up, then by arm."""
    found: dict[tuple[str, str], dict[str, list[dict[str, Any]]]] = {}
    for part in json.loads((RESULTS / "fronts.json").read_text())["parts"]:
        for row in part["fronts"]:
            arms = found.setdefault((row["problem"], row["set_up"]), {})
            arms.setdefault(row["arm"], []).append(row)
    return found
