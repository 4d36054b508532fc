"""The reproduction of the paper. Only the command line imports this package.

From a recipe to a report, in this order:

- `recipe`: the experiments of a table or figure of the paper, read from ``recipes/*.toml``.
- `reproduce`: trains the experiments that are not done, wherever `training.scheduler` runs them;
  `experiment` trains one and finds its finished runs.
- `collect`: the results of the experiments (`results`), compared with the paper's numbers
  (`compare`, `published`), and the paper's claims judged by them (`claims`).
- `report`: these results as Markdown, HTML and figures.

`demo` makes the page of ``paretocosmos demo``.
"""

from importlib import import_module
from typing import TYPE_CHECKING

# Type checkers do not follow `__getattr__`, so they see plain imports.
if TYPE_CHECKING:
    from paretocosmos.paper.claims import judge_ablation, judge_convergence, judge_fronts
    from paretocosmos.paper.collect import (
        collect_experiment,
        collect_results,
        compute_mean_course,
        compute_mean_front,
        find_recipes,
        read_result,
    )
    from paretocosmos.paper.compare import compare_to_paper, load_known_reasons
    from paretocosmos.paper.experiment import FinishedRun, ReproduceOptions
    from paretocosmos.paper.published import (
        get_authors_result,
        get_paper_row,
        get_paper_tasks,
        get_published,
    )
    from paretocosmos.paper.recipe import Experiment, Recipe, load_recipe, recipe_names
    from paretocosmos.paper.reproduce import Reproduction
    from paretocosmos.paper.results import (
        ClaimResult,
        ExperimentResult,
        Figure,
        RecipeResult,
        Spread,
        Stage,
    )

__all__ = [
    "ClaimResult",
    "Experiment",
    "ExperimentResult",
    "Figure",
    "FinishedRun",
    "Recipe",
    "RecipeResult",
    "ReproduceOptions",
    "Reproduction",
    "Spread",
    "Stage",
    "collect_experiment",
    "collect_results",
    "compare_to_paper",
    "compute_mean_course",
    "compute_mean_front",
    "find_recipes",
    "get_authors_result",
    "get_paper_row",
    "get_paper_tasks",
    "get_published",
    "judge_ablation",
    "judge_convergence",
    "judge_fronts",
    "load_known_reasons",
    "load_recipe",
    "read_result",
    "recipe_names",
]

# The names of each module, which `__getattr__` looks through: `list` and `--help` must not pay for
# importing pydantic, jinja2 and the training.
_NAMES = {
    "claims": ("judge_ablation", "judge_convergence", "judge_fronts"),
    "collect": (
        "collect_experiment",
        "collect_results",
        "compute_mean_course",
        "compute_mean_front",
        "find_recipes",
        "read_result",
    ),
    "compare": ("compare_to_paper", "load_known_reasons"),
    "experiment": ("FinishedRun", "ReproduceOptions"),
    "published": ("get_authors_result", "get_paper_row", "get_paper_tasks", "get_published"),
    "recipe": ("Experiment", "Recipe", "load_recipe", "recipe_names"),
    "reproduce": ("Reproduction",),
    "results": ("ClaimResult", "ExperimentResult", "Figure", "RecipeResult", "Spread", "Stage"),
}


def __getattr__(name: str) -> object:
    """Import a name when it is first asked for: importing the package stays cheap."""
    for module, names in _NAMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    # the error that `hasattr` and `from ... import` expect
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
