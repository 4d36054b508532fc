"""Methods: the weights of the losses, computed from rays and losses."""

from paretocosmos.methods.base import DirichletRays, FixedRays, Gram, Method, State
from paretocosmos.methods.cosmos import Cosmos
from paretocosmos.methods.epo import Epo
from paretocosmos.methods.linear import Linear, Separate, SingleTask, Uniform
from paretocosmos.methods.mgda import Mgda, Normalisation
from paretocosmos.methods.pareto_mtl import ParetoMtl
from paretocosmos.methods.tchebycheff import SmoothTchebycheff, Tchebycheff

REGISTRY = {
    "cosmos": "paretocosmos.methods.cosmos:Cosmos",
    "epo": "paretocosmos.methods.epo:Epo",
    "linear": "paretocosmos.methods.linear:Linear",
    "mgda": "paretocosmos.methods.mgda:Mgda",
    "pareto_mtl": "paretocosmos.methods.pareto_mtl:ParetoMtl",
    "separate": "paretocosmos.methods.linear:Separate",
    "single_task": "paretocosmos.methods.linear:SingleTask",
    "smooth_tchebycheff": "paretocosmos.methods.tchebycheff:SmoothTchebycheff",
    "tchebycheff": "paretocosmos.methods.tchebycheff:Tchebycheff",
    "uniform": "paretocosmos.methods.linear:Uniform",
}
"""Every method by its name: the module and the class in it."""

ADAPTERS = {"torchjd": "paretocosmos.methods.torchjd:adapt_class"}
"""Functions that turn classes of another library, named as in `torchjd:UPGrad`, into methods."""
