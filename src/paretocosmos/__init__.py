"""One network, trained once, gives the whole Pareto front: it takes the trade-off as an input."""

__version__ = "0.1.0.dev0"

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
