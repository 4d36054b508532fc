"""Linear scalarization."""

from dataclasses import dataclass

from torch import Tensor

from paretocosmos.methods._base import DirichletRays, Gram, State, like_losses
from paretocosmos.pareto.scalarize import floored

__all__ = ["Linear"]


@dataclass(frozen=True, kw_only=True)
class Linear(DirichletRays):
    r"""The weighted sum of the losses: every optimum is Pareto-optimal, concave parts are missed.

    .. math:: r^\top L, \qquad r \sim \mathrm{Dir}(\alpha)

    COSMOS without its penalty; with `hypernet`, PHN-LS. A large r_j means a small L_j. Cost: one
    network; one forward and one backward pass. Use by default; avoid where the front is concave
    and its middle matters.

    Paper: Ruchte and Grabocka 2021, equation 3; with a hypernetwork Navon et al. 2021.

    Args:
        alpha: the Dirichlet parameter of the rays, one number or one per objective.
        floor: what every loss weighs at least; the network hears the ray as it is.
        stratified: spread the rays of a step over the distribution.

    >>> import torch
    >>> losses, rays = torch.tensor([2.0, 1.0]), torch.tensor([0.25, 0.75])
    >>> Linear().weights(losses, rays, None, {})[0]
    tensor([0.2500, 0.7500])
    """

    floor: float = 0.0

    def weights(
        self, losses: Tensor, rays: Tensor, gram: Gram, state: State
    ) -> tuple[Tensor, State]:
        return like_losses(floored(rays, self.floor), losses), state
