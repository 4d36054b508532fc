"""Methods: how rays and losses become weights of the losses."""

from paretocosmos.methods._base import DirichletRays, FixedRays, Gram, Method, State

__all__ = ["ADAPTERS", "REGISTRY", "DirichletRays", "FixedRays", "Gram", "Method", "State"]

REGISTRY = {
    "cosmos": "paretocosmos.methods.cosmos:Cosmos",
    "epo": "paretocosmos.methods.epo:Epo",
    "linear": "paretocosmos.methods.linear:Linear",
    "mgda": "paretocosmos.methods.mgda:Mgda",
    "pareto_mtl": "paretocosmos.methods.pareto_mtl:ParetoMtl",
    "separate": "paretocosmos.methods.separate:Separate",
    "single_task": "paretocosmos.methods.single_task:SingleTask",
    "smooth_tchebycheff": "paretocosmos.methods.smooth_tchebycheff:SmoothTchebycheff",
    "tchebycheff": "paretocosmos.methods.tchebycheff:Tchebycheff",
    "uniform": "paretocosmos.methods.uniform:Uniform",
}
"""Every method by its name: the module and the class in it."""

ADAPTERS = {"torchjd": "paretocosmos.methods._torchjd:adapted"}
"""What turns a class of another library, named as in `torchjd:UPGrad`, into a method."""
