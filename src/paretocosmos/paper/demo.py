"""The demonstration: COSMOS as published on the three fairness sets, then the default on Adult.

Its trainings are experiments of a recipe, so `reproduce` trains them and keeps what is done. The
default is the network that comes with the package.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from paretocosmos.errors import MissingExtraError
from paretocosmos.explorer import build_page_model, write_report
from paretocosmos.io.files import write_bytes
from paretocosmos.paper.recipe import Recipe, load_recipe
from paretocosmos.paper.report.figures import list_figures
from paretocosmos.paper.report.page import render_markdown, render_page
from paretocosmos.paper.report.paper_tables import explain_difference
from paretocosmos.paper.report.tables import (
    Footnotes,
    Picture,
    Section,
    Table,
    format_duration,
    format_printed,
)
from paretocosmos.paper.results import RecipeResult
from paretocosmos.plotting import front_figure, save_figure
from paretocosmos.runs.run import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "DIFFERENCE",
    "PAGE",
    "compare",
    "demo_recipe",
    "write_demo",
]

PUBLISHED = ("adult", "compas", "default_credit", "cosmos", "paper")
DIFFERENCE = (
    "The default on such tables is not COSMOS: one network learns the label and the group, and a "
    "formula shifts its predictions, so that half of the weight closes half of the gap, which is "
    "too noisy a loss to train on. This one comes with the package; `paretocosmos train adult` "
    "trains it."
)
PAGE, SLIDER, PICTURES = "demo.html", "slider.html", "pictures"


def demo_recipe() -> Recipe:
    """Return what the recipe of Table 1 has of COSMOS on the fairness sets, with one seed.

    >>> [experiment.name for experiment in demo_recipe().experiments]
    ['adult-paper/cosmos', 'compas-paper/cosmos', 'default_credit-paper/cosmos']
    """
    table = load_recipe("table_1").with_seeds([1])
    return replace(
        table, name="demo", title="COSMOS as published", experiments=table.only(PUBLISHED)
    )


def compare(result: RecipeResult, seconds: Mapping[str, float]) -> Table:
    """Return a table of our hypervolumes, the paper's and the time, a row for each set.

    Args:
        result: what `collect` gave of `demo_recipe`.
        seconds: what each experiment took, by its name.
    """
    notes = Footnotes()
    rows = []
    for experiment in result.done:
        figure = experiment.paper.hypervolume
        marks = (
            [notes.mark(reason) for reason in explain_difference(experiment)]
            if figure.differs
            else []
        )
        ours = f"{experiment.volume.mean:.3f}" + "".join(f" ({mark})" for mark in marks)
        took = format_duration(round(seconds[experiment.name], 1))
        rows.append(
            (
                experiment.benchmark_title(protocol=False),
                ours,
                format_printed(figure, deviation=True),
                took,
            )
        )
    head = ("set", "ours", "the paper's", "time")
    title = "Hypervolume on test: one seed of ours, the mean of the paper's five"
    return Table(title, head, tuple(rows), notes=notes.by_mark())


def write_demo(
    out: Path,
    result: RecipeResult,
    compared: Table,
    run: Run,
    heading: str,
    consequences: Sequence[tuple[str, str, str]],
) -> list[str]:
    """Write one page with both parts, and beside it the default's page with a slider.

    Args:
        out: the folder of the demonstration.
        result: what `collect` gave of `demo_recipe`.
        compared: what `compare` gave.
        run: the default's.
        heading: what stands above its consequences.
        consequences: what the default trades: a label, the values, the name to type.

    Returns:
        What could not be done, in sentences: no pictures where matplotlib is missing.
    """
    (_, draw_published), *_ = list_figures(result)
    missing: list[str] = []
    try:
        published = _draw(out, "published", "The fronts of COSMOS, one seed", draw_published())
        default = _draw(out, "default", "The front of the default", front_figure([run.front]))
    except MissingExtraError as error:
        published, default = (), ()
        missing.append(f"no pictures: {error}")
    caveats = dict.fromkeys(
        caveat for experiment in result.done for caveat in experiment.made.caveats
    )
    sections = [
        Section(
            "cosmos",
            "COSMOS as published",
            lead="The published settings and protocol, 50 epochs. The network takes the "
            "preference as an input; one training gives every point of a front.",
            tables=(compared,),
            pictures=published,
            notes=tuple(caveats),
        ),
        Section(
            "default",
            "The default, on Adult",
            lead=DIFFERENCE,
            tables=(
                Table(heading, ("", "from one end to the other", "name"), tuple(consequences)),
            ),
            pictures=default,
        ),
    ]
    write_report(out / SLIDER, build_page_model([run]))
    text = render_markdown(
        sections,
        title="COSMOS, one network for the whole Pareto front",
        opening=f"[Try the trade-offs of the default with a slider.]({SLIDER})",
        folder=PICTURES,
    )
    pngs = {f"{PICTURES}/{one.name}.png": one.png for one in (*published, *default)}
    write_bytes(out / PAGE, render_page(text, pngs).encode())
    return missing


def _draw(out: Path, name: str, caption: str, figure: "Figure") -> tuple[Picture, ...]:
    path = out / PICTURES / f"{name}.png"
    path.parent.mkdir(exist_ok=True)
    save_figure(path, figure)
    return (Picture(name, caption, path.read_bytes()),)
