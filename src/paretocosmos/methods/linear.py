"""Linear scalarization."""

from dataclasses import dataclass

import torch
from torch import Tensor

from paretocosmos.methods._base import Gram, Method, State
from paretocosmos.rays import check_alpha, sample_rays

__all__ = ["Linear"]


@dataclass(frozen=True, kw_only=True)
class Linear(Method):
    r"""The weighted sum of the losses: every optimum is Pareto-optimal, concave parts are missed.

    .. math:: r^\top L, \qquad r \sim \mathrm{Dir}(\alpha)

    The paper's equation 3 and, with a conditioned network, COSMOS without its penalty. Use as the
    simplest baseline; avoid where the front is concave or narrow.

    Args:
        alpha: the Dirichlet parameter of the rays, one number or one per objective.
    """

    alpha: float | tuple[float, ...] = 0.5

    def __post_init__(self) -> None:
        check_alpha(self.alpha)

    def sample(self, objectives: int, count: int, generator: torch.Generator) -> Tensor:
        return sample_rays(count, objectives, alpha=self.alpha, generator=generator)

    def weights(
        self, losses: Tensor, rays: Tensor, gram: Gram, state: State
    ) -> tuple[Tensor, State]:
        return rays.to(torch.promote_types(losses.dtype, torch.float32)).expand_as(losses), state
