"""ParetoMTL: one network per part of the front."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from paretocosmos.errors import ConfigurationError
from paretocosmos.methods.base import (
    FixedRays,
    Gram,
    State,
    expand_weights,
    require_positive_losses,
    update_largest_gap,
)
from paretocosmos.pareto.rays import even_rays
from paretocosmos.pareto.solvers import min_norm


@dataclass(frozen=True, kw_only=True)
class ParetoMtl(FixedRays):
    r"""K networks, each driven into its own cone of losses and then down to the front.

    .. math:: w_j = u_j - u_k, \qquad A = \{ j : w_j^\top L > 0 \}

    u_1, ..., u_K are even rays of length 1, and cone k is where losses are nearest to u_k: a large
    entry of u_k means a large loss, the reverse of `linear`'s meaning. First, up to two epochs and
    until a batch is in its cone, the weights of network k are Σ s_j w_j, s the shortest vector
    in the hull of the active constraints' gradients. Then s is that in the hull of the losses' and
    the active constraints' gradients, and the weights, s plus Σ s_j w_j, are scaled to an absolute
    sum of J; nothing holds a network in its cone that has no way down inside. `run.json` says which
    networks reached theirs. Each is selected by the validation hypervolume of its own point. The
    gradients are those of the parameters outside the heads. Cost: K networks; one forward and J
    backward passes each. Use as the field's reference for fronts of separate networks; avoid when
    more than a handful of trade-offs are wanted.

    Paper: Lin et al. 2019, "Pareto Multi-Task Learning".

    Args:
        networks: K.
        search_epochs: how long the first stage may last.

    >>> ParetoMtl(networks=3).fixed_rays(2)
    tensor([[0.9088, 0.0912],
            [0.5000, 0.5000],
            [0.0912, 0.9088]])
    """

    networks: int = 5
    search_epochs: int = 2
    over: ClassVar[Literal["all", "shared"]] = "shared"

    def __post_init__(self) -> None:
        if self.networks < 1:
            raise ConfigurationError(f"`networks` must be at least 1, found {self.networks}")
        if self.search_epochs < 0:
            raise ConfigurationError(
                f"`search_epochs` must be at least 0, found {self.search_epochs}"
            )

    def fixed_rays(self, objectives: int) -> Tensor:
        return even_rays(self.networks, objectives)

    def init(self, objectives: int) -> State:
        return {
            "rays": even_rays(self.networks, objectives),  # in the state to be on the device
            "searching": torch.ones(()),
            "steps_searching": torch.zeros(()),
            "reached_cone": torch.zeros(()),
            "gap": torch.zeros(()),
        }

    def at_epoch(self, epoch: int, state: State) -> State:
        if epoch < self.search_epochs:
            return state
        return {**state, "searching": torch.zeros_like(state["searching"])}

    def weights(
        self, losses: Tensor, rays: Tensor, gram: Gram, state: State
    ) -> tuple[Tensor, State]:
        objectives = losses.shape[-1]
        values, products = losses.detach().double(), gram().double()
        searching = state["searching"]  # one number, or one for each network of a stack
        axes = losses.ndim - 1 - searching.ndim
        all_rays = state["rays"].to(rays.dtype)[(..., *[None] * axes, slice(None), slice(None))]
        ray = rays.unsqueeze(-2)
        unit_ray = F.normalize(ray.to(values), dim=-1)
        constraints = F.normalize(all_rays.to(values), dim=-1) - unit_ray  # w_j, [..., K, J]
        # A: the paper divides by ‖L‖ > 0, which changes no sign
        violated = (constraints @ values.unsqueeze(-1)).squeeze(-1) > 0
        active = violated & (all_rays != ray).any(dim=-1)  # w_k is 0, but for rounding

        # shapes must not depend on values in a trace, so an inactive constraint is replaced by a
        # vector that is in the hull anyway, which leaves the hull as it is
        first = active.double().argmax(dim=-1)[..., None, None]
        active_row = constraints.gather(-2, first.expand(*first.shape[:-1], objectives))
        search_rows = torch.where(active.unsqueeze(-1), constraints, active_row)
        eye = torch.eye(objectives, dtype=values.dtype, device=values.device)
        eye = eye.expand(*values.shape[:-1], -1, -1)
        descent_rows = torch.where(active.unsqueeze(-1), constraints, eye[..., :1, :])
        descent_rows = torch.cat([eye, descent_rows], dim=-2)
        plane = objectives == 2  # all vectors lie in the plane of two gradients
        search, search_gap = _solve_min_norm(search_rows, products, plane=plane)
        descent, descent_gap = _solve_min_norm(descent_rows, products, plane=plane)
        size = descent.abs().sum(dim=-1, keepdim=True)
        descent = torch.where(size > 0, objectives * descent / size, 0.0)

        # a network, not a group of rays, leaves the first stage
        inside = ~active.any(dim=-1)
        arrived = inside.reshape(*searching.shape, -1).any(dim=-1)
        stage = searching.reshape(*searching.shape, *[1] * (axes + 1))
        # a batch in the cone has no gradient: only Adam's momentum moves the network
        search = torch.where(inside.unsqueeze(-1), 0.0, search)
        weights = torch.where(stage > 0, search, descent)
        gap = torch.where(stage[..., 0] > 0, search_gap, descent_gap)
        after = {
            "rays": state["rays"],
            "searching": torch.where(arrived, 0.0, searching),
            "steps_searching": state["steps_searching"] + searching,
            "reached_cone": torch.where(arrived & (searching > 0), 1.0, state["reached_cone"]),
            "gap": update_largest_gap(gap, state["gap"]),
        }
        return expand_weights(weights, losses), after

    def check(self, losses: Tensor, names: Sequence[str]) -> None:
        require_positive_losses(losses, names, "`pareto_mtl` needs losses of at least 0")

    def report(self, state: State) -> dict[str, float]:
        return {
            "steps_searching": float(state["steps_searching"]),
            "reached_cone": float(state["reached_cone"]),
            "largest_gap": float(state["gap"]),
        }


def _solve_min_norm(rows: Tensor, products: Tensor, *, plane: bool) -> tuple[Tensor, Tensor]:
    """Return the weights of the shortest vector in the hull of combined gradients, and its gap.

    Args:
        rows: the combinations, ``[..., n, J]``.
        products: the Gram matrix of the gradients, ``[..., J, J]``.
        plane: set if all combinations lie in one plane, where the solution has a closed form.
    """
    solved = min_norm(rows @ products @ rows.mT, plane=plane)
    return (solved.weights.unsqueeze(-2) @ rows).squeeze(-2), solved.gap
