"""Weighted sums: linear scalarization for one network, or for a network per ray or objective."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from paretocosmos.errors import ConfigurationError
from paretocosmos.methods.base import DirichletRays, FixedRays, Gram, State, expand_weights
from paretocosmos.pareto.front import Front
from paretocosmos.pareto.rays import even_rays
from paretocosmos.pareto.scalarize import apply_floor


@dataclass(frozen=True, kw_only=True)
class Linear(DirichletRays):
    r"""The weighted sum of the losses: every optimum is Pareto-optimal, concave parts are missed.

    .. math:: r^\top L, \qquad r \sim \mathrm{Dir}(\alpha)

    COSMOS without its penalty; with `hypernet`, PHN-LS. A large r_j means a small L_j. Cost: one
    network; one forward and one backward pass. Use where weights should mean exactly what they say,
    as in the pinball loss; avoid where the front is concave and its middle matters.

    Paper: Ruchte and Grabocka 2021, equation 3; with a hypernetwork Navon et al. 2021.

    Args:
        alpha: the Dirichlet parameter of the rays, one number or one per objective.
        floor: the least weight of a loss; the network still gets the ray itself.
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
        return expand_weights(apply_floor(rays, self.floor), losses), state


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
        return expand_weights(torch.full_like(rays, 1 / losses.shape[-1]), losses), state


@dataclass(frozen=True, kw_only=True)
class SingleTask(FixedRays):
    r"""One network per objective, trained on that one alone: the reference for trade-offs.

    .. math:: \min_{\theta_j} L_j(\theta_j), \qquad j = 1, \dots, J

    The hypervolume the paper prints for it is that of the ideal point, the best of every objective,
    which no single network needs to reach: `hypervolume_ideal`. Each network is selected by its own
    objective's score on validation. Cost: J networks; one forward and one backward pass each. Use
    to see how much an objective can be lowered at all; avoid as a front: its networks know nothing
    of the other objectives.

    Paper: Caruana 1997, "Multitask Learning", compares with it.

    >>> SingleTask().fixed_rays(2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    def fixed_rays(self, objectives: int) -> Tensor:
        return torch.eye(objectives)

    def weights(
        self, losses: Tensor, rays: Tensor, gram: Gram, state: State
    ) -> tuple[Tensor, State]:
        return expand_weights(rays, losses), state

    def quality(self, front: Front) -> float:
        # 0 * NaN is NaN: other objectives may be undefined for a network that ignores them
        values = np.where(front.rays > 0, front.values, 0.0)
        return -float((front.rays * values).sum(axis=1).min())


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
        floor: f, the least weight of a loss.

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
        rays = [torch.eye(objectives), torch.full((1, objectives), 1 / objectives)]
        count = self.networks - objectives - 1
        if count > 0:
            # a single even ray would be the centre again
            rays.append(even_rays(max(count, 2), objectives)[:count])
        return torch.cat(rays)

    def weights(
        self, losses: Tensor, rays: Tensor, gram: Gram, state: State
    ) -> tuple[Tensor, State]:
        return expand_weights(apply_floor(rays, self.floor), losses), state

    def quality(self, front: Front) -> float:
        shares = apply_floor(torch.tensor(front.rays), self.floor).numpy()
        values = np.where(shares > 0, front.values, 0.0)  # 0 * NaN is NaN, as in `SingleTask`
        return -float((shares * values).sum(axis=1).min())
