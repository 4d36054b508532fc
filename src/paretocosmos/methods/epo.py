"""EPO: exact Pareto optimal search."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from paretocosmos.errors import ConfigurationError
from paretocosmos.methods._base import DirichletRays, Gram, State
from paretocosmos.solvers import epo

__all__ = ["Epo"]


@dataclass(frozen=True, kw_only=True)
class Epo(DirichletRays):
    r"""Towards the point of the front where r_j L_j is the same for all j, never by a detour.

    .. math:: \hat l = \frac{r \circ L}{r^\top L}, \qquad \mu = \sum_j \hat l_j \log (J \hat l_j)

    While μ, how unequal the r_j L_j are, is above 1e-4 the weights lower it, afterwards they lower
    the losses; either way they solve a linear programme on the Gram matrix of the gradients, over
    all parameters. Where it has no solution, or a loss is not positive, the ray itself weighs the
    losses; `infeasible_share` in `run.json` says how often. A large r_j means a small L_j. Cost:
    one network; one forward and J backward passes. Use with `hypernet` (PHN-EPO) or any other
    conditioning when the front should follow the rays exactly; avoid with losses that can reach 0.

    Paper: Mahapatra and Rajan 2020; with a hypernetwork Navon et al. 2021.

    Args:
        alpha: the Dirichlet parameter of the rays, one number or one per objective.
    """

    alpha: float | tuple[float, ...] = 0.2

    def init(self, objectives: int) -> State:
        return {"steps": torch.zeros(()), "infeasible": torch.zeros(()), "gap": torch.zeros(())}

    def weights(
        self, losses: Tensor, rays: Tensor, gram: Gram, state: State
    ) -> tuple[Tensor, State]:
        solved = epo(gram(), losses.detach(), rays)
        kind = torch.promote_types(losses.dtype, torch.float32)
        unsolved = (~solved.feasible).float()
        gap = torch.where(solved.feasible, solved.gap, 0.0).float()  # of what has a solution
        after = {
            "steps": state["steps"] + _summed(torch.ones_like(unsolved), state["steps"]),
            "infeasible": state["infeasible"] + _summed(unsolved, state["steps"]),
            "gap": torch.maximum(state["gap"], _largest(gap, state["gap"])),
        }
        return (losses.shape[-1] * solved.weights).to(kind), after

    def check(self, losses: Tensor, names: Sequence[str]) -> None:
        for name, loss in zip(names, losses.tolist(), strict=True):
            if not loss > 0:
                raise ConfigurationError(
                    f"`epo` needs positive losses, found {loss:g} for `{name}` on the first batch: "
                    "add a constant to it, or use another method, such as `cosmos` or `linear`"
                )

    def report(self, state: State) -> dict[str, float]:
        steps = max(float(state["steps"]), 1.0)
        return {
            "infeasible_share": float(state["infeasible"]) / steps,
            "largest_gap": float(state["gap"]),
        }


def _summed(values: Tensor, like: Tensor) -> Tensor:
    """Over the ray groups: one number per network."""
    axes = tuple(range(like.ndim, values.ndim))
    return values.sum(dim=axes) if axes else values


def _largest(values: Tensor, like: Tensor) -> Tensor:
    axes = tuple(range(like.ndim, values.ndim))
    return values.amax(dim=axes) if axes else values
