"""ParetoMTL: one network per part of the front."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from paretocosmos.errors import ConfigurationError
from paretocosmos.methods.base import (
    FixedRays,
    Gram,
    State,
    largest_of,
    like_losses,
    refuse_losses,
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
            "rays": even_rays(self.networks, objectives),  # where the step runs
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
        before = state["searching"]  # one number, or one for each of several networks
        axes = losses.ndim - 1 - before.ndim
        every = state["rays"].to(rays.dtype)[(..., *[None] * axes, slice(None), slice(None))]
        own_ray = rays.unsqueeze(-2)
        constraints = _unit(every.to(values)) - _unit(own_ray.to(values))  # [..., K, J]
        above = (constraints @ values.unsqueeze(-1)).squeeze(-1) > 0  # ‖L‖ > 0 changes no sign
        active = above & (every != own_ray).any(dim=-1)  # w_k is 0, but for rounding

        # what is inactive stands for a vector that is in the hull anyway, and so changes nothing
        first = active.double().argmax(dim=-1)[..., None, None]
        some = constraints.gather(-2, first.expand(*first.shape[:-1], objectives))
        searching = torch.where(active.unsqueeze(-1), constraints, some)
        own = torch.eye(objectives, dtype=values.dtype, device=values.device)
        own = own.expand(*values.shape[:-1], -1, -1)
        descending = torch.where(active.unsqueeze(-1), constraints, own[..., :1, :])
        flat = objectives == 2  # all lie in the plane of two gradients
        search, gap = _combined(searching, products, plane=flat)
        descend, other_gap = _combined(torch.cat([own, descending], dim=-2), products, plane=flat)
        size = descend.abs().sum(dim=-1, keepdim=True)
        descend = torch.where(size > 0, objectives * descend / size, 0.0)

        # a network, not a group of rays, leaves the first stage
        inside = ~active.any(dim=-1)
        left = inside.reshape(*before.shape, -1).any(dim=-1)
        mode = before.reshape(*before.shape, *[1] * (axes + 1))
        # a batch in the cone has no gradient; what moves then is Adam's momentum
        found = torch.where(inside.unsqueeze(-1), 0.0, search)
        weights = torch.where(mode > 0, found, descend)
        after = {
            "rays": state["rays"],
            "searching": torch.where(left, 0.0, before),
            "steps_searching": state["steps_searching"] + before,
            "reached_cone": torch.where(left & (before > 0), 1.0, state["reached_cone"]),
            "gap": largest_of(torch.where(mode[..., 0] > 0, gap, other_gap), state["gap"]),
        }
        return like_losses(weights, losses), after

    def check(self, losses: Tensor, names: Sequence[str]) -> None:
        way_out = "add a constant to it, or use another method, such as `linear`"
        refuse_losses(losses, names, "`pareto_mtl` needs losses of at least 0", way_out, zero=True)

    def report(self, state: State) -> dict[str, float]:
        return {
            "steps_searching": float(state["steps_searching"]),
            "reached_cone": float(state["reached_cone"]),
            "largest_gap": float(state["gap"]),
        }


def _unit(rays: Tensor) -> Tensor:
    unit: Tensor = rays / torch.linalg.vector_norm(rays, dim=-1, keepdim=True)
    return unit


def _combined(rows: Tensor, products: Tensor, *, plane: bool) -> tuple[Tensor, Tensor]:
    """Rows of weights ``[..., n, J]`` to the shortest vector in their hull, and its gap."""
    solved = min_norm(rows @ products @ rows.mT, plane=plane)
    return (solved.weights.unsqueeze(-2) @ rows).squeeze(-2), solved.gap
