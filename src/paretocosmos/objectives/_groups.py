"""What the fairness objectives share: predicted positives, compared between groups of people."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from paretocosmos.errors import ConfigurationError, unknown
from paretocosmos.objectives._base import Objective, logits_of
from paretocosmos.objectives._shapes import aligned
from paretocosmos.registry import find, names
from paretocosmos.types import Outputs, Targets

Rows = Literal["all", "positives", "negatives"]


# Every prediction is compared with every group.
MOST_GROUPS = 1000


@dataclass(kw_only=True, eq=False, repr=False)
class GroupObjective(Objective):
    """A gap between sensitive groups: of probabilities in training, of decisions in the score.

    A subclass computes the gap in `between`. Several logits per sample are classes: each class has
    a gap, as if it were the positive one and all others negative, and the largest gap counts.

    Args:
        name: how fronts call it; the file's name by default.
        output: which head it reads, where the network has several.
        target: the label: 0 or 1, or a class.
        sensitive: which target holds the sensitive groups, numbered from 0.
        groups: how many sensitive groups there are.

    >>> class SelectionGap(GroupObjective):
    ...     def between(self, positive, targets):
    ...         member = targets[self.sensitive].unsqueeze(1) == torch.arange(self.groups)
    ...         rates = positive @ member.to(positive) / member.sum(dim=0)
    ...         return rates.max() - rates.min()
    >>> targets = {"sensitive": torch.tensor([0, 0, 1, 1])}
    >>> SelectionGap().score(torch.tensor([3.0, 1.0, 1.0, -1.0]), targets)  # 2 of 2 and 1 of 2
    tensor(0.5000, dtype=torch.float64)
    """

    fairness: ClassVar[Literal["classes", "numbers"]] = "classes"
    """What it compares between groups: predicted classes or numbers. Tables and estimators offer
    the objectives of what they predict, and say how many `groups` there are."""

    over: ClassVar[tuple[Rows, ...]] = ("all",)
    """Which rows of a group it is about: all of them, those of the positive class, the others. A
    split in which a group has none of them is refused; none: it has a value without."""

    decides = True

    meaning: ClassVar[str] = ""
    """What a model card says of it: what is measured, and what that leaves open."""

    sensitive: str = "sensitive"
    groups: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 2 <= self.groups <= MOST_GROUPS:
            raise ConfigurationError(
                f"`groups` must be at least 2 to have a gap, and at most {MOST_GROUPS:,}, found "
                f"{self.groups:,}: pool small groups"
            )

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        logits = self.read(outputs)
        if logits.ndim == 1:
            return self.between(self.relax(torch.sigmoid(logits)), targets)
        return self.of_classes(self.relax(logits.softmax(dim=-1)), targets, self.between)

    def score(self, outputs: Outputs, targets: Targets) -> Tensor:
        decided = self.decisions(outputs)
        if decided.ndim == 1:
            return self.decided(decided, targets)
        return self.of_classes(decided, targets, self.decided)

    def relax(self, probability: Tensor) -> Tensor:
        """How positive a prediction is, differentiable, given its probability: ``[B]`` to ``[B]``.

        Or ``[B, K]`` to ``[B, K]`` for the probabilities of K classes.
        """
        return probability

    @abstractmethod
    def between(self, positive: Tensor, targets: Targets) -> Tensor:
        """The gap, given how positive each sample's prediction is: ``[B]`` to a scalar."""

    def decided(self, positive: Tensor, targets: Targets) -> Tensor:
        """The gap of decisions, 0 or 1 for each sample: ``[B]`` to a scalar."""
        return self.between(positive, targets)

    def of_classes(
        self, positive: Tensor, targets: Targets, between: Callable[[Tensor, Targets], Tensor]
    ) -> Tensor:
        """The largest gap of a class against the rest: ``[B, K]`` to a scalar."""
        return largest_known(self.each_class(positive, targets, between))

    def each_class(
        self, positive: Tensor, targets: Targets, function: Callable[[Tensor, Targets], Tensor]
    ) -> Tensor:
        """A function of decisions for every class against the rest: ``[B, K]`` to ``[K, ...]``."""
        classes = torch.arange(positive.shape[-1], device=positive.device)
        labels = targets.get(self.target, positive.new_zeros(len(positive)))

        def of_one(positive: Tensor, this: Tensor) -> Tensor:
            return function(positive, {**targets, self.target: labels == this})

        return torch.vmap(of_one)(positive.movedim(-1, 0), classes)

    def label(self, targets: Targets, like: Tensor) -> Tensor:
        """The label as numbers of another tensor's shape and type."""
        return aligned(targets[self.target].to(like.dtype), like, self.target)

    def read(self, outputs: Outputs) -> Tensor:
        """Numbers ``[B]``, or ``[B, K]`` of classes: a group is of samples, not of positions."""
        logits = logits_of(outputs, self.output)
        if logits.ndim > (2 if self.fairness == "classes" else 1):
            wanted = "[B] or [B, K]" if self.fairness == "classes" else "[B]"
            raise ConfigurationError(
                f"`{self.name}` compares groups of samples, with outputs {wanted}, found "
                f"{list(logits.shape)}: the network must return one value per sample"
            )
        return logits

    def decisions(self, outputs: Outputs) -> Tensor:
        """What is decided, 0 or 1: ``[B]``, or ``[B, K]`` for every class."""
        logits = self.read(outputs)
        if logits.ndim == 1:
            return (logits > 0).double()
        classes = torch.arange(logits.shape[-1], device=logits.device)
        return (logits.argmax(dim=-1, keepdim=True) == classes).double()


class MeanGap(GroupObjective):
    """A gap between the groups' means of some value, for outputs ``[B]`` that are numbers."""

    fairness = "numbers"

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        return self.between(self.value(outputs, targets), targets)

    def score(self, outputs: Outputs, targets: Targets) -> Tensor:
        return self.decided(self.value(outputs, targets), targets)

    @abstractmethod
    def value(self, outputs: Outputs, targets: Targets) -> Tensor:
        """What is averaged in every group: ``[B]``."""

    def moments(self, outputs: Outputs, targets: Targets) -> Tensor:
        value = self.value(outputs, targets).double()
        total, there = self._sums(value, targets)
        squares, _ = self._sums(value.square(), targets)
        weight = targets.get("weight")
        once = torch.ones_like(value) if weight is None else weight.reshape(value.shape).double()
        # rows count as many as tell as much (Kish 1965): (sum of w)² / (sum of w²)
        scale = there / group_sums(once, targets, self.sensitive, self.groups)
        return (torch.stack([total, squares, there], dim=-1) * scale.unsqueeze(-1)).unsqueeze(0)

    def between(self, positive: Tensor, targets: Targets) -> Tensor:
        return gap(group_means(*self._sums(positive, targets)))

    def decided(self, positive: Tensor, targets: Targets) -> Tensor:
        sums, there = self._sums(positive, targets)
        return gap(sums / there)

    def sums(self, outputs: Outputs, targets: Targets) -> Tensor:
        return torch.stack(self._sums(self.value(outputs, targets), targets))

    def from_sums(self, sums: Tensor) -> Tensor:
        total, there = sums.unbind()
        return gap(total / there)

    def _sums(self, values: Tensor, targets: Targets) -> tuple[Tensor, Tensor]:
        sums = group_sums(values, targets, self.sensitive, self.groups)
        return sums, group_sums(torch.ones_like(values), targets, self.sensitive, self.groups)


def group_means(sums: Tensor, there: Tensor) -> Tensor:
    """The groups' means, given their sums and sizes ``[..., groups]``.

    A group that is absent takes part with the mean of all, which is neither largest nor smallest.
    """
    every = there.sum(dim=-1, keepdim=True)
    mean = sums.sum(dim=-1, keepdim=True) / torch.where(every > 0, every, 1.0)
    return torch.where(there > 0, sums / torch.where(there > 0, there, 1.0), mean)


def group_sums(values: Tensor, targets: Targets, sensitive: str, groups: int) -> Tensor:
    """Sums of `values` over the samples of each group: ``[B]`` to ``[groups]``."""
    member = membership(values, targets, sensitive, groups)
    return values.to(member.dtype) @ member


def membership(like: Tensor, targets: Targets, sensitive: str, groups: int) -> Tensor:
    """Who belongs to which group, ``[B, groups]``: 0, or the sample's weight, 1 without any."""
    labels = torch.arange(groups, device=like.device)
    # not F.one_hot, which reads the data back to check it
    member = targets[sensitive].reshape(-1, 1) == labels
    weight, exact = targets.get("weight"), torch.promote_types(like.dtype, torch.float32)
    return member.to(exact) if weight is None else member * weight.reshape(-1, 1).to(exact)


def samples(values: Tensor, targets: Targets) -> Tensor | int:
    """How many samples there are: B, or the sum of their weights."""
    weight = targets.get("weight")
    return values.shape[0] if weight is None else torch.where(weight.sum() > 0, weight.sum(), 1.0)


def largest_known(gaps: Tensor) -> Tensor:
    """The largest gap of a class ``[K]``; NaN only where all are.

    A class of which nothing can be said in some group says nothing of the others.
    """
    largest = torch.where(gaps.isnan(), -torch.inf, gaps).amax()
    return torch.where(largest.isinf(), torch.nan, largest)


def gap(per_group: Tensor) -> Tensor:
    """Largest minus smallest; |a - b| for two groups."""
    return per_group.amax() - per_group.amin()


def fairness_objectives(of: Literal["classes", "numbers"]) -> dict[str, type[GroupObjective]]:
    """The objectives of this room that compare groups, by name.

    Args:
        of: what they compare: predicted classes, or predicted numbers.

    >>> list(fairness_objectives("numbers"))
    ['error_gap', 'prediction_gap']
    """
    every = {name: find("objectives", name) for name in names("objectives")}
    return {
        name: kind
        for name, kind in every.items()
        if isinstance(kind, type) and issubclass(kind, GroupObjective) and kind.fairness == of
    }


def fairness_objective(
    given: str | type[GroupObjective], of: Literal["classes", "numbers"], *, what: str
) -> type[GroupObjective]:
    """The objective that compares groups: by its name in this room, or a class of one's own.

    A name of code elsewhere is not looked up: it may come from a file, which must not import any.

    Args:
        given: the name or the class.
        of: what is predicted.
        what: the setting is called in a refusal.
    """
    if isinstance(given, str):
        known = fairness_objectives(of)
        if given not in known:
            raise unknown(what, given, known)
        return known[given]
    if isinstance(given, type) and issubclass(given, GroupObjective) and given.fairness == of:
        return given
    raise ConfigurationError(
        f'{what} must be a name or a class of objectives that declares `fairness = "{of}"`, found '
        f"{given!r}"
    )
