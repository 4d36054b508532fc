"""A bounded distance whose trade-offs are concave."""

import torch
from torch import Tensor

from paretocosmos.objectives.base import Objective, align, pick, weighted_mean, weighted_sums
from paretocosmos.types import Measure, Outputs, Targets


class GaussianWell(Objective):
    """1 - exp(-‖output - target‖²): flat far away, a well at the target (Fonseca and Fleming 1995).

    Two of them with targets far enough apart (a distance of 2) have a concave front, which no
    weighted sum can follow; with close ones, below about 1.6, its middle is convex.

    >>> import torch
    >>> GaussianWell().loss(torch.ones(2, 3), {"label": torch.ones(2, 3)})
    tensor(0.)
    """

    measure = Measure(
        "distance from a point",
        "closer to a point",
        "A made-up loss with a known front.",
    )

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        return weighted_mean(self._compute_depths(outputs, targets), targets)

    def sums(self, outputs: Outputs, targets: Targets) -> Tensor:
        return weighted_sums(self._compute_depths(outputs, targets), targets)

    def _compute_depths(self, outputs: Outputs, targets: Targets) -> Tensor:
        """Return the depth of every sample in the well."""
        output = pick(outputs, self.output)
        squared = (output - align(targets[self.target], output, self.target)).square()
        distance = squared.flatten(1).sum(dim=1) if squared.ndim > 1 else squared
        # not 1 - exp(...): near the target that difference loses its digits
        return -torch.expm1(-distance)
