"""docs/reproduction.md, a page for each figure in docs/reproduction/, and their pictures.

All are cut from the report that `paretocosmos report` writes of results/reproduction/; what is left
out are tables of every seed and setting, which the JSON files have.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from statistics import fmean, stdev
from typing import Any

from pages.common import RESULTS, ROOT, load_result, write_picture, write_table
from pages.dark import save_dark
from paretocosmos.paper.collect import sort_recipes
from paretocosmos.paper.published import get_published, method_title, problem_title
from paretocosmos.paper.report import (
    Footnotes,
    draw_pictures,
    format_difference,
    format_duration,
    format_printed,
    format_spread,
    list_pictures,
    render_report,
)
from paretocosmos.paper.results import RecipeResult

__all__ = ["REGIONS", "compare_changes", "write_figure_pages"]

FOLDER = ROOT / "docs" / "reproduction"
HARDER = "Here on a harder draw"
# The pages, by their recipes; each figure of the paper has one.
PAGES = {
    "figure_vs_sota": ("Figure 1: COSMOS against other methods", ["figure_vs_sota"]),
    "figure_vs_single_task": ("Figures 2 and 9: COSMOS against single tasks", ["figure_vs_single_task"]),
    "figure_convergence": ("Figure 3: convergence", ["figure_convergence"]),
    "figure_ablation": ("Figures 4 and 10: penalty and alpha", ["figure_ablation", "figure_ablation_text"]),
    "faces": ("Faces, on a part of CelebA", ["celeba_small"]),
    "intuition": ("Figures 7 and 8: fronts known in closed form", ["intuition"]),
    "harder_draw": ("Table 1's pairs of images on a harder draw", ["table_1_text"]),
}  # fmt: skip
# Tables that a page keeps of the report.
KEPT = (
    "Test hypervolume, mean of 5 seeds",
    "Hypervolume, mean misclassification",
    "What was found",
)
Content = Mapping[str, Any]


@cache
def _read_results() -> dict[str, RecipeResult]:
    found = {path.stem: path for path in sorted((RESULTS / "reproduction").glob("*.json"))}
    return {name: RecipeResult.read(found[name]) for name in sort_recipes(list(found))}


@cache
def _render() -> str:
    results = list(_read_results().values())
    pictures = {result.recipe: list_pictures(result) for result in results}
    return render_report(results, pictures, folder=".")


def _cut(text: str, level: int) -> dict[str, str]:
    r"""Cut a text at its headings of a level; what comes before the first has no title.

    >>> _cut("a\n## b\nc\n### d\n", 2)
    {'': 'a', 'b': 'c\n### d'}
    """
    first, *others = re.split(rf"^{'#' * level} (.*)$", text, flags=re.MULTILINE)
    pairs = zip(others[::2], others[1::2], strict=True)
    return {"": first.strip()} | {title: part.strip() for title, part in pairs}


def write_verdict() -> Iterator[str]:
    """Yield how many of the paper's numbers and claims are reproduced."""
    verdict = _cut(_cut(_render(), 2)["The verdict"], 3)
    yield from (verdict[""], "", "### COSMOS", "")
    for line in verdict["The paper's hypervolumes"].splitlines():
        if line.startswith("|"):  # the reasons are under "Deviations"
            yield re.sub(r" \(\d\)", "", line)
    yield from ("", "### The paper's claims", "")
    for line in verdict["The paper's claims"].splitlines():
        if HARDER not in line:
            # the last column names a recipe: the pages of the figures have it, and the widths
            columns = line.strip("|").rpartition("|")[0]
            yield "|" + re.sub(r" \(width [^()]*\)|, paper(?=\))", "", columns) + "|"


def write_table_1() -> Iterator[str]:
    """Yield the hypervolumes of Table 1, then those under the protocol `clean`."""
    result = _read_results()["table_1"]
    tables = _cut(_cut(_render(), 2)[result.title], 3)
    (table,) = (text for title, text in tables.items() if title.endswith("ours (the paper's)") and "hypervolume" in title)  # fmt: skip
    yield from ("Test hypervolume, mean of five seeds, ours (the paper's):", "", table, "")
    clean = {(e.method, e.problem): e for e in result.done if e.protocol == "clean" and e.volume}
    problems = dict.fromkeys(problem for _, problem in clean)
    yield from ("The same under the protocol `clean`:", "")
    yield from write_table(
        ["", *map(problem_title, problems)],
        (
            [
                method_title(method),
                *(format_spread(clean[method, name].volume) for name in problems),
            ]
            for method in dict.fromkeys(method for method, _ in clean)
        ),
    )
    yield from ("", _describe_production("table_1"))


def _describe_production(recipe: str) -> str:
    result = _read_results()[recipe]
    made = {
        key: " and ".join(dict.fromkeys(v for e in result.done for v in e.made[key]))
        for key in ("version", "device", "torch")
    }
    made["device"] = made["device"].replace("cpu", "a CPU")
    return (
        f"*Version {made['version']}, torch {made['torch']}, {made['device']}; {format_duration(result.sum_seconds('training'))} of training: "
        f"[all numbers](../results/reproduction/{recipe}.json).*"
    )


def write_deviations() -> Iterator[str]:
    """Yield the numbers of Table 1 that differ from the paper's, and why."""
    rows, notes = [], Footnotes()
    for e in _read_results()["table_1"].done:
        comparison = e.comparison
        if e.protocol == "paper" and comparison.differs:
            marks = " ".join(f"({notes.mark(reason)})" for reason in comparison.reasons)
            difference = format_difference(comparison.difference("hypervolume"))
            rows.append(
                [problem_title(e.problem), method_title(e.method), format_spread(e.volume), format_printed(comparison.paper), difference, marks or "unknown"]
            )  # fmt: skip
    yield from write_table(["set", "method", "ours", "paper", "difference", "why"], rows)
    for mark, sentence in notes:
        yield from ("", f"({mark}) {sentence}")


def write_changes() -> Iterator[str]:
    """Yield what one change at a time does on pairs of images."""
    table = _read_results()["table_1"].to_dict()
    yield from compare_changes(load_result("image_rules")["trials"], table)


def compare_changes(trials: Sequence[Mapping[str, Any]], table: Content) -> Iterator[str]:
    """Yield what changes do, each compared with the same seeds of Table 1."""
    cells = {(c["problem"], c["method"]): c for c in table["cells"] if not c["settings"]}
    rows = []
    for trial in trials:
        cell = cells[trial["problem"], trial["method"]]
        each = dict(zip(cell["seeds"], cell["volume"]["each"], strict=True))
        usual = [each[seed] for seed in trial["seeds"]]
        gaps = [new - old for new, old in zip(trial["test"], usual, strict=True)]
        error = stdev(gaps) / math.sqrt(len(gaps))
        difference = f"{format_difference(fmean(gaps))} ± {error:.3f}"
        where = f"{problem_title(trial['problem'])}, {method_title(trial['method'])}"
        rows.append([trial["change"], where, f"{fmean(trial['test']):.3f}", difference, len(gaps)])
    yield from write_table(["changed", "where", "reaches", "difference", "seeds"], rows)


def write_figure_pages() -> dict[str, str]:
    """Return the page of each figure, by its path."""
    return {
        f"docs/reproduction/{name}.md": "\n".join(_write_page(title, recipes))
        for name, (title, recipes) in PAGES.items()
    }


def _write_page(title: str, recipes: Sequence[str]) -> Iterator[str]:
    yield f"# {title}"
    sections = _cut(_render(), 2)
    for recipe in recipes:
        result = _read_results()[recipe]
        parts = _cut(sections[result.title], 3)
        opening = parts[""].replace(", rule text", "")
        if recipe.startswith("figure_ablation"):  # the figure shows what the lines by set say
            opening = re.sub(r"^- .*\n\n?", "", opening, flags=re.MULTILINE)
        opening = re.sub(
            r"!\[(.*?)\]\((.*?)\.png\)",
            lambda match: write_picture(match[2].removeprefix("./"), match[1]),
            opening,
        )
        if (
            recipe == "celeba_small"
        ):  # its two-task fronts are nearly points, so their picture shows noise
            opening = re.sub(r"<picture>.*?</picture>\n*", "", opening, count=1)
        if len(recipes) > 1:
            yield from ("", f"## {result.title}")
        yield from ("", f"`paretocosmos reproduce {recipe}`: {opening.partition(': ')[2]}", "")
        for heading, text in parts.items():
            if heading.startswith(KEPT):
                yield from (
                    f"**{heading}**",
                    "",
                    re.split(r"\n- ", text.replace(", rule text", ""))[0].strip(),
                    "",
                )
        if recipe == "table_1_text":
            yield from (_beside_authors(result), "")
        yield _describe_production(recipe).replace("../results", "../../results")
    yield ""


def _beside_authors(result: RecipeResult) -> str:
    cells = {e.problem: e for e in result.done if e.method == "cosmos"}
    reached = " / ".join(f"{e.volume.mean:.3f}" for e in cells.values() if e.volume)
    volumes = get_published()["authors_code"]["cosmos"]
    theirs = " / ".join(f"{volumes[problem]:.3f}" for problem in cells)
    sets = ", ".join(map(problem_title, cells))
    return f"On these images our COSMOS reaches {reached} ({sets}); the authors' code, with seed 1, reaches {theirs}."


def draw_reproduction() -> None:
    """Draw the figures, and each once more for dark pages."""
    for result in _read_results().values():
        draw_pictures(list_pictures(result), FOLDER, ["png"])
    (FOLDER / "celeba_small.png").unlink(missing_ok=True)  # see `_write_page`
    for path in sorted(FOLDER.glob("*.png")):
        if not path.stem.endswith("-dark"):
            save_dark(path)


REGIONS = {
    "verdict": write_verdict,
    "table_1_whole": write_table_1,
    "deviations": write_deviations,
    "changes": write_changes,
}
