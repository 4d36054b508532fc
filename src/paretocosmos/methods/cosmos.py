"""COSMOS: conditioned one-shot multi-objective search."""

import math
from dataclasses import dataclass

from torch import Tensor

from paretocosmos.errors import ConfigurationError
from paretocosmos.methods.base import DirichletRays, Gram, State
from paretocosmos.pareto.scalarize import Alignment, cosmos_weights


@dataclass(frozen=True, kw_only=True)
class Cosmos(DirichletRays):
    r"""A weighted sum minus the cosine between losses and ray; one network, the whole front.

    .. math:: r^\top L - \lambda \cos(r, L), \qquad r \sim \mathrm{Dir}(\alpha)

    Cost: one network; one forward and one backward pass. Use when a front should cost about one
    training; avoid when an objective does not depend on the input (a weight norm), which no
    conditioned network can trade.

    Paper: Ruchte and Grabocka 2021, equation 5 and algorithm 1.

    Args:
        penalty: λ, the weight of the cosine; the default is the paper's for fairness, 2 to 8 are
            its choice for pairs of images.
        alpha: the Dirichlet parameter of the rays, one number or one per objective.
        stratified: spread the rays of a step over the distribution.
        alignment: ``"ray"``, as published, or ``"inverse"``: see `cosmos_loss`.

    >>> import torch
    >>> losses, rays = torch.tensor([2.0, 1.0]), torch.tensor([0.25, 0.75])
    >>> Cosmos(penalty=1.0).weights(losses, rays, None, {})[0]
    tensor([0.3914, 0.4672])
    """

    penalty: float = 0.01
    alignment: Alignment = "ray"

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

    def weights(
        self, losses: Tensor, rays: Tensor, gram: Gram, state: State
    ) -> tuple[Tensor, State]:
        weights = cosmos_weights(
            losses.detach(), rays, penalty=self.penalty, alignment=self.alignment
        )
        return weights, state
