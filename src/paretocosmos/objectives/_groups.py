"""What the fairness objectives share: predicted positives, compared between groups of people."""

from abc import abstractmethod

import torch
from torch import Tensor

from paretocosmos.errors import ConfigurationError
from paretocosmos.objectives._base import Objective, logits_of
from paretocosmos.types import Outputs, Targets

__all__ = ["GroupObjective", "TanhRelaxed", "count_gap", "gap", "group_sums"]


class GroupObjective(Objective):
    """A gap between groups: of probabilities in training, of decisions in the score.

    Args:
        name: how fronts call it; the file's name by default.
        output: which head it reads, where the network has several.
        target: the binary label.
        sensitive: which target holds the groups, numbered from 0.
        groups: how many groups there are.
    """

    def __init__(
        self,
        *,
        name: str | None = None,
        output: str | None = None,
        target: str = "label",
        sensitive: str = "sensitive",
        groups: int = 2,
    ) -> None:
        super().__init__(name=name, output=output, target=target)
        if groups < 2:
            raise ConfigurationError(f"`groups` must be at least 2 to have a gap, found {groups}")
        self.sensitive, self.groups = sensitive, groups

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        return self.between(self.relax(logits_of(outputs, self.output)), targets)

    def score(self, outputs: Outputs, targets: Targets) -> Tensor:
        return self.between((logits_of(outputs, self.output) > 0).float(), targets)

    def relax(self, logits: Tensor) -> Tensor:
        """How positive a prediction is, differentiable: ``[B]`` to ``[B]``."""
        return torch.sigmoid(logits)

    @abstractmethod
    def between(self, positive: Tensor, targets: Targets) -> Tensor:
        """The gap, given how positive each sample's prediction is: ``[B]`` to a scalar."""

    def label(self, targets: Targets, like: Tensor) -> Tensor:
        """The label as numbers of another tensor's shape and type."""
        return targets[self.target].to(like.dtype).reshape(like.shape)


class TanhRelaxed(GroupObjective):
    """A gap under the paper's relaxation, tanh(c σ(logit)), c being the `steepness`."""

    def __init__(
        self,
        *,
        name: str | None = None,
        output: str | None = None,
        target: str = "label",
        sensitive: str = "sensitive",
        groups: int = 2,
        steepness: float = 1.0,
    ) -> None:
        super().__init__(
            name=name, output=output, target=target, sensitive=sensitive, groups=groups
        )
        self.steepness = steepness

    def relax(self, logits: Tensor) -> Tensor:
        # The published code passes the probability through max(0, ·) too, which changes nothing.
        probability = torch.sigmoid(logits)
        return torch.tanh(probability if self.steepness == 1 else self.steepness * probability)


def group_sums(values: Tensor, targets: Targets, sensitive: str, groups: int) -> Tensor:
    """Sums of `values` over the samples of each group: ``[B]`` to ``[groups]``."""
    weight = targets.get("weight")
    if weight is not None:
        values = values * weight.reshape(values.shape)
    labels = torch.arange(groups, device=values.device)
    # not F.one_hot, which reads the data back to check it
    member = targets[sensitive].reshape(values.shape).unsqueeze(-1) == labels
    return values @ member.to(values.dtype)


def samples(values: Tensor, targets: Targets) -> Tensor | int:
    """How many samples there are: B, or the sum of their weights."""
    weight = targets.get("weight")
    return values.shape[0] if weight is None else torch.where(weight.sum() > 0, weight.sum(), 1.0)


def gap(per_group: Tensor) -> Tensor:
    """Largest minus smallest; |a - b| for two groups."""
    return per_group.amax() - per_group.amin()


def count_gap(values: Tensor, targets: Targets, sensitive: str, groups: int) -> Tensor:
    """The gap between the groups' sums, per sample of the batch."""
    if groups > 2:
        return gap(group_sums(values, targets, sensitive, groups)) / samples(values, targets)
    # two groups are one signed sum: half the operations
    weight, group = targets.get("weight"), targets[sensitive].reshape(values.shape)
    sign = (group == 0).to(values.dtype) - (group == 1).to(values.dtype)
    signed = values * sign if weight is None else values * sign * weight.reshape(values.shape)
    return signed.sum().abs() / samples(values, targets)
