"""Linear scalarization."""

from dataclasses import dataclass

import torch
from torch import Tensor

from paretocosmos.methods._base import DirichletRays, Gram, State

__all__ = ["Linear"]


@dataclass(frozen=True, kw_only=True)
class Linear(DirichletRays):
    r"""The weighted sum of the losses: every optimum is Pareto-optimal, concave parts are missed.

    .. math:: r^\top L, \qquad r \sim \mathrm{Dir}(\alpha)

    The paper's equation 3 and, with a conditioned network, COSMOS without its penalty. Use as the
    simplest baseline; avoid where the front is concave or narrow.

    Args:
        alpha: the Dirichlet parameter of the rays, one number or one per objective.
    """

    def weights(
        self, losses: Tensor, rays: Tensor, gram: Gram, state: State
    ) -> tuple[Tensor, State]:
        return rays.to(torch.promote_types(losses.dtype, torch.float32)).expand_as(losses), state
