"""Reports made of run folders by hand, read back from their Markdown."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from matplotlib.figure import Figure
from tests.paper.hand_made import write_recipe

from paretocosmos.paper.collect import collect_results
from paretocosmos.paper.recipe import Experiment, Recipe, load_recipe
from paretocosmos.paper.report import list_pictures, render_report
from paretocosmos.paper.results import RecipeResult


@dataclass
class Table:
    """A table of a report; `strong` are the rows and columns in bold."""

    title: str
    head: tuple[str, ...] = ()
    rows: list[tuple[str, ...]] = field(default_factory=list)
    strong: set[tuple[int, int]] = field(default_factory=set)
    notes: dict[str, str] = field(default_factory=dict)


@dataclass
class Section:
    """A section of a report: its tables, the items of its list, and all its lines."""

    title: str
    tables: list[Table] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    captions: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)


def collect_recipe(name: str, out: Path, epochs: int | None = None) -> RecipeResult:
    """Write two seeds of a recipe of this package and collect them."""
    recipe = load_recipe(name).rehearsal(epochs)
    write_recipe(recipe, out, seeds=recipe.experiments[0].seeds[:2])
    return collect_results(recipe, out)


def collect_experiments(
    shows: str, experiments: Sequence[Experiment], out: Path, name: str = "mine"
) -> RecipeResult:
    """Write all seeds of experiments and collect them as a recipe of one's own."""
    recipe = Recipe(name, "Mine", "nowhere", shows, tuple(experiments))
    write_recipe(recipe, out)
    return collect_results(recipe, out)


def draw_only_picture(result: RecipeResult) -> Figure:
    (picture,) = list_pictures(result)
    return picture.draw()


def read_report(*results: RecipeResult) -> list[Section]:
    """Return the sections of a report, the verdict first if there is one."""
    pictures = {result.recipe: list_pictures(result) for result in results}
    return parse_markdown(render_report(results, pictures))


def read_tables(result: RecipeResult) -> list[Table]:
    """Return the tables of the section on a recipe."""
    return read_report(result)[-1].tables


def parse_markdown(text: str) -> list[Section]:
    """Return the sections of a report in Markdown."""
    sections: list[Section] = []
    for line in text.splitlines():
        if line.startswith("## "):
            sections.append(Section(unescape(line[3:])))
        elif not sections:
            continue
        elif line.startswith("### "):
            sections[-1].tables.append(Table(unescape(line[4:])))
        elif line.startswith("|---"):
            continue
        elif line.startswith("|"):
            _add_row(sections[-1].tables[-1], re.split(r"(?<!\\)\|", line)[1:-1])
        elif line.startswith("- "):
            sections[-1].notes.append(unescape(line[2:]))
        elif match := re.match(r"!\[(.*)\]\(", line):
            sections[-1].captions.append(unescape(match[1]))
        elif match := re.match(r"\((\d+|bold|\\\*)\) (.*)", line):
            sections[-1].tables[-1].notes[unescape(match[1])] = unescape(match[2])
        sections[-1].lines.append(unescape(line))
    return sections


def _add_row(table: Table, cells: Sequence[str]) -> None:
    texts = [cell.strip() for cell in cells]
    row = len(table.rows)
    table.strong |= {(row, n) for n, text in enumerate(texts) if text.startswith("**")}
    parsed = tuple(unescape(text.removeprefix("**").removesuffix("**")) for text in texts)
    if not table.head:
        table.head = parsed
    else:
        table.rows.append(parsed)


def unescape(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)
