"""What `docs/results.md` and the README say of fronts by default: from `results/fronts.json`."""

import json
from pathlib import Path
from statistics import fmean
from typing import Any

__all__ = ["fronts_short", "fronts_table", "study_table"]

RESULTS = Path(__file__).parents[1] / "results"
ARMS = {
    "separate": "nine separate networks",
    "default": "one network, nothing set",
    "paper": "one network, the paper's recipe",
}
GOALS = {"published": "both tasks", "text": "both tasks, a harder draw"}
METHODS = {
    "linear": "the default",
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
    for (problem, set_up), arms in _grouped().items():
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
    rows = ["| Multi-Fashion, default preset | hypervolume | beside the default |", "|---|---|---|"]
    for cell in cells:
        told = ", ".join(f"`{key}={value}`" for key, value in cell["settings"].items())
        name = f"the default with {told}" if told else METHODS.get(cell["method"], cell["method"])
        volume = cell["hypervolume"]
        rows.append(f"| {name} | {volume:.3f} | {volume - whole:+.3f} |")
    return rows


def fronts_short() -> list[str]:
    """Two sentences on what a user gets, with the order and the height."""
    images = [arms for (_, set_up), arms in _grouped().items() if set_up == "published"]
    order = fmean(run["monotonicity"] for arms in images for run in arms["default"])
    paper = fmean(run["monotonicity"] for arms in images for run in arms["paper"])
    ahead = fmean(
        _mean(arms["default"], "hypervolume") - _mean(arms["separate"], "hypervolume")
        for arms in images
    )
    ours, theirs = (
        _mean(_grouped()["adult", "demographic_parity"][arm], "monotonicity")
        for arm in ("default", "paper")
    )
    return [
        "With nothing set, more weight on a goal gives less loss on it: on pairs of images the rank correlation of",
        f"weight and minus loss is {order:.2f} on test ({paper:.2f} by the paper's recipe), on Adult with the gap of selection",
        f"rates {ours:.2f} ({theirs:.2f}). The one network's hypervolume is {ahead:+.3f} beside that of nine separate",
        f"networks trained alike. The order is weakest on {_weakest()} ([every number](docs/results.md#fronts-by-default)).",
    ]


def _weakest() -> str:
    """Where the order is lowest, and what it is there."""
    orders = {key: _mean(arms["default"], "monotonicity") for key, arms in _grouped().items()}
    problem, set_up = min(orders, key=lambda key: orders[key])
    return f"{PROBLEMS[problem]} with `{set_up}`, {orders[problem, set_up]:.2f}"


def _mean(runs: list[dict[str, Any]], name: str) -> float:
    return fmean(run[name] for run in runs)


def _grouped() -> dict[tuple[str, str], dict[str, list[dict[str, Any]]]]:
    """Runs by problem and set-up, then by arm."""
    found: dict[tuple[str, str], dict[str, list[dict[str, Any]]]] = {}
    for part in json.loads((RESULTS / "fronts.json").read_text())["parts"]:
        for row in part["fronts"]:
            arms = found.setdefault((row["problem"], row["set_up"]), {})
            arms.setdefault(row["arm"], []).append(row)
    return found
