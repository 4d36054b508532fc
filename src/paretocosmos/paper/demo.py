"""The demonstration: COSMOS as published on the three fairness sets, then the default on Adult.

Its trainings are experiments of a recipe, so `reproduce` trains them and keeps what is done. The
default is the network that comes with the package.
"""

from dataclasses import replace
from pathlib import Path

from paretocosmos.explorer import build_page_model
from paretocosmos.explorer import write_report as write_page
from paretocosmos.paper.recipe import Recipe, load_recipe
from paretocosmos.paper.report import write_report
from paretocosmos.paper.results import RecipeResult
from paretocosmos.runs.run import Run

# `Recipe.only` takes names of problems, methods and protocols together.
PUBLISHED = ("adult", "compas", "default_credit", "cosmos", "paper")
DIFFERENCE = (
    "The default on such tables is not COSMOS: one network learns the label and the group, and a "
    "formula shifts its predictions, so that half of the weight closes half of the gap, which is "
    "too noisy a loss to train on. This one comes with the package; `paretocosmos train adult` "
    "trains it."
)
# A page of its own: the explorer of the default has a script, which the report's policy forbids.
SLIDER = "slider.html"
TITLE = "COSMOS, one network for the whole Pareto front"


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


def write_demo(folder: Path, result: RecipeResult, run: Run) -> list[str]:
    """Write the report of what was reproduced, and beside it the default's page with a slider.

    Args:
        folder: where both go.
        result: what `collect_results` returned for `load_demo_recipe`.
        run: the default's.

    Returns:
        What could not be done, in sentences, as `report.write_report` does.
    """
    opening = f"{DIFFERENCE} [Try its trade-offs with a slider.]({SLIDER})"
    notes = write_report([result], folder, title=TITLE, opening=opening)
    write_page(folder / SLIDER, build_page_model([run]))
    return notes
