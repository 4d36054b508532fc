"""One network, trained once, gives the whole Pareto front: it takes the trade-off as an input."""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0.dev0"

if TYPE_CHECKING:
    from paretocosmos.conditioning import Concat, Conditioning, condition
    from paretocosmos.errors import ParetoCosmosError
    from paretocosmos.evaluation import evaluate
    from paretocosmos.front import Front
    from paretocosmos.loading import load_run
    from paretocosmos.methods import Cosmos, Method
    from paretocosmos.metrics import hypervolume
    from paretocosmos.objectives import Objective
    from paretocosmos.problems import Problem, TabularProblem, load_problem
    from paretocosmos.rays import even_rays, sample_rays
    from paretocosmos.run import Run
    from paretocosmos.scalarize import cosmos_loss
    from paretocosmos.training import fit

__all__ = [
    "Concat",
    "Conditioning",
    "Cosmos",
    "Front",
    "Method",
    "Objective",
    "ParetoCosmosError",
    "Problem",
    "Run",
    "TabularProblem",
    "condition",
    "cosmos_loss",
    "evaluate",
    "even_rays",
    "fit",
    "hypervolume",
    "load_problem",
    "load_run",
    "sample_rays",
]

# Imported when they are first asked for: torch takes seconds, and the command line answers before.
_PLACES = {
    "conditioning": ("Concat", "Conditioning", "condition"),
    "errors": ("ParetoCosmosError",),
    "evaluation": ("evaluate",),
    "front": ("Front",),
    "loading": ("load_run",),
    "methods": ("Cosmos", "Method"),
    "metrics": ("hypervolume",),
    "objectives": ("Objective",),
    "problems": ("Problem", "TabularProblem", "load_problem"),
    "rays": ("even_rays", "sample_rays"),
    "run": ("Run",),
    "scalarize": ("cosmos_loss",),
    "training": ("fit",),
}
_PLACE = {name: place for place, names in _PLACES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _PLACE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACE[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
