"""The cards of docs/methods.md: from the methods' docstrings, and what was measured of each."""

import inspect
import json
import re
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

from paretocosmos import registry
from paretocosmos.config.settings import describe_pair, get_pairs, get_paper_settings
from paretocosmos.paper.published import get_paper_row

RESULTS = Path(__file__).resolve().parents[1] / "results"
PROBLEMS = {"adult": "Adult", "compas": "COMPAS", "default_credit": "Default"}
ORDER = ("cosmos", "phn_ls", "phn_epo", "pareto_mtl", "mgda", "single_task", "uniform")


def cards() -> str:
    """docs/methods.md."""
    parts = [
        "# Methods",
        "",
        "A method turns rays and losses into weights of the losses; `--method NAME` chooses one, and",
        "`paretocosmos compare PROBLEM --methods A,B` trains several. Written by `make docs` from their",
        "docstrings and from `results/`.",
        "",
        *steps(),
        "",
    ]
    names = [*ORDER, *(name for name in registry.names("methods") if name not in ORDER)]
    for name in names:
        parts += [f"## {name}", "", *card(name), ""]
    return "\n".join(parts)


def card(name: str) -> Iterator[str]:
    """One method, or one of the paper's pairs."""
    if name in get_pairs():
        about = describe_pair(name)
        method, conditioning = get_pairs()[name]
        yield about["summary"]
        yield ""
        yield f"The method `{method}` with the conditioning `{conditioning}`."
        facts = {key: about[key] for key in ("cost", "use", "avoid", "paper")}
        own = get_paper_settings("", name)
        kept = [*settings("methods", method, own), *settings("conditioning", conditioning, own)]
        kept += [f"`learning_rate={own['learning_rate']}`", "no schedule"]
    else:
        text = inspect.getdoc(registry.find("methods", name)) or ""
        summary, formula, body, facts = taken_apart(text)
        yield from (summary, "", "```math", formula, "```")
        wrapped = textwrap.wrap(body, 110, break_long_words=False, break_on_hyphens=False)
        yield from ["", *wrapped] if wrapped else []
        kept = settings("methods", name)
    yield ""
    yield "| | |"
    yield "|---|---|"
    yield f"| cost of a step | {facts['cost']}{measured(name)} |"
    yield f"| use | {facts['use']} |"
    yield f"| avoid | {facts['avoid']} |"
    yield f"| paper | {facts['paper']} |"
    yield f"| settings | {', '.join(kept) or 'none'} |"
    if name not in get_pairs():
        example = (inspect.getdoc(registry.find("methods", name)) or "").partition("\n>>> ")[2]
        yield from ("", "```pycon", f">>> {example.rstrip()}", "```")


def taken_apart(text: str) -> tuple[str, str, str, dict[str, str]]:
    """A method's docstring: summary, formula, the rest, and what is said of cost and use."""
    text = text.partition("\n>>> ")[0].partition("\nArgs:")[0].strip()
    summary, _, rest = text.partition("\n\n")
    formula = re.search(r"\.\. math:: (.+?)\n\n", rest, re.DOTALL)
    assert formula is not None
    rest = " ".join(rest.replace(formula[0], "").split())
    cost = re.search(r"Cost: (.+?)\. (?=Use )", rest)
    use = re.search(r"Use (.+?); avoid (.+?)\.(?= Paper:|$)", rest)
    paper = re.search(r"Paper: (.+)\.$", rest)
    assert cost is not None
    assert use is not None
    assert paper is not None
    for found in (cost, use, paper):
        rest = rest.replace(found[0], "")
    facts = {"cost": cost[1], "use": use[1], "avoid": use[2], "paper": paper[1]}
    return summary, " ".join(formula[1].split()), " ".join(rest.split()), facts


def settings(kind: str, name: str, own: Mapping[str, Any] | None = None) -> list[str]:
    """What can be set, with defaults."""
    every = registry.parameters(registry.find(kind, name)).values()
    return [f"`{one.name}={(own or {}).get(one.name, one.default)}`" for one in every]


def measured(name: str) -> str:
    """How long a step takes beside COSMOS's."""
    steps = load("methods.json")["steps"]
    if name not in steps or name == "cosmos":
        return ""
    own = steps[name]
    networks = f" for all {own['networks']} networks together" if own["networks"] > 1 else ""
    return f"; measured, {own['ratio']:.1f} times the time of COSMOS's{networks}"


def steps() -> Iterator[str]:
    """Time per step of every method."""
    found = load("methods.json")
    yield f"| Multi-MNIST, one {found['machine']['device']} | networks | parameters | step | times COSMOS's |"
    yield "|---|---|---|---|---|"
    for name, one in found["steps"].items():
        yield (
            f"| {name} | {one['networks']} | {one['parameters']:,} | {one['step'] * 1e6:.0f} us | "
            f"{one['ratio']:.2f} |"
        )


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
