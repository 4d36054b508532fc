"""Single task: every objective for itself."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from paretocosmos.methods._base import FixedRays, Gram, State, like_losses
from paretocosmos.pareto.front import Front

__all__ = ["SingleTask"]


@dataclass(frozen=True, kw_only=True)
class SingleTask(FixedRays):
    r"""One network per objective, trained on that one alone: the reference for trade-offs.

    .. math:: \min_{\theta_j} L_j(\theta_j), \qquad j = 1, \dots, J

    The hypervolume the paper prints for it is that of the ideal point, the best of every objective,
    which no single network needs to reach: `hypervolume_ideal`. Each network is selected by its own
    objective's score on validation. Cost: J networks; one forward and one backward pass each. Use
    to see how much an objective can be lowered at all; avoid as a front: its networks know nothing
    of the other objectives.

    Paper: Caruana 1997, "Multitask Learning", for what is lost and won against it.

    >>> SingleTask().fixed_rays(2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    def fixed_rays(self, objectives: int) -> Tensor:
        return torch.eye(objectives)

    def weights(
        self, losses: Tensor, rays: Tensor, gram: Gram, state: State
    ) -> tuple[Tensor, State]:
        return like_losses(rays, losses), state

    def quality(self, front: Front) -> float:
        own = np.where(front.rays > 0, front.values, 0.0)  # another objective may have no number
        return -float((front.rays * own).sum(axis=1).min())
