"""The reproduction of the paper. Only the command line imports this package.

From a recipe to a report, in this order:

- `recipe`: the experiments of a table or figure of the paper, read from ``recipes/*.toml``.
- `reproduce`: trains the experiments that are not done, in this process or on the workers and
  clusters of `scheduling`; `experiment` trains one and finds its finished runs.
- `collect`: the results of the experiments (`results`), compared with the paper's numbers
  (`compare`, `published`), and the paper's claims judged by them (`claims`).
- `report`: these results as Markdown, HTML and figures.

`demo` makes the page of ``paretocosmos demo``.
"""

from importlib import import_module
from typing import TYPE_CHECKING

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
    from paretocosmos.paper.experiment import FinishedRun, Outcome, ReproduceOptions
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
    "Outcome",
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

_MODULES = {
    "ClaimResult": "results",
    "Experiment": "recipe",
    "ExperimentResult": "results",
    "Figure": "results",
    "FinishedRun": "experiment",
    "Outcome": "experiment",
    "Recipe": "recipe",
    "RecipeResult": "results",
    "ReproduceOptions": "experiment",
    "Reproduction": "reproduce",
    "Spread": "results",
    "Stage": "results",
    "collect_experiment": "collect",
    "collect_results": "collect",
    "compare_to_paper": "compare",
    "compute_mean_course": "collect",
    "compute_mean_front": "collect",
    "find_recipes": "collect",
    "get_authors_result": "published",
    "get_paper_row": "published",
    "get_paper_tasks": "published",
    "get_published": "published",
    "judge_ablation": "claims",
    "judge_convergence": "claims",
    "judge_fronts": "claims",
    "load_known_reasons": "compare",
    "load_recipe": "recipe",
    "read_result": "collect",
    "recipe_names": "recipe",
}


def __getattr__(name: str) -> object:
    """Import a name when it is first asked for: importing the package stays cheap."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
