"""The reproduction of the paper. Only the command line imports this package.

From a recipe to a report, in this order:

- `recipe`: the experiments of a table or figure of the paper, read from ``recipes/*.toml``.
- `reproduction`: trains the experiments that are not done, wherever `training.scheduler` runs
  them; `experiment` trains one and finds its finished runs.
- `collect`: the results of the experiments (`results`), compared with the paper's numbers
  (`compare`, `published`), and the paper's claims judged by them (`claims`).
- `report`: these results as Markdown, HTML and figures.

`demo` makes the page of ``paretocosmos demo``.
"""

from importlib import import_module
from typing import TYPE_CHECKING

# Type checkers do not follow `__getattr__`, so they see plain imports.
if TYPE_CHECKING:
    from paretocosmos.paper.claims import judge_claims as judge_claims
    from paretocosmos.paper.collect import collect_experiment as collect_experiment
    from paretocosmos.paper.collect import collect_results as collect_results
    from paretocosmos.paper.collect import find_recipes as find_recipes
    from paretocosmos.paper.collect import read_result as read_result
    from paretocosmos.paper.compare import compare_to_paper as compare_to_paper
    from paretocosmos.paper.demo import load_demo_recipe as load_demo_recipe
    from paretocosmos.paper.experiment import SavedStatus as SavedStatus
    from paretocosmos.paper.experiment import read_finished as read_finished
    from paretocosmos.paper.experiment import read_saved_status as read_saved_status
    from paretocosmos.paper.published import get_authors_result as get_authors_result
    from paretocosmos.paper.published import get_paper_row as get_paper_row
    from paretocosmos.paper.published import get_paper_tasks as get_paper_tasks
    from paretocosmos.paper.published import get_published as get_published
    from paretocosmos.paper.recipe import Experiment as Experiment
    from paretocosmos.paper.recipe import Recipe as Recipe
    from paretocosmos.paper.recipe import load_recipe as load_recipe
    from paretocosmos.paper.recipe import recipe_names as recipe_names
    from paretocosmos.paper.recipe_file import parse_recipe as parse_recipe
    from paretocosmos.paper.reproduction import Reproduction as Reproduction
    from paretocosmos.paper.reproduction import reproduce as reproduce
    from paretocosmos.paper.results import ClaimResult as ClaimResult
    from paretocosmos.paper.results import ClaimRow as ClaimRow
    from paretocosmos.paper.results import ExperimentResult as ExperimentResult
    from paretocosmos.paper.results import PaperComparison as PaperComparison
    from paretocosmos.paper.results import RecipeResult as RecipeResult
    from paretocosmos.paper.results import Spread as Spread
    from paretocosmos.paper.results import Stage as Stage

# The module of each name: `list` and `--help` must not pay for importing pydantic, jinja2 and the
# training.
_MODULES = {
    "claims": ("judge_claims",),
    "collect": ("collect_experiment", "collect_results", "find_recipes", "read_result"),
    "compare": ("compare_to_paper",),
    "demo": ("load_demo_recipe",),
    "experiment": ("SavedStatus", "read_finished", "read_saved_status"),
    "published": ("get_authors_result", "get_paper_row", "get_paper_tasks", "get_published"),
    "recipe": ("Experiment", "Recipe", "load_recipe", "recipe_names"),
    "recipe_file": ("parse_recipe",),
    "reproduction": ("Reproduction", "reproduce"),
    "results": (
        "ClaimResult",
        "ClaimRow",
        "ExperimentResult",
        "PaperComparison",
        "RecipeResult",
        "Spread",
        "Stage",
    ),
}


def __getattr__(name: str) -> object:
    """Import a name when it is first asked for: importing the package stays cheap."""
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    # the error that `hasattr` and `from ... import` expect
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
