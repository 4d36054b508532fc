"""Uniform: the mean of the losses."""

from dataclasses import dataclass

import torch
from torch import Tensor

from paretocosmos.methods._base import FixedRays, Gram, State, like_losses

__all__ = ["Uniform"]


@dataclass(frozen=True, kw_only=True)
class Uniform(FixedRays):
    r"""One network on the mean of the losses: the baseline without trade-offs.

    .. math:: \min_\theta \tfrac{1}{J} \sum_j L_j(\theta)

    Cost: one network; one forward and one backward pass. Use as the plainest point of comparison;
    avoid where losses differ in scale, since the largest then decides alone.

    Paper: Sener and Koltun 2018 compare with it, as uniform scaling.

    >>> losses, rays = torch.tensor([2.0, 1.0]), Uniform().fixed_rays(2)[0]
    >>> Uniform().weights(losses, rays, None, {})[0]
    tensor([0.5000, 0.5000])
    """

    def fixed_rays(self, objectives: int) -> Tensor:
        return torch.full((1, objectives), 1 / objectives)

    def weights(
        self, losses: Tensor, rays: Tensor, gram: Gram, state: State
    ) -> tuple[Tensor, State]:
        return like_losses(torch.full_like(rays, 1 / losses.shape[-1]), losses), state
