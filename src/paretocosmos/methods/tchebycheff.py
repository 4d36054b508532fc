"""Tchebycheff scalarization and its smooth version."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from paretocosmos.errors import ConfigurationError
from paretocosmos.methods.base import (
    DirichletRays,
    Gram,
    State,
    expand_weights,
    require_positive_losses,
)
from paretocosmos.pareto.scalarize import tchebycheff_weights


@dataclass(frozen=True, kw_only=True)
class Tchebycheff(DirichletRays):
    r"""The largest weighted loss: its optima are the whole front, concave parts included.

    .. math:: \max_j r_j L_j, \qquad r \sim \mathrm{Dir}(\alpha)

    Each step lowers one loss of each ray, that with the largest r_j L_j. At an optimum all r_j L_j
    are the same where the front allows it: a large r_j means a small L_j. Cost: one network; one
    forward and one backward pass. Use where the front is concave and `linear` only finds its ends;
    avoid where steps are noisy, since one loss at a time is a rough direction:
    `smooth_tchebycheff` weighs them all.

    Paper: Bowman 1976, "On the Relationship of the Tchebycheff Norm and the Efficient Frontier".

    Args:
        alpha: the Dirichlet parameter of the rays, one number or one per objective.
        stratified: spread the rays of a step over the distribution.

    >>> import torch
    >>> losses, rays = torch.tensor([2.0, 1.0]), torch.tensor([0.5, 0.5])
    >>> Tchebycheff().weights(losses, rays, None, {})[0]
    tensor([0.5000, 0.0000])
    """

    def weights(
        self, losses: Tensor, rays: Tensor, gram: Gram, state: State
    ) -> tuple[Tensor, State]:
        return expand_weights(tchebycheff_weights(losses.detach(), rays), losses), state

    def check(self, losses: Tensor, names: Sequence[str]) -> None:
        require_positive_losses(losses, names, "`tchebycheff` needs losses of at least 0")


@dataclass(frozen=True, kw_only=True)
class SmoothTchebycheff(DirichletRays):
    r"""A smooth maximum of the weighted losses: the whole front, with a gradient of every loss.

    .. math:: \mu \log \sum_j \exp(r_j L_j / \mu), \qquad r \sim \mathrm{Dir}(\alpha)

    The weights are r_j softmax(r ∘ L / μ)_j: those of `tchebycheff` as μ falls to 0, those of
    `linear` divided by J as it grows. A large r_j means a small L_j. Cost: one network; one forward
    and one backward pass. Use where the front may be concave; avoid where the losses have other
    scales than about 1 and μ is not set to match.

    Paper: Lin et al. 2024, "Smooth Tchebycheff Scalarization for Multi-Objective Optimization".

    Args:
        alpha: the Dirichlet parameter of the rays, one number or one per objective.
        smoothing: μ, on the scale of the weighted losses.
        stratified: spread the rays of a step over the distribution.

    >>> import torch
    >>> losses, rays = torch.tensor([2.0, 1.0]), torch.tensor([0.5, 0.5])
    >>> SmoothTchebycheff(smoothing=1.0).weights(losses, rays, None, {})[0]
    tensor([0.3112, 0.1888])
    """

    smoothing: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.smoothing < math.inf:
            raise ConfigurationError(
                f"`smoothing` must be finite and above 0, found {self.smoothing}: try 0.1, or the "
                "method `tchebycheff` for 0"
            )

    def weights(
        self, losses: Tensor, rays: Tensor, gram: Gram, state: State
    ) -> tuple[Tensor, State]:
        weights = tchebycheff_weights(losses.detach(), rays, smoothing=self.smoothing)
        return expand_weights(weights, losses), state

    def check(self, losses: Tensor, names: Sequence[str]) -> None:
        require_positive_losses(losses, names, "`smooth_tchebycheff` needs losses of at least 0")
