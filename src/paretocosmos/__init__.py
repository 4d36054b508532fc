"""One network, trained once, gives the whole Pareto front: it takes the trade-off as an input."""

import sys
from importlib import import_module
from typing import TYPE_CHECKING

from paretocosmos._version import __version__ as __version__
from paretocosmos.io.progress import show_live, status

# For type checkers and editors, which do not see `__getattr__`.
if TYPE_CHECKING:
    from paretocosmos.config.condition import condition
    from paretocosmos.errors import ParetoCosmosError
    from paretocosmos.evaluation.evaluate import evaluate
    from paretocosmos.methods import Cosmos, Method
    from paretocosmos.nn.conditioning import Conditioning
    from paretocosmos.objectives import Objective
    from paretocosmos.pareto.front import Front
    from paretocosmos.pareto.metrics import hypervolume
    from paretocosmos.pareto.rays import even_rays, sample_rays
    from paretocosmos.pareto.scalarize import cosmos_loss, tchebycheff_loss
    from paretocosmos.problems import Problem, load_problem
    from paretocosmos.problems.functions import FunctionProblem
    from paretocosmos.problems.streams.problem import DataProblem
    from paretocosmos.problems.tables import TabularProblem
    from paretocosmos.runs.load import load, load_run
    from paretocosmos.runs.run import Run
    from paretocosmos.training.callbacks import Callback
    from paretocosmos.training.compare import compare
    from paretocosmos.training.fit import fit
    from paretocosmos.training.sweep import sweep

__all__ = [
    "Callback",
    "Conditioning",
    "Cosmos",
    "DataProblem",
    "Front",
    "FunctionProblem",
    "Method",
    "Objective",
    "ParetoCosmosError",
    "Problem",
    "Run",
    "TabularProblem",
    "compare",
    "condition",
    "cosmos_loss",
    "evaluate",
    "even_rays",
    "fit",
    "hypervolume",
    "load",
    "load_problem",
    "load_run",
    "sample_rays",
    "sweep",
    "tchebycheff_loss",
]

# Imported when they are first asked for: torch takes seconds, and the command line answers before.
_MODULES = {
    "nn.conditioning": ("Conditioning",),
    "config.condition": ("condition",),
    "errors": ("ParetoCosmosError",),
    "evaluation.evaluate": ("evaluate",),
    "pareto.front": ("Front",),
    "runs.load": ("load", "load_run"),
    "methods": ("Method",),
    "methods.cosmos": ("Cosmos",),
    "pareto.metrics": ("hypervolume",),
    "objectives": ("Objective",),
    "problems": ("Problem", "load_problem"),
    "problems.functions": ("FunctionProblem",),
    "problems.streams.problem": ("DataProblem",),
    "problems.tables.problem": ("TabularProblem",),
    "pareto.rays": ("even_rays", "sample_rays"),
    "runs.run": ("Run",),
    "pareto.scalarize": ("cosmos_loss", "tchebycheff_loss"),
    "training.callbacks": ("Callback",),
    "training.compare": ("compare",),
    "training.fit": ("fit",),
    "training.sweep": ("sweep",),
}
_MODULE = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _MODULE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = f"{__name__}.{_MODULE[name]}"
    if "torch" in sys.modules:  # the rest is imported in no time
        return getattr(import_module(module), name)
    # a terminal shows that something moves; the display is gone afterwards
    with show_live(lambda: None, keep=False), status("importing torch"):
        return getattr(import_module(module), name)


def __dir__() -> list[str]:
    # for completion, which would otherwise not list what is imported on demand
    return sorted([*globals(), *__all__])
