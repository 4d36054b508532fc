"""Tchebycheff scalarization: the loss that is worst for its weight."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from paretocosmos.methods._base import DirichletRays, Gram, State, like_losses, refuse_losses
from paretocosmos.pareto.scalarize import tchebycheff_weights

__all__ = ["Tchebycheff"]


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
        return like_losses(tchebycheff_weights(losses.detach(), rays), losses), state

    def check(self, losses: Tensor, names: Sequence[str]) -> None:
        way_out = "add a constant to it, or use another method, such as `linear`"
        refuse_losses(losses, names, "`tchebycheff` needs losses of at least 0", way_out, zero=True)
