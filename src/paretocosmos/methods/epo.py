"""EPO: exact Pareto optimal search."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from paretocosmos.methods.base import (
    DirichletRays,
    Gram,
    State,
    expand_weights,
    require_positive_losses,
    update_largest_gap,
)
from paretocosmos.pareto.solvers import epo


@dataclass(frozen=True, kw_only=True)
class Epo(DirichletRays):
    r"""Moves to the point of the front where r_j L_j is the same for all j, without detours.

    .. math:: \hat l = \frac{r \circ L}{r^\top L}, \qquad \mu = \sum_j \hat l_j \log (J \hat l_j)

    While μ, how unequal the r_j L_j are, is above 1e-4 the weights lower it, afterwards they lower
    the losses; either way they solve a linear programme on the Gram matrix of the gradients, over
    all parameters. Where it has no solution, or a loss is not positive, the ray itself weighs the
    losses; `infeasible_share` in `run.json` says how often. A large r_j means a small L_j. Cost:
    one network; one forward and J backward passes, for each ray of a batch. Use with `hypernet`
    (PHN-EPO) or any other conditioning when the front should follow the rays exactly; avoid with
    losses that can reach 0.

    Paper: Mahapatra and Rajan 2020; with a hypernetwork Navon et al. 2021.

    Args:
        alpha: the Dirichlet parameter of the rays, one number or one per objective.
        stratified: spread the rays of a step over the distribution.

    >>> import torch
    >>> losses, rays = torch.tensor([2.0, 1.0]), torch.tensor([0.5, 0.5])
    >>> Epo().weights(losses, rays, lambda: torch.eye(2), Epo().init(2))[0]
    tensor([2., 0.])
    """

    alpha: float | tuple[float, ...] = 0.2

    def init(self, objectives: int) -> State:
        return {"steps": torch.zeros(()), "infeasible": torch.zeros(()), "gap": torch.zeros(())}

    def weights(
        self, losses: Tensor, rays: Tensor, gram: Gram, state: State
    ) -> tuple[Tensor, State]:
        solved = epo(gram(), losses.detach(), rays)
        unsolved = (~solved.feasible).reshape(*state["steps"].shape, -1)  # by network and ray
        gap = torch.where(solved.feasible, solved.gap, 0.0)  # of what has a solution
        after = {
            "steps": state["steps"] + unsolved.shape[-1],
            "infeasible": state["infeasible"] + unsolved.sum(dim=-1),
            "gap": update_largest_gap(gap, state["gap"]),
        }
        # J times weights that sum to 1: a step as long as for a sum of J losses
        return expand_weights(losses.shape[-1] * solved.weights, losses), after

    def check(self, losses: Tensor, names: Sequence[str]) -> None:
        # mu has the logarithm of r_j L_j
        require_positive_losses(losses, names, "`epo` needs positive losses", zero=False)

    def report(self, state: State) -> dict[str, float]:
        steps = max(float(state["steps"]), 1.0)  # 0 before the first step
        return {
            "infeasible_share": float(state["infeasible"]) / steps,
            "largest_gap": float(state["gap"]),
        }
