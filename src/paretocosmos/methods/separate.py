"""Separate: a network for every ray, the bar for one network that serves them all."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from paretocosmos.errors import ConfigurationError
from paretocosmos.methods._base import FixedRays, Gram, State, like_losses
from paretocosmos.pareto.front import Front
from paretocosmos.pareto.rays import even_rays
from paretocosmos.pareto.scalarize import floored

__all__ = ["Separate"]


@dataclass(frozen=True, kw_only=True)
class Separate(FixedRays):
    r"""K networks, each trained on the weighted sum for its own ray: the benchmark for one network.

    .. math:: \min_{\theta_k} \tilde r_k^\top L(\theta_k), \qquad \tilde r = f + (1 - J f) \, r

    Two objectives: K even rays. More: the J ends, the centre, and even rays up to K. The floor f
    keeps an end's other heads in training. Each network is selected by its own weighted sum of the
    validation scores. A large r_j means a small L_j. Cost: K networks; one forward and one backward
    pass each. Use to see what a front could be, had every trade-off a network to itself; avoid as
    the way to a front, since it costs K trainings and knows nothing between its rays.

    Paper: Ruchte and Grabocka 2021, equation 3, solved for every ray by itself.

    Args:
        networks: K; at least J + 1 are trained where J is above 2.
        floor: f, what every loss weighs at least.

    >>> Separate(networks=3).fixed_rays(2)
    tensor([[0.9088, 0.0912],
            [0.5000, 0.5000],
            [0.0912, 0.9088]])
    """

    networks: int = 9
    floor: float = 0.01

    def __post_init__(self) -> None:
        if self.networks < 1:
            raise ConfigurationError(f"`networks` must be at least 1, found {self.networks}")

    def fixed_rays(self, objectives: int) -> Tensor:
        if objectives <= 2:
            return even_rays(self.networks, objectives)
        parts = [torch.eye(objectives), torch.full((1, objectives), 1 / objectives)]
        more = self.networks - objectives - 1
        if more > 0:
            # a single even ray would be the centre again
            parts.append(even_rays(max(more, 2), objectives)[:more])
        return torch.cat(parts)

    def weights(
        self, losses: Tensor, rays: Tensor, gram: Gram, state: State
    ) -> tuple[Tensor, State]:
        return like_losses(floored(rays, self.floor), losses), state

    def quality(self, front: Front) -> float:
        shares = floored(torch.tensor(front.rays), self.floor).numpy()
        values = np.where(shares > 0, front.values, 0.0)  # another objective may have no number
        return -float((shares * values).sum(axis=1).min())
