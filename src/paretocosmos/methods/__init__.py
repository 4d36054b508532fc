"""Methods: how rays and losses become weights of the losses, one file each."""

from paretocosmos.methods._base import DirichletRays, FixedRays, Gram, Method, State
from paretocosmos.methods.cosmos import Cosmos

__all__ = ["Cosmos", "DirichletRays", "FixedRays", "Gram", "Method", "State"]
