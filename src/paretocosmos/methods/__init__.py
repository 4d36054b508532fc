"""Methods: how rays and losses become weights of the losses, one file each."""

from paretocosmos.methods._base import DirichletRays, FixedRays, Gram, Method, State

__all__ = ["DirichletRays", "FixedRays", "Gram", "Method", "State"]
