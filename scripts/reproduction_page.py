"""docs/reproduction.md and its figures, from what is committed in results/reproduction/."""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from paretocosmos.paper.collect import read_result, sort_recipes
from paretocosmos.paper.published import (
    device_title,
    get_authors_result,
    get_published,
    method_title,
    problem_title,
)
from paretocosmos.paper.recipe import load_recipe, recipe_names
from paretocosmos.paper.report import draw_pictures, list_pictures, render_report
from paretocosmos.paper.results import RecipeResult
from paretocosmos.plotting import save_dark
from pictures import picture

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results" / "reproduction"
FOLDER = "reproduction"
PAIRS = ("multi_mnist", "multi_fashion", "fashion_and_mnist")
Content = Mapping[str, Any]  # what `collect` gave, as JSON

OPENING = """\
## About this page

`paretocosmos reproduce` trains every experiment, `paretocosmos report` collects the numbers in
`results/reproduction/`, and `make docs` writes this page from them: the paper's numbers, ours, the
difference, and a reason if one is known.

A number with ± is a mean and the standard deviation over seeds. Two means differ, or one is ahead
of the other, if they are more than two standard deviations of their difference apart ("deviations"
counts these). Against a number from the paper, half of its last printed digit is added. With five
seeds, up to 2.8 deviations may still be chance. [Open questions](#open-questions) are at the
end."""


def reproduction_page() -> str:
    """The page; the figures are named, not drawn."""
    results = _contents()
    text = render_report(
        results,
        {result.recipe: list_pictures(result) for result in results},
        title="The paper, reproduced",
        opening=OPENING,
        folder=FOLDER,
    )
    text = re.sub(r"!\[(.*?)\]\((.*?)\.png\)", lambda figure: picture(figure[2], figure[1]), text)
    return "\n".join([text, "## Open questions", "", *_open(), ""])


def _open() -> Iterator[str]:
    """What a reader of the tables asks next, as far as committed results answer it."""
    table, ablation, text = (
        read_result(RESULTS / f"{name}.json").to_dict()
        for name in ("table_1", "figure_ablation", "table_1_text")
    )
    trials = json.loads((RESULTS.parent / "image_rules.json").read_text(encoding="utf-8"))["trials"]
    for answer in (left(trials, table), behind(table, ablation), harder_draw(text)):
        yield from (*answer, "") if answer else ()
    yield from (_beside_constants(), "", _not_run())


def _done(name: str) -> list[dict[str, Any]]:
    return [c for c in read_result(RESULTS / f"{name}.json").to_dict()["cells"] if c["seeds"]]


def left(trials: Sequence[Mapping[str, Any]], table: Content) -> list[str]:
    """What one change at a time does on pairs of images, seed by seed beside Table 1."""
    lines = [
        "**What could explain the remaining differences on images?** One change at a time, compared "
        "with the same seeds of Table 1 ([the rule](decisions/image_data.md)):",
        "",
        "| changed | set | method | paper | Table 1, these seeds | changed | difference | seeds |",
        "|---|---|---|---|---|---|---|---|",
    ]
    cells = {(c["problem"], c["method"]): c for c in table["cells"] if not c["settings"]}
    for one in trials:
        cell = cells[one["problem"], one["method"]]
        each = dict(zip(cell["seeds"], cell["volume"]["each"], strict=True))
        usual = [each[seed] for seed in one["seeds"]]
        gaps = [new - old for new, old in zip(one["test"], usual, strict=True)]
        error = stdev(gaps) / math.sqrt(len(gaps))
        difference = f"{fmean(gaps):+.3f} ± {error:.3f}".replace("-", "−")
        lines.append(
            f"| {one['change']} | {problem_title(one['problem'])} | {method_title(one['method'])} "
            f"| {cell['against']['hypervolume']['paper']:.2f} | {fmean(usual):.3f} "
            f"| {fmean(one['test']):.3f} | {difference} | {len(gaps)} |"
        )
    return lines


def behind(table: Content, ablation: Content) -> list[str]:
    """On which pairs of images a front is ahead of COSMOS, and what its best setting does there."""
    where = _outperformed(table)
    if not where:
        return []
    lines = [
        f"**Why is COSMOS behind on {_listed(where)}?** Its best result with another penalty or "
        "alpha, compared with the best baseline:",
        *("", "| set | COSMOS, best setting of the ablation | best baseline |", "|---|---|---|"),
    ]
    for problem in where:
        own = [c["volume"]["mean"] for c in _trained(ablation, problem)]
        fronts = [c for c in _trained(table, problem) if c["volume_of"] == "front"]
        rivals = [(c["volume"]["mean"], c["method"]) for c in fronts if c["method"] != "cosmos"]
        best, method = max(rivals)
        title = problem_title(problem)
        lines.append(
            f"| {title} | {max(own):.3f} of {len(own)} | {best:.3f}, {method_title(method)} |"
        )
    return lines


def harder_draw(text: Content) -> list[str]:
    """What the authors' own code reaches where COSMOS is behind on the harder draw."""
    where = _outperformed(text)
    if not where:
        return []
    ours = [
        c["volume"]["mean"] for p in where for c in _trained(text, p) if c["method"] == "cosmos"
    ]
    numbers, theirs = (
        " / ".join(f"{one:.3f}" for one in found)
        for found in (ours, map(get_authors_result, where))
    )
    return [
        f"**And on the harder draw?** There a baseline is ahead on {_listed(where)}. Our COSMOS "
        f"reaches {numbers}; the authors' code, with seed 1, reaches {theirs}."
    ]


def _outperformed(content: Content) -> list[str]:
    """The pairs of images on which a front is ahead of COSMOS beyond the noise."""
    rows = [row for claim in content["claims"] for row in claim["rows"]]
    lost = {r["problem"] for r in rows if r["verdict"] == "ahead" and r["method"] != "single_task"}
    return [problem for problem in PAIRS if problem in lost]


def _trained(content: Content, problem: str) -> list[dict[str, Any]]:
    return [c for c in content["cells"] if c["seeds"] and c["problem"] == problem]


def _beside_constants() -> str:
    constants = {
        (cell["problem"], task): one["misclassification"]
        for cell in json.loads((RESULTS.parent / "celeba.json").read_text())["cells"]
        for task, one in cell["tasks"]["constant"].items()
    }
    rates = {
        (cell["problem"], task): one["mean"]
        for cell in _done("celeba_small")
        if cell["method"] == "cosmos"
        for task, one in cell["tasks"]["misclassification"].items()
    }
    above = sum(rate >= constants[at] for at, rate in rates.items())
    hard = [at for at in rates if at[0] == "celeba_hard"]
    ours, plain = (100 * fmean(of[at] for at in hard) for of in (rates, constants))
    return (
        "**Are faces classified better than by a constant?** Many attributes are rare, so a constant "
        "prediction is rarely wrong: COSMOS with equal weights does no better on "
        f"{above} of its {len(rates)} tasks (on the hard pair {ours:.2f}% against {plain:.2f}%). "
        "[The results](results.md#faces-and-a-deep-network) also have cross-entropies and areas "
        "under the curve, which show what was learned, single tasks on the easy pair, and the "
        "effect of fewer rays per batch or a larger penalty."
    )


def _not_run() -> str:
    names = [n for n in sort_recipes(recipe_names()) if not (RESULTS / f"{n}.json").exists()]
    faces = ", ".join(
        f"`{n}`" for n in names if load_recipe(n).experiments[0].problem.startswith("celeba")
    )
    return (
        f"**Not run:** {faces}, because they need all of CelebA and ImageNet weights; "
        "`celeba_small` takes their place."
    )


def reproduction_short() -> Iterator[str]:
    """For the page of results: how much of Table 1 there is, what it took, and what became of the claim."""
    content = read_result(RESULTS / "table_1.json").to_dict()
    cells = content["cells"]
    done = [cell for cell in cells if cell["seeds"]]
    printed = [cell for cell in done if cell["protocol"] == "paper"]
    runs, missing = (sum(len(cell[key]) for cell in cells) for key in ("seeds", "missing"))
    theirs = sum(c["against"]["seconds"]["paper"] * len(c["seeds"]) for c in printed)
    devices = dict.fromkeys(device_title(name) for c in done for name in c["made"]["device"])
    images, fair = (
        [c["against"]["hypervolume"]["differs"] for c in printed if (c["problem"] in PAIRS) is so]
        for so in (True, False)
    )
    claim = content["claims"][0]
    lost = {row["problem"] for row in claim["rows"] if row["verdict"] == "ahead"}
    sets = dict.fromkeys(row["problem"] for row in claim["rows"])
    held, not_held = ([p for p in sets if (p in lost) == so] for so in (False, True))
    outcome = {
        True: "holds on every set",
        False: f"holds on {_listed(held)}, not on {_listed(not_held)}",
        None: "is open",
    }[claim["holds"]]
    yield (
        f"Table 1, {runs}{f' of {runs + missing}' if missing else ''} trainings: "
        f"{content['seconds']['training'] / 60:.0f} minutes of training on "
        f"{' and '.join(devices)}. The paper's times for the same trainings, without `clean`, add up "
        f"to {theirs / 3600:.0f} hours on {get_published()['table_1']['hardware']}. "
        f"{fair.count(False)} of {len(fair)} hypervolumes on the fairness sets and "
        f"{images.count(False)} of {len(images)} on pairs of images equal the published ones "
        "within the noise. "
        f"The paper's claim that no baseline outperforms COSMOS {outcome}: "
        "[details](reproduction.md), [how to reproduce it](howto/reproduce.md)."
    )


def _listed(problems: Sequence[str]) -> str:
    """Their titles, in words.

    >>> _listed(["adult", "compas", "multi_mnist"]), _listed([])
    ('Adult, COMPAS and Multi-MNIST', 'none')
    """
    *most, last = [problem_title(problem) for problem in problems] or ["none"]
    return f"{', '.join(most)} and {last}" if most else last


def draw_reproduction() -> None:
    """The figures of the page, and each once more for dark pages."""
    folder = ROOT / "docs" / FOLDER
    folder.mkdir(exist_ok=True)
    for result in _contents():
        draw_pictures(list_pictures(result), folder, ["png"])
    for path in sorted(folder.glob("*.png")):
        if not path.stem.endswith("-dark"):
            save_dark(path)


def _contents() -> list[RecipeResult]:
    there = {path.stem: path for path in sorted(RESULTS.glob("*.json"))}
    return [read_result(there[name]) for name in sort_recipes(list(there))]
