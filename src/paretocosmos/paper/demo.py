"""The demonstration: COSMOS as published on the three fairness sets, then the default on Adult.

Its trainings are experiments of a recipe, so `reproduce` trains them and keeps what is done. The
default is the network that comes with the package.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from paretocosmos.errors import MissingExtraError
from paretocosmos.explorer import build_page_model, write_report
from paretocosmos.io.files import write_bytes
from paretocosmos.paper.recipe import Recipe, load_recipe
from paretocosmos.paper.report import list_pictures
from paretocosmos.paper.report.formatting import format_duration, format_printed
from paretocosmos.paper.report.page import render_page, render_template
from paretocosmos.paper.report.tables import Footnotes, explain_difference
from paretocosmos.paper.results import RecipeResult, title_benchmark
from paretocosmos.plotting import front_figure, save_figure
from paretocosmos.runs.run import Run

# `Recipe.only` takes names of problems, methods and protocols together.
PUBLISHED = ("adult", "compas", "default_credit", "cosmos", "paper")
DIFFERENCE = (
    "The default on such tables is not COSMOS: one network learns the label and the group, and a "
    "formula shifts its predictions, so that half of the weight closes half of the gap, which is "
    "too noisy a loss to train on. This one comes with the package; `paretocosmos train adult` "
    "trains it."
)
# Two pages: the explorer of the default has a script, which the report's policy forbids.
PAGE, SLIDER, PICTURES = "demo.html", "slider.html", "pictures"


class ComparisonTable(NamedTuple):
    """Our hypervolumes beside the paper's, as text for a terminal and for a page."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Footnotes


def load_demo_recipe() -> Recipe:
    """Return what the recipe of Table 1 has of COSMOS on the fairness sets, with one seed.

    >>> [experiment.name for experiment in load_demo_recipe().experiments]
    ['adult-paper/cosmos', 'compas-paper/cosmos', 'default_credit-paper/cosmos']
    """
    # one seed of each takes a minute; the five of the paper would take five
    table = load_recipe("table_1").with_seeds([1])
    return replace(
        table, name="demo", title="COSMOS as published", experiments=table.only(PUBLISHED)
    )


def build_comparison_table(result: RecipeResult, seconds: Mapping[str, float]) -> ComparisonTable:
    """Build a table of our hypervolumes, the paper's and the time, a row for each set.

    Args:
        result: what `collect_results` returned for `load_demo_recipe`.
        seconds: what each experiment took, by its name.
    """
    # the same reason may hold for two sets, and is printed once
    notes = Footnotes()
    rows = []
    for experiment in result.done:
        marks = "".join(f" ({notes.mark(reason)})" for reason in explain_difference(experiment))
        rows.append(
            (
                title_benchmark(experiment.benchmark),
                f"{experiment.volume.mean:.3f}{marks}",
                format_printed(experiment.comparison.paper, deviation=True),
                # to tenths: the time of one short training is not known to hundredths
                format_duration(round(seconds[experiment.name], 1)),
            )
        )
    head = ("set", "ours", "the paper's", "time")
    title = "Hypervolume on test: one seed of ours, the mean of the paper's five"
    return ComparisonTable(title, head, rows, notes)


def write_demo(
    out: Path,
    result: RecipeResult,
    table: ComparisonTable,
    run: Run,
    heading: str,
    consequences: Sequence[tuple[str, str, str]],
) -> list[str]:
    """Write one page with both parts, and beside it the default's page with a slider.

    Args:
        out: the folder of the demonstration.
        result: what `collect_results` returned for `load_demo_recipe`.
        table: what `build_comparison_table` returned.
        run: the default's.
        heading: what stands above its consequences.
        consequences: what the default trades: a label, the values, the name to type.

    Returns:
        What could not be done, in sentences: no pictures where matplotlib is missing.
    """
    pictures = {name: f"{PICTURES}/{name}.png" for name in ("published", "default")}
    missing: list[str] = []
    try:
        figures = {
            # the recipe comes from Table 1, whose only figure has a panel for each set
            "published": list_pictures(result)[0].draw(),
            "default": front_figure([run.front]),
        }
        (out / PICTURES).mkdir(exist_ok=True)
        for name, figure in figures.items():
            save_figure(out / pictures[name], figure)
    except MissingExtraError as error:
        pictures = {}
        # the page is worth having without them
        missing.append(f"no pictures: {error}")
    write_report(out / SLIDER, build_page_model([run]))
    text = render_template(
        "demo.md.jinja",
        slider=SLIDER,
        table=table,
        published=pictures.get("published"),
        default=pictures.get("default"),
        caveats=dict.fromkeys(text for e in result.done for text in e.made["caveats"]),
        difference=DIFFERENCE,
        heading=heading,
        consequences=consequences,
    )
    pngs = {address: (out / address).read_bytes() for address in pictures.values()}
    write_bytes(out / PAGE, render_page(text, pngs).encode())
    return missing
