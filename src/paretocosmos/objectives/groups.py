"""Sensitive groups: the contract of objectives that compare them, and sums over their samples."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from paretocosmos.errors import ConfigurationError
from paretocosmos.objectives.base import Objective, align, logits_of
from paretocosmos.types import Outputs, Targets

# The rank correlation of what is trained and what is counted: docs/decisions/fairness.md.
SHARPNESS = 0.05
Rows = Literal["all", "positives", "negatives"]

# Every prediction is compared with every group.
MOST_GROUPS = 1000


@dataclass(kw_only=True, eq=False, repr=False)
class GroupObjective(Objective):
    """A gap between sensitive groups: of probabilities in training, of decisions in the score.

    A subclass computes the gap in `between`. Several logits per sample are classes: each class has
    a gap, as if it were the positive one and all others negative, and the largest gap counts.

    Args:
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

    # the score reads decisions alone, so that a threshold can still be moved afterwards
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
        """Return how positive a prediction is, differentiably: ``[B]`` to ``[B]``.

        Or ``[B, K]`` to ``[B, K]`` for the probabilities of K classes.
        """
        return probability

    @abstractmethod
    def between(self, positive: Tensor, targets: Targets) -> Tensor:
        """Return the gap, given how positive each sample's prediction is: ``[B]`` to a scalar."""

    def decided(self, positive: Tensor, targets: Targets) -> Tensor:
        """Return the gap of decisions, 0 or 1 for each sample: ``[B]`` to a scalar."""
        return self.between(positive, targets)

    def of_classes(
        self, positive: Tensor, targets: Targets, between: Callable[[Tensor, Targets], Tensor]
    ) -> Tensor:
        """Return the largest gap of a class against the rest: ``[B, K]`` to a scalar."""
        return find_largest_gap(self.each_class(positive, targets, between))

    def each_class(
        self, positive: Tensor, targets: Targets, function: Callable[[Tensor, Targets], Tensor]
    ) -> Tensor:
        """Apply a function to every class against the rest: ``[B, K]`` to ``[K, ...]``."""
        classes = torch.arange(positive.shape[-1], device=positive.device)
        # some gaps need no label, such as demographic parity
        labels = targets.get(self.target, positive.new_zeros(len(positive)))

        def of_one(positive: Tensor, class_: Tensor) -> Tensor:
            return function(positive, {**targets, self.target: labels == class_})

        # vectorised, since there may be a hundred classes
        return torch.vmap(of_one)(positive.movedim(-1, 0), classes)

    def label(self, targets: Targets, like: Tensor) -> Tensor:
        """Return the label as numbers of another tensor's shape and type."""
        return align(targets[self.target].to(like.dtype), like, self.target)

    def read(self, outputs: Outputs) -> Tensor:
        """Return outputs ``[B]``, or ``[B, K]`` of classes; others have no value per sample."""
        logits = logits_of(outputs, self.output)
        if logits.ndim > (2 if self.fairness == "classes" else 1):
            wanted = "[B] or [B, K]" if self.fairness == "classes" else "[B]"
            raise ConfigurationError(
                f"`{self.name}` compares groups of samples, with outputs {wanted}, found "
                f"{list(logits.shape)}: the network must return one value per sample"
            )
        return logits

    def decisions(self, outputs: Outputs) -> Tensor:
        """Return the decisions, 0 or 1: ``[B]``, or ``[B, K]`` for every class."""
        logits = self.read(outputs)
        if logits.ndim == 1:
            # float64, since float32 counts only to 16 million
            return (logits > 0).double()
        classes = torch.arange(logits.shape[-1], device=logits.device)
        return (logits.argmax(dim=-1, keepdim=True) == classes).double()


class MeansObjective(GroupObjective):
    """A comparison of the groups' means: of some quantity, over some rows of every group.

    A subclass says which rows (`over`) and what is averaged (`counted`): by default all rows, and
    positive predictions. The value is the largest mean minus the smallest; if `over` names several
    kinds of rows, the largest of these gaps.

    A group without such rows is left out of a training batch; in the score of a whole split it
    makes the value NaN.
    """

    def counted(self, positive: Tensor, targets: Targets) -> Tensor:
        """Return what is averaged, given how positive each prediction is: ``[B]`` to ``[B]``."""
        return positive

    def compared(self, rates: Tensor) -> Tensor:
        """Reduce means ``[kinds of rows, groups]`` to a scalar."""
        return (rates.amax(dim=-1) - rates.amin(dim=-1)).amax()

    def smooth_derivatives(
        self, rates: Tensor, temperature: Tensor, known: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the first and second derivatives of a smooth `compared` by every rate.

        Args:
            rates: ``[kinds of rows, groups]``.
            temperature: τ; differences far below it count as none.
            known: which of the rates are known; the others take no part.
        """
        # τ log Σ exp(difference / τ) over ordered pairs of groups, each with itself too
        pairs = known.unsqueeze(-1) & known.unsqueeze(-2)
        # a group's difference from itself is 0, so that the softmax is never over nothing
        pairs = pairs | torch.eye(self.groups, device=rates.device, dtype=torch.bool)
        apart = (rates.unsqueeze(-1) - rates.unsqueeze(-2)) / temperature
        share = torch.where(pairs, apart, -torch.inf).flatten().softmax(dim=0).reshape(apart.shape)
        high, low = share.sum(dim=-1), share.sum(dim=-2)
        first = high - low
        diagonal = share.diagonal(dim1=-2, dim2=-1)
        # a rate's sign in a difference is +1, -1 or 0: its variance under `share`, over τ
        return first, (high + low - 2 * diagonal - first.square()) / temperature

    def between(self, positive: Tensor, targets: Targets) -> Tensor:
        total, size, squares, squared_weights = self._sums(positive, targets)
        rates = compute_group_means(total, size)
        # the effective number of rows (Kish 1965); a single row says nothing about noise
        rows = size.square() / torch.where(squared_weights > 0, squared_weights, 1.0)
        is_known = rows > 1
        variance = squares / torch.where(size > 0, size, 1.0) - rates.square()
        # rounding may leave a variance below 0; n - 1 makes that of the mean unbiased
        noise = torch.where(
            is_known, variance.clamp(min=0) / torch.where(is_known, rows - 1, 1.0), 0.0
        )
        return self._correct_gradient(rates, noise, is_known)

    def decided(self, positive: Tensor, targets: Targets) -> Tensor:
        return self.compared(self.rates(positive, targets))

    def rates(self, positive: Tensor, targets: Targets) -> Tensor:
        """Return the means ``[kinds of rows, groups]`` of decisions, 0 or 1 for each sample."""
        total, size, *_ = self._sums(positive, targets)
        # 0 / 0 is NaN on purpose: a split without such rows has no rate
        rates: Tensor = total / size
        return rates

    def sums(self, outputs: Outputs, targets: Targets) -> Tensor:
        """Return totals and sizes ``[2, kinds of rows, groups]``, per class if several."""
        decisions = self.decisions(outputs)
        if decisions.ndim == 1:
            return self._sums(decisions, targets)[:2]
        return self.each_class(decisions, targets, lambda *args: self._sums(*args)[:2])

    def from_sums(self, sums: Tensor) -> Tensor:
        total, size = sums.unbind(dim=-3)
        if sums.ndim == 3:
            return self.compared(total / size)
        return find_largest_gap(torch.vmap(self.compared)(total / size))

    def sizes(self, like: Tensor, targets: Targets) -> Tensor:
        """Return the weight of the samples behind each mean, ``[kinds of rows, groups]``."""
        size: Tensor = self._sums(like, targets)[1]
        return size

    @property
    def linear(self) -> bool:
        """`True` if rates are compared as they are, so that the gap can be closed by a formula."""
        return type(self).compared is MeansObjective.compared

    def moments(self, outputs: Outputs, targets: Targets) -> Tensor | None:
        if not self.linear:
            return None
        decisions = self.decisions(outputs)
        if decisions.ndim == 1:
            return self._moments(decisions, targets)
        return self.each_class(decisions, targets, self._moments).flatten(0, 1)

    def _moments(self, positive: Tensor, targets: Targets) -> Tensor:
        total, size, squares, squared_weights = self._sums(positive, targets)
        # to the effective number of rows (Kish 1965)
        scale = size / torch.where(squared_weights > 0, squared_weights, 1.0)
        moments: Tensor = torch.stack([total, squares, size], dim=-1) * scale.unsqueeze(-1)
        return moments

    def _correct_gradient(self, rates: Tensor, noise: Tensor, is_known: Tensor) -> Tensor:
        r"""Return the value of `compared`, with a gradient that a batch's noise does not bias.

        A gap of a batch grows with the noise of its rates: E|d| > |E d|. Its plain gradient lowers
        the noise too, until everybody gets the same answer, which has none. For a smooth function
        Φ of rates r with independent normal noise of variances v, Stein's lemma has

        .. math:: E\,\nabla\Phi(r) = \sum_g E[\Phi_g]\,\nabla E[r_g]
                  + \tfrac12 \sum_g E[\Phi_{gg}]\,\nabla v_g

        and the second sum is subtracted.
        """
        fixed, variance = rates.detach(), noise.detach()
        # the typical noise of a difference of two rates; clamped for batches that have none
        temperature = (2 * variance.sum() / is_known.sum().clamp(min=1)).sqrt().clamp(min=1e-6)
        first, second = self.smooth_derivatives(fixed, temperature, is_known)
        # zero in value: only its gradient counts
        steered = (first * rates - second * noise / 2).sum()
        return self.compared(fixed) + steered - steered.detach()

    def _sums(self, positive: Tensor, targets: Targets) -> Tensor:
        """Return sums ``[4, kinds of rows, groups]``: of values, rows, squared values and weights.

        Rows are counted by their weights, so that the last is a sum of squared weights.
        """
        values = self.counted(positive, targets)
        weight, columns = targets.get("weight"), []
        for rows in self.over:
            chosen = torch.ones_like(positive)
            if rows != "all":
                label = self.label(targets, positive)
                chosen = label if rows == "positives" else 1 - label
            # `member` has the weight once, so this column adds up to squared weights
            weighted = chosen if weight is None else chosen * weight.reshape(chosen.shape)
            columns += [values * chosen, chosen, values.square() * chosen, weighted]
        member = compute_membership(positive, targets, self.sensitive, self.groups)
        # one matrix product for all sums: on small batches every kernel counts
        sums = torch.stack([column.to(member.dtype) for column in columns]) @ member
        return sums.reshape(len(self.over), 4, self.groups).movedim(1, 0)


@dataclass(kw_only=True, eq=False, repr=False)
class RateObjective(MeansObjective):
    r"""A gap between rates: a rate is the mean of a decision over some rows of a group.

    .. math:: \max_g \frac{\sum_{a=g} t}{\#\{a=g\}} - \min_g \frac{\sum_{a=g} t}{\#\{a=g\}}

    over all rows, over those with y = 1 or over those with y = 0, as `over` says; if it names
    several kinds of rows, the largest of their gaps counts. In training a decision is
    t = σ(logit / s), where s is the `sharpness`; in the score it is t = [logit > 0]. A group
    without such rows is left out of a training batch; in the score of a whole split it makes the
    value NaN. With several classes, the largest gap of one class against the rest counts.

    The noise of a batch makes its gap too large, except for a constant classifier; the gradient is
    corrected for that.

    Args:
        sharpness: how close the relaxed decision is to the hard one: smaller is closer. Plain
            probabilities (1) close a gap that the decisions still have.

    >>> class MissedGap(RateObjective):  # among those who should get a yes, how many do not?
    ...     over = ("positives",)
    ...
    ...     def counted(self, positive, targets):
    ...         return 1 - positive
    >>> targets = {"label": torch.tensor([1, 1, 1, 0]), "sensitive": torch.tensor([0, 0, 1, 1])}
    >>> MissedGap().score(torch.tensor([2.0, -1.0, 1.0, 1.0]), targets)  # 1 of 2 and 0 of 1
    tensor(0.5000, dtype=torch.float64)
    """

    sharpness: float = SHARPNESS

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.sharpness > 0:
            raise ConfigurationError(
                f"`sharpness` must be above 0, found {self.sharpness}: try {SHARPNESS}"
            )

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        return super().loss(logits_of(outputs, self.output) / self.sharpness, targets)


class LowestTpr(MeansObjective):
    """The share of positives that is found in the group where it is lowest; a metric to bound.

    >>> targets = {"label": torch.ones(4), "sensitive": torch.tensor([0, 0, 1, 1])}
    >>> LowestTpr().score(torch.tensor([1.0, 1.0, 1.0, -1.0]), targets)
    tensor(0.5000, dtype=torch.float64)
    """

    over = ("positives",)

    def compared(self, rates: Tensor) -> Tensor:
        return rates.amin()


class MeanGap(MeansObjective):
    """A gap between the groups' means of some value, for outputs ``[B]`` that are numbers.

    A group that a training batch lacks is left out there; in the score of a whole split it makes
    the gap NaN.
    """

    fairness = "numbers"

    @abstractmethod
    def value(self, outputs: Outputs, targets: Targets) -> Tensor:
        """Return what is averaged in every group: ``[B]``."""

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        return self.between(self.value(outputs, targets), targets)

    def score(self, outputs: Outputs, targets: Targets) -> Tensor:
        return self.decided(self.value(outputs, targets), targets)

    def between(self, positive: Tensor, targets: Targets) -> Tensor:
        total, size, *_ = self._sums(positive, targets)
        return self.compared(compute_group_means(total, size))

    def sums(self, outputs: Outputs, targets: Targets) -> Tensor:
        return self._sums(self.value(outputs, targets), targets)[:2]

    def moments(self, outputs: Outputs, targets: Targets) -> Tensor:
        return self._moments(self.value(outputs, targets).double(), targets)


def compute_group_means(sums: Tensor, sizes: Tensor) -> Tensor:
    """Return the groups' means, given their sums and sizes ``[..., groups]``.

    A group that is absent takes part with the mean of all, which is neither largest nor smallest.
    """
    total = sizes.sum(dim=-1, keepdim=True)
    mean = sums.sum(dim=-1, keepdim=True) / torch.where(total > 0, total, 1.0)
    return torch.where(sizes > 0, sums / torch.where(sizes > 0, sizes, 1.0), mean)


def compute_group_sums(values: Tensor, targets: Targets, sensitive: str, groups: int) -> Tensor:
    """Return the sums of `values` over the samples of each group: ``[B]`` to ``[groups]``."""
    member = compute_membership(values, targets, sensitive, groups)
    return values.to(member.dtype) @ member


def compute_membership(like: Tensor, targets: Targets, sensitive: str, groups: int) -> Tensor:
    """Return ``[B, groups]``: the sample's weight (1 without any) in its group, 0 in the others."""
    labels = torch.arange(groups, device=like.device)
    # not F.one_hot, which reads the data back to check it
    member = targets[sensitive].reshape(-1, 1) == labels
    # float16 counts only to 2048
    weight, exact = targets.get("weight"), torch.promote_types(like.dtype, torch.float32)
    return member.to(exact) if weight is None else member * weight.reshape(-1, 1).to(exact)


def total_weight(values: Tensor, targets: Targets) -> Tensor | int:
    """Return the number of samples: B, or the sum of their weights."""
    weight = targets.get("weight")
    return values.shape[0] if weight is None else torch.where(weight.sum() > 0, weight.sum(), 1.0)


def find_largest_gap(gaps: Tensor) -> Tensor:
    """Return the largest gap of the classes ``[K]``; NaN only if all are.

    Skip classes that are absent from a group.
    """
    # torch has no `nanmax`, and selecting by a mask cannot be vmapped
    largest = torch.where(gaps.isnan(), -torch.inf, gaps).amax()
    return torch.where(largest.isinf(), torch.nan, largest)


def compute_gap(per_group: Tensor) -> Tensor:
    """Return the largest value minus the smallest; |a - b| for two groups."""
    return per_group.amax() - per_group.amin()
