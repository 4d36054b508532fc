"""COSMOS: conditioned one-shot multi-objective search."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from paretocosmos.errors import ConfigurationError
from paretocosmos.methods.base import DirichletRays, Gram, State
from paretocosmos.pareto.scalarize import Alignment, apply_floor, cosmos_weights

# Steps over which the mean size of a loss is taken: long enough for batches of all rays, short
# enough to follow losses that fall by orders of magnitude.
MEMORY = 100
# A loss is divided by no less than this share of its size on the first batch: one that vanishes at
# every ray must not drown the others.
LEAST = 1e-3


@dataclass(frozen=True, kw_only=True)
class Cosmos(DirichletRays):
    r"""A weighted sum minus the cosine between losses and ray; one network, the whole front.

    .. math:: r^\top L - \lambda \cos(r, L), \qquad r \sim \mathrm{Dir}(\alpha)

    Cost: one network; one forward and one backward pass. Use when a front should cost about one
    training; avoid when an objective does not depend on the input (a weight norm), which no
    conditioned network can trade.

    The paper's loss is what the defaults of the arguments give. The default preset pulls the losses
    to 1/r instead of r (`alignment`), so that more weight means a smaller loss and the front may
    have any shape; divides them by their sizes (`normalise`), so that λ has no unit; and in the
    second half of a training lets every loss weigh at least half of what it does in the weighted
    sum (`least`), so that no objective is given up only to lie on a ray that the front does not
    reach.

    Paper: Ruchte and Grabocka 2021, equation 5 and algorithm 1.

    Args:
        penalty: λ, the weight of the cosine; the default is the paper's for fairness, 2 to 8 are
            its choice for pairs of images.
        alpha: the Dirichlet parameter of the rays, one number or one per objective.
        stratified: spread the rays of a step over the distribution.
        alignment: ``"ray"``, as published, or ``"inverse"``: see `cosmos_loss`.
        normalise: divide each loss by its mean over all rays and the last hundred steps; one that
            is negative is measured from the lowest value so far.
        floor: what every loss weighs at least in the weighted sum; the network hears the ray as it
            is.
        least: the share of its weight in the weighted sum that every loss has at least; `None`:
            weights are what the cosine makes of them, also negative.
        least_epochs: epochs over which weights below that rise to it; 0: they are never below.

    >>> import torch
    >>> losses, rays = torch.tensor([2.0, 1.0]), torch.tensor([0.25, 0.75])
    >>> Cosmos(penalty=1.0).weights(losses, rays, None, {})[0]
    tensor([0.3914, 0.4672])
    """

    penalty: float = 0.01
    alignment: Alignment = "ray"
    normalise: bool = False
    floor: float = 0.0
    least: float | None = None
    least_epochs: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.penalty < math.inf:
            raise ConfigurationError(
                f"`penalty` must be finite and at least 0, found {self.penalty}: 0.01 is the "
                "paper's for fairness, 2 to 8 for image pairs"
            )
        if self.alignment not in ("ray", "inverse"):
            raise ConfigurationError(
                f"`alignment` must be `ray` or `inverse`, found `{self.alignment}`"
            )
        if self.least is not None and not 0 <= self.least <= 1:
            raise ConfigurationError(
                f"`least` must be at least 0 and at most 1, found {self.least}: try 0.5"
            )
        if self.least_epochs < 0:
            raise ConfigurationError(
                f"`least_epochs` must be at least 0, found {self.least_epochs}: 0 raises weights "
                "from the start"
            )

    def init(self, objectives: int) -> State:
        state: dict[str, Tensor] = {}
        if self.normalise:
            sizes = torch.zeros(objectives)
            state |= {"sizes": sizes, "least_sizes": sizes.clone(), "steps": torch.zeros(())}
            state["lowest"] = sizes.clone()
        if self.least is not None:
            state["freedom"] = torch.tensor(float(self.least_epochs > 0))
        return state

    def at_epoch(self, epoch: int, state: State) -> State:
        if self.least is None:
            return state
        freedom = max(0.0, 1 - epoch / self.least_epochs) if self.least_epochs else 0.0
        return {**state, "freedom": torch.full_like(state["freedom"], freedom)}

    def weights(
        self, losses: Tensor, rays: Tensor, gram: Gram, state: State
    ) -> tuple[Tensor, State]:
        losses, state = losses.detach(), dict(state)
        if self.normalise:
            # a cosine has no meaning for losses below 0: those are measured from the lowest so far
            lowest = losses.amin(dim=-2).to(state["lowest"].dtype)
            state["lowest"] = torch.minimum(state["lowest"], lowest)
            losses = losses - state["lowest"].unsqueeze(-2)
            sizes = self._update_sizes(losses, state)
            losses = losses / sizes
        weights = cosmos_weights(losses, rays, penalty=self.penalty, alignment=self.alignment)
        if self.floor > 0:
            weights = weights + (apply_floor(rays, self.floor) - rays)
        if self.least is not None:
            least = self.least * apply_floor(rays, self.floor).to(weights.dtype)
            missing = (least - weights).clamp_min(0)
            weights = weights + (1 - state["freedom"][..., None, None]) * missing
        # by the chain rule, back from the normalised losses' weights to those of the losses
        return (weights / sizes if self.normalise else weights), state

    def _update_sizes(self, losses: Tensor, state: dict[str, Tensor]) -> Tensor:
        """Update the mean sizes of losses ``[..., G, J]`` in the state; return ``[..., 1, J]``."""
        steps = state["steps"].unsqueeze(-1)
        now = losses.mean(dim=-2).to(state["sizes"].dtype)
        # a plain mean until it is as long as the memory, so that it does not begin at 0
        rate = (1 / (steps + 1)).clamp_min(1 / MEMORY)
        state["sizes"] = state["sizes"] + rate * (now - state["sizes"])
        state["least_sizes"] = torch.where(steps == 0, LEAST * now, state["least_sizes"])
        state["steps"] = state["steps"] + 1
        tiny = torch.finfo(state["sizes"].dtype).tiny
        return torch.maximum(state["sizes"], state["least_sizes"]).clamp_min(tiny).unsqueeze(-2)
