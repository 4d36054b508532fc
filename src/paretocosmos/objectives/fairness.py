"""Fairness objectives: gaps between sensitive groups, and the loss of the worst group.

Rate gaps are one family. A member says over which rows of a group a rate is taken (`over`), what is
averaged (`counted`, by default positive predictions) and how it is described to people.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from paretocosmos.errors import ConfigurationError, unknown
from paretocosmos.objectives.base import check_power
from paretocosmos.objectives.groups import (
    GroupObjective,
    MeanGap,
    MeansObjective,
    RateObjective,
    compute_gap,
    compute_group_sums,
    find_largest_gap,
    total_weight,
)
from paretocosmos.registry import find, names
from paretocosmos.types import Measure, Outputs, Targets


class DemographicParity(RateObjective):
    """The gap between groups in the share that is predicted positive.

    Every row counts, so it needs no label. The score is fairlearn's
    `demographic_parity_difference`.

    >>> import torch
    >>> DemographicParity().score(torch.ones(4), {"sensitive": torch.tensor([0, 0, 0, 1])})
    tensor(0., dtype=torch.float64)
    """

    measure = Measure("gap in who is selected", "a smaller gap in who is selected", unit="points")
    meaning = (
        "the share that is predicted positive, largest minus smallest over the groups, whether "
        "rightly or not"
    )


class TprGap(RateObjective):
    """Equal opportunity: the gap between groups in the share of positives that are found.

    The score is fairlearn's `equal_opportunity_difference`. With several classes, only those count
    that every group has.

    >>> import torch
    >>> targets = {"label": torch.ones(4), "sensitive": torch.tensor([0, 0, 0, 1])}
    >>> TprGap().score(torch.tensor([1.0, 1.0, 1.0, -1.0]), targets)
    tensor(1., dtype=torch.float64)
    """

    over = ("positives",)
    measure = Measure("gap in who is found", "a smaller gap in who is found", unit="points")
    meaning = (
        "of those who belong to the positive class, the share that is found, largest minus "
        "smallest over the groups (equal opportunity). It says nothing of those wrongly taken for "
        "positive, of how well the probabilities are calibrated, or of how the groups came to "
        "differ"
    )


class FprGap(RateObjective):
    """Predictive equality: the gap between groups in the share of negatives predicted positive.

    The score is fairlearn's `false_positive_rate_difference`.

    >>> import torch
    >>> targets = {"label": torch.zeros(4), "sensitive": torch.tensor([0, 0, 1, 1])}
    >>> FprGap().score(torch.tensor([1.0, -1.0, -1.0, -1.0]), targets)
    tensor(0.5000, dtype=torch.float64)
    """

    over = ("negatives",)
    measure = Measure(
        "gap in who is wrongly selected", "a smaller gap in who is wrongly selected", unit="points"
    )
    meaning = (
        "of those who do not belong to the positive class, the share that is wrongly taken for "
        "positive, largest minus smallest over the groups (predictive equality). It says nothing "
        "of those who are missed"
    )


class EqualizedOdds(RateObjective):
    r"""The larger of two gaps between groups: of true-positive and of false-positive rates.

    .. math:: \max\big(\texttt{tpr\_gap},\ \texttt{fpr\_gap}\big)

    The score is fairlearn's `equalized_odds_difference`.

    >>> import torch
    >>> label, sensitive = torch.tensor([1, 1, 0, 0]), torch.tensor([0, 1, 0, 1])
    >>> targets = {"label": label, "sensitive": sensitive}
    >>> EqualizedOdds().score(torch.tensor([1.0, 1.0, 1.0, -1.0]), targets)
    tensor(1., dtype=torch.float64)
    """

    # two kinds of rows: `compared` takes the larger of their gaps
    over = ("positives", "negatives")
    measure = Measure(
        "larger gap in who is found or wrongly selected",
        "smaller gaps in who is found and who is wrongly selected",
        unit="points",
    )
    meaning = (
        "the share that is predicted positive, once among those who belong to the positive class "
        "and once among the others: the larger of the two gaps, each the largest rate minus the "
        "smallest over the groups"
    )


class SelectionAndTprGap(RateObjective):
    r"""The larger of two gaps between groups: in who is selected, and in who is found.

    .. math:: \max\big(\texttt{demographic\_parity},\ \texttt{tpr\_gap}\big)

    >>> import torch
    >>> label, sensitive = torch.tensor([1, 1, 0, 0]), torch.tensor([0, 1, 0, 1])
    >>> targets = {"label": label, "sensitive": sensitive}
    >>> SelectionAndTprGap().score(torch.tensor([1.0, 1.0, 1.0, -1.0]), targets)
    tensor(0.5000, dtype=torch.float64)
    """

    over = ("positives", "all")
    measure = Measure(
        "larger gap in who is found or selected",
        "smaller gaps in who is found and who is selected",
        unit="points",
    )
    meaning = (
        "the share that is predicted positive, once among those who belong to the positive class "
        "and once among all: the larger of the two gaps, each the largest rate minus the smallest "
        "over the groups. Where the groups differ in how many belong to the positive class, "
        "closing both costs more accuracy than closing one"
    )


class AccuracyGap(RateObjective):
    r"""The gap between groups in the share that is classified correctly.

    .. math:: \max_g \frac{\sum_{a=g} |y - t|}{\#\{a=g\}}
              - \min_g \frac{\sum_{a=g} |y - t|}{\#\{a=g\}}

    The score is fairlearn's `accuracy_score_difference`. With several classes, a decision is right
    if it is the row's own class.

    >>> import torch
    >>> targets = {"label": torch.ones(4), "sensitive": torch.tensor([0, 0, 1, 1])}
    >>> AccuracyGap().score(torch.tensor([1.0, 1.0, 1.0, -1.0]), targets)
    tensor(0.5000, dtype=torch.float64)
    """

    measure = Measure("gap in wrong answers", "a smaller gap in wrong answers", unit="points")
    meaning = (
        "the share that is classified rightly, largest minus smallest over the groups. It can be "
        "closed by more mistakes in the group that fares better, and says nothing of which "
        "mistakes are made"
    )

    def each_class(
        self, positive: Tensor, targets: Targets, function: Callable[[Tensor, Targets], Tensor]
    ) -> Tensor:
        # one gap, not one per class: of the decisions for the row's own class
        label = targets[self.target].reshape(-1, 1).long()
        right = positive.gather(-1, label).squeeze(-1)
        # with all labels 1, `counted` is the share of wrong answers
        return function(right, {**targets, self.target: torch.ones_like(right)}).unsqueeze(0)

    def counted(self, positive: Tensor, targets: Targets) -> Tensor:
        # the gap in wrong answers is that in right ones
        return (self.label(targets, positive) - positive).abs()


class WorstGroup(MeansObjective):
    r"""The largest cross-entropy of a group, as loss and as score.

    .. math:: \max_g \frac{1}{\#\{a=g\}} \sum_{a=g} -\log p(y)

    which is fairlearn's `log_loss_group_max`. It is not a gap: worse predictions for other groups
    do not make it smaller. The score is the cross-entropy, not the share of wrong decisions,
    because that is the training loss and can be compared with the overall cross-entropy on the
    other axis.

    >>> import torch
    >>> targets = {"label": torch.ones(3), "sensitive": torch.tensor([0, 0, 1])}
    >>> WorstGroup().score(torch.tensor([9.0, 9.0, 0.0]), targets)
    tensor(0.6931)
    """

    measure = Measure(
        "loss of the group that fares worst", "a smaller loss of the group that fares worst"
    )
    meaning = (
        "the cross-entropy in the group where it is largest. It says nothing of the other groups "
        "but that they fare no worse"
    )

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        return self.between(self._entropies(outputs, targets), targets)

    def score(self, outputs: Outputs, targets: Targets) -> Tensor:
        return self.decided(self._entropies(outputs, targets), targets)

    def sums(self, outputs: Outputs, targets: Targets) -> Tensor:
        # totals and sizes only: the squares serve the correction of the gradient
        return self._sums(self._entropies(outputs, targets), targets)[:2]

    def _entropies(self, outputs: Outputs, targets: Targets) -> Tensor:
        logits = self.read(outputs)
        if logits.ndim == 1:
            label = self.label(targets, logits)
            return F.binary_cross_entropy_with_logits(logits, label, reduction="none")
        return F.cross_entropy(logits, targets[self.target].reshape(-1).long(), reduction="none")

    def compared(self, rates: Tensor) -> Tensor:
        return rates.amax()

    def smooth_derivatives(
        self, rates: Tensor, temperature: Tensor, known: Tensor
    ) -> tuple[Tensor, Tensor]:
        # τ log Σ exp(rate / τ) over the groups
        # a softmax over nothing would be NaN
        taking_part = known | ~known.any()
        share = torch.where(taking_part, rates / temperature, -torch.inf).flatten().softmax(dim=0)
        share = share.reshape(rates.shape)
        # the softmax, and the diagonal of its Jacobian
        return share, (share - share.square()) / temperature


@dataclass(kw_only=True, eq=False, repr=False)
class Deo(GroupObjective):
    r"""Difference of equality of opportunity, counted over the batch as in the paper (section 5.3).

    .. math:: \frac1B \Big| \sum_{a=0,\,y=1} t - \sum_{a=1,\,y=1} t \Big|

    with t = tanh(c σ(logit)) as the loss and t = [logit > 0] as the score. The published code takes
    the absolute value and the sigmoid, which the printed equation leaves out.

    It compares *counts*: a fair classifier scores 0 only if the groups have equally many positives.
    Use `tpr_gap` or `demographic_parity` for differences of rates, as in the fairness literature;
    use this one to reproduce the paper. Several groups: largest minus smallest.

    Args:
        steepness: c.

    >>> import torch
    >>> targets = {"label": torch.ones(4), "sensitive": torch.tensor([0, 0, 0, 1])}
    >>> Deo().score(torch.ones(4), targets)
    tensor(0.5000, dtype=torch.float64)
    """

    over = ()  # a group that is absent counts 0
    measure = Measure(
        "gap in how many are found", "a smaller gap in how many are found", unit="points"
    )
    meaning = (
        "the difference of how many positives are found in the groups, over all rows. It compares "
        "counts: groups of different sizes have different ones even where their chances are equal, "
        "so read `tpr_gap` for the gap between rates"
    )

    steepness: float = 1.0

    def relax(self, probability: Tensor) -> Tensor:
        # The published code passes the probability through max(0, ·) too, which changes nothing.
        return torch.tanh(probability if self.steepness == 1 else self.steepness * probability)

    def sums(self, outputs: Outputs, targets: Targets) -> Tensor:
        """Return the true positives of every group, and the number of samples: ``[groups + 1]``."""

        def of_one(positive: Tensor, targets: Targets) -> Tensor:
            hits = positive * self.label(targets, positive)
            counts = compute_group_sums(hits, targets, self.sensitive, self.groups)
            weight = targets.get("weight")
            size = counts.new_full((), len(hits)) if weight is None else weight.sum()
            # in one tensor, so that batches just add up
            return torch.cat([counts, size.to(counts.dtype).reshape(1)])

        decisions = self.decisions(outputs)
        if decisions.ndim == 1:
            return of_one(decisions, targets)
        return self.each_class(decisions, targets, of_one)

    def from_sums(self, sums: Tensor) -> Tensor:
        # several classes have a row of sums each
        if sums.ndim == 1:
            return compute_gap(sums[:-1]) / torch.where(sums[-1] > 0, sums[-1], 1.0)
        return find_largest_gap(torch.vmap(self.from_sums)(sums))

    def between(self, positive: Tensor, targets: Targets) -> Tensor:
        hits = positive * self.label(targets, positive)
        # the paper has two groups; of more, the two that are furthest apart count
        if self.groups > 2:
            counts = compute_group_sums(hits, targets, self.sensitive, self.groups)
            return compute_gap(counts) / total_weight(hits, targets)
        # two groups are one signed sum: half the operations
        weight, group = targets.get("weight"), targets[self.sensitive].reshape(hits.shape)
        signed = hits * ((group == 0).to(hits.dtype) - (group == 1).to(hits.dtype))
        if weight is not None:
            signed = signed * weight.reshape(hits.shape)
        return signed.sum().abs() / total_weight(hits, targets)


@dataclass(kw_only=True, eq=False, repr=False)
class ErrorGap(MeanGap):
    """Largest minus smallest mean error of a group, for predictions that are numbers ``[B]``.

    Args:
        power: 2 for the squared error, 1 for the absolute.

    >>> import torch
    >>> targets = {"label": torch.zeros(3), "sensitive": torch.tensor([0, 0, 1])}
    >>> ErrorGap().score(torch.tensor([1.0, 1.0, 3.0]), targets)
    tensor(8.)
    """

    measure = Measure("gap in errors", "a smaller gap in errors")
    meaning = (
        "the mean error of a group, largest minus smallest over the groups. It says nothing of "
        "whether predictions are too high for one group and too low for another"
    )

    power: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        check_power(self.power)

    def value(self, outputs: Outputs, targets: Targets) -> Tensor:
        output = self.read(outputs)
        error = output - self.label(targets, output)
        return error.square() if self.power == 2 else error.abs()

    def unit(self, scale: float) -> float:
        return scale**self.power


class PredictionGap(MeanGap):
    """Largest minus smallest mean prediction of a group, for predictions that are numbers ``[B]``.

    Demographic parity for a number instead of a decision.

    >>> import torch
    >>> PredictionGap().score(torch.tensor([1.0, 2.0, 5.0]), {"sensitive": torch.tensor([0, 0, 1])})
    tensor(3.5000)
    """

    measure = Measure("gap in average predictions", "a smaller gap in predictions")
    meaning = (
        "the mean prediction for a group, largest minus smallest over the groups, whether the "
        "groups differ in truth or not"
    )

    def value(self, outputs: Outputs, targets: Targets) -> Tensor:
        return self.read(outputs)

    def unit(self, scale: float) -> float:
        return scale


def fairness_objectives(of: Literal["classes", "numbers"]) -> dict[str, type[GroupObjective]]:
    """Return the objectives that compare groups, by name.

    Args:
        of: what they compare: predicted classes, or predicted numbers.

    >>> list(fairness_objectives("numbers"))
    ['error_gap', 'prediction_gap']
    """
    # only registered ones, whose names may stand in files
    kinds = {name: find("objectives", name) for name in names("objectives")}
    return {
        name: kind
        for name, kind in kinds.items()
        if isinstance(kind, type) and issubclass(kind, GroupObjective) and kind.fairness == of
    }


def fairness_objective(
    fairness: str | type[GroupObjective] | None,
    of: Literal["classes", "numbers"],
    setting: str = "fairness objective",
) -> type[GroupObjective]:
    """Return the objective that compares groups, given its registered name or a class.

    A name of code elsewhere is not looked up: it may come from a file, which must not import any.

    Args:
        fairness: the name or the class; the usual one if `None`.
        of: the kind of prediction.
        setting: the name of the setting in an error message.
    """
    fairness = fairness or ("tpr_gap" if of == "classes" else "error_gap")
    if isinstance(fairness, str):
        objectives = fairness_objectives(of)
        if fairness not in objectives:
            raise unknown(setting, fairness, objectives)
        return objectives[fairness]
    # `issubclass` raises for anything that is no class
    is_class = isinstance(fairness, type) and issubclass(fairness, GroupObjective)
    if isinstance(fairness, list | tuple | dict):
        raise ConfigurationError(
            f"{setting} must be one measure, found {len(fairness)}: take one that covers several, "
            "such as `selection_and_tpr_gap` or `equalized_odds`, or bound the others in `choose`"
        )
    if not is_class or fairness.fairness != of:
        raise ConfigurationError(
            f"{setting} must be a name or a class of objectives that declares "
            f'`fairness = "{of}"`, found {fairness!r}'
        )
    return fairness
