"""MGDA: the multiple-gradient descent algorithm."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import torch
from torch import Tensor

from paretocosmos.errors import check_choice
from paretocosmos.methods.base import (
    FixedRays,
    Gram,
    State,
    expand_weights,
    require_positive_losses,
    update_largest_gap,
)
from paretocosmos.pareto.solvers import min_norm

Normalisation = Literal["none", "l2", "loss", "loss+"]


@dataclass(frozen=True, kw_only=True)
class Mgda(FixedRays):
    r"""One network; the weights give the shortest vector in the convex hull of the gradients.

    .. math:: s = \arg\min_{s \in \Delta} \Big\| \sum_j \tfrac{s_j}{n_j} \nabla L_j \Big\|^2,
        \qquad \min_\theta \sum_j s_j L_j(\theta)

    n_j is 1 (`none`), the gradient's length (`l2`), the loss (`loss`) or their product (`loss+`),
    and serves the search for s alone. With `none`, a small step raises no loss. The gradients are
    those of the parameters outside the heads. Cost: one network; one forward and J backward
    passes. Use for one Pareto-stationary network when no preference is at hand; avoid
    when a certain trade-off, or a front, is wanted.

    Paper: Désidéri 2012; for deep networks Sener and Koltun 2018.

    Args:
        normalisation: n_j: ``"none"``, ``"l2"``, ``"loss"`` or ``"loss+"``, the product.

    >>> losses, rays = torch.tensor([2.0, 1.0]), torch.tensor([0.5, 0.5])
    >>> products = torch.diag(torch.tensor([1.0, 3.0]))  # of the gradients
    >>> method = Mgda(normalisation="none")
    >>> method.weights(losses, rays, lambda: products, method.init(2))[0]
    tensor([0.7500, 0.2500])
    """

    normalisation: Normalisation = "loss+"
    over: ClassVar[Literal["all", "shared"]] = "shared"

    def __post_init__(self) -> None:
        check_choice("normalisation", self.normalisation, get_args(Normalisation))

    def fixed_rays(self, objectives: int) -> Tensor:
        # equal weights: the ray only stands for the one network, `weights` ignores it
        return torch.full((1, objectives), 1 / objectives)

    def init(self, objectives: int) -> State:
        return {"gap": torch.zeros(())}

    def weights(
        self, losses: Tensor, rays: Tensor, gram: Gram, state: State
    ) -> tuple[Tensor, State]:
        # float64: near the front the gradients nearly cancel, and the solver sees differences alone
        products = gram().double()
        scale = torch.ones_like(losses, dtype=torch.float64, requires_grad=False)
        if self.normalisation in ("loss", "loss+"):
            scale = scale * losses.detach()
        if self.normalisation in ("l2", "loss+"):
            scale = scale * products.diagonal(dim1=-2, dim2=-1).sqrt()
        scale = torch.where(scale == 0, 1.0, scale)  # a loss or gradient of 0 cannot divide
        # the Gram matrix of the gradients divided by n_j
        solved = min_norm(products / (scale.unsqueeze(-1) * scale.unsqueeze(-2)))
        return expand_weights(solved.weights, losses), {
            "gap": update_largest_gap(solved.gap, state["gap"])
        }

    def check(self, losses: Tensor, names: Sequence[str]) -> None:
        # a negative loss would turn its gradient around
        if self.normalisation in ("loss", "loss+"):
            why = "`mgda` divides by the losses, which must be at least 0"
            way_out = "set `normalisation` to `l2` or `none`"
            require_positive_losses(losses, names, why, way_out)

    def report(self, state: State) -> dict[str, float]:
        return {"largest_gap": float(state["gap"])}
