"""Tables of the baselines: what was measured of each method."""

import json
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

from paretocosmos.paper.published import get_paper_row

RESULTS = Path(__file__).resolve().parents[1] / "results"
PROBLEMS = {"adult": "Adult", "compas": "COMPAS", "default_credit": "Default"}
ORDER = ("cosmos", "phn_ls", "phn_epo", "pareto_mtl", "mgda", "single_task", "uniform")


def cell(problem: str, method: str, *, protocol: str = "paper", other: bool = False) -> Any:
    """What five seeds reached; `other` with the published code's settings."""
    (found,) = (
        c
        for c in load("baselines.json")["cells"]
        if (c["problem"], c["method"], c["protocol"]) == (problem, method, protocol)
        and bool(c["settings"]) == other
    )
    return found


def reached(found: Any) -> str:
    """Mean and deviation of what the paper reports of a method: its hypervolume, or its ideal's."""
    numbers = found[counted(found)]
    return f"{numbers['mean']:.3f} ± {numbers['std']:.3f}"


def counted(found: Any) -> str:
    """Which hypervolume counts: of networks for one objective each, that of their ideal point."""
    return "hypervolume_ideal" if found["method"] == "single_task" else "hypervolume"


def baselines_table(protocol: str = "paper") -> Iterator[str]:
    """Hypervolume of every method on the fairness sets, beside the paper's where they compare."""
    yield (
        f"| protocol `{protocol}`: test hypervolume at (2, 2), 5 seeds | "
        + " | ".join(PROBLEMS.values())
        + " |"
    )
    yield "|---" * (len(PROBLEMS) + 1) + "|"
    for name in ORDER:
        texts = []
        for problem in PROBLEMS:
            theirs = get_paper_row(problem, name) if protocol == "paper" else None
            text = reached(cell(problem, name, protocol=protocol))
            texts.append(text if theirs is None else f"{text} (paper {theirs['hypervolume']:.2f})")
        label = "`single_task`, its ideal point" if name == "single_task" else f"`{name}`"
        yield f"| {label} | " + " | ".join(texts) + " |"


def baselines_cost() -> Iterator[str]:
    """Time, weights and width of every method on Adult."""
    yield "| Adult, protocol `paper` | networks | parameters | training, s a seed | span | points dominated |"
    yield "|---|---|---|---|---|---|"
    for name in ORDER:
        found = cell("adult", name)
        dominated = fmean(run["dominated_share"] for run in found["runs"])
        yield (
            f"| `{name}` | {found['networks']} | {found['parameters']:,} | "
            f"{found['seconds_training']:.1f} | {found['span']['mean']:.3f} | {dominated:.0%} |"
        )


def baselines_note() -> Iterator[str]:
    """What is to be known of these numbers."""
    both = [
        f"{PROBLEMS[problem]} {reached(cell(problem, name))} and "
        f"{reached(cell(problem, name, other=True))} (`{name}`)"
        for problem in ("adult", "compas")
        for name in ("phn_ls", "phn_epo")
    ]
    share = max(
        network["infeasible_share"]
        for problem in PROBLEMS
        for run in cell(problem, "phn_epo")["runs"]
        for network in run["networks"]
    )
    yield "PHN with the paper's alpha of 0.2, and with the 0.5 of the published code: " + "; ".join(
        both
    )
    yield f"(with which the published code fails on Default). EPO's programme had no solution in at most {share:.2%} of the steps of a"
    yield "run. The paper's number for Single Task is the hypervolume of its ideal point, the best value of every"
    yield "objective, which no single network may reach. ParetoMTL's networks for a large DEO do not reach their"
    yield "cones on any of the three: no network has a DEO as large as its cross-entropy."
    yield repeated()


def repeated() -> str:
    """What moves when the same seeds are trained with another number of threads."""
    again = [c for c in load("reproduction/table_1.json")["cells"] if c["problem"] in PROBLEMS]
    moved: dict[str, float] = {}
    for one in again:
        before = cell(one["problem"], one["method"], protocol=one["protocol"])
        gap = abs(one["volume"]["mean"] - before[counted(before)]["mean"])
        moved[one["method"]] = max(gap, moved.get(one["method"], 0.0))
    (threads,) = {count for one in again for count in one["made"]["threads"]}
    *others, worst = sorted(moved, key=lambda name: moved[name])
    return (
        f"Trained again with {threads} thread instead of {load('baselines.json')['machine']['threads']} ([Table 1](reproduction.md)), "
        f"which rounds differently, the mean of `{worst}` changes by up to {moved[worst]:.4f}, those of the others by up to "
        f"{max(moved[name] for name in others):.0e}: EPO decides at every step which objective is behind, so rounding can "
        "change its course."
    )


def trainings_table() -> Iterator[str]:
    """A short training of every method on every pair of images."""
    found = load("methods.json")["trainings"]
    problems = list(dict.fromkeys(one["problem"] for one in found))
    epochs = found[0]["epochs"]
    rule = found[0].get("rule", "text")  # there was no other when it was not said
    yield (
        f"| one seed, {epochs} epochs, images of the rule `{rule}`: test hypervolume | "
        + " | ".join(f"`{p}`" for p in problems)
        + " |"
    )
    yield "|---" * (len(problems) + 1) + "|"
    for name in ORDER:
        own = [one for one in found if one["method"] == name]
        key = "hypervolume_ideal" if name == "single_task" else "hypervolume"
        label = "`single_task`, its ideal point" if name == "single_task" else f"`{name}`"
        yield f"| {label} | " + " | ".join(f"{one[key]:.3f}" for one in own) + " |"
    yield ""
    yield "This only shows that all of them train. Schedules made for 100 to 150 epochs are cut short here, so it does not rank the methods."


def load(name: str) -> Any:
    """A JSON file of results/."""
    return json.loads((RESULTS / name).read_text(encoding="utf-8"))
