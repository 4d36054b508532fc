"""Cross-entropies of classes, and errors of numbers."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from paretocosmos.errors import ConfigurationError
from paretocosmos.objectives.base import (
    LabelMean,
    Objective,
    Parts,
    align,
    check_axis,
    check_power,
    classes_last,
    known_numbers,
    logits_of,
    pick,
    sample_weights,
    weighted_mean,
    weighted_sums,
)
from paretocosmos.objectives.groups import total_weight
from paretocosmos.types import Measure, Outputs, Targets


@dataclass(kw_only=True, eq=False, repr=False)
class Classification(LabelMean):
    """A cross-entropy whose classes may weigh differently, and whose labels may be smoothed."""

    measure = Measure(
        "loss (cross-entropy)",
        "fewer and less confident mistakes",
        "How far the predicted probabilities are from the truth: a confident mistake costs most.",
    )

    class_weight: Sequence[float] | None = None
    label_smoothing: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.label_smoothing < 1:
            raise ConfigurationError(
                f"`label_smoothing` must be from 0 to below 1, found {self.label_smoothing}"
            )
        if self.class_weight is None:
            return
        # plain numbers, even from a tensor, so that a run can record them
        weights = tuple(float(weight) for weight in self.class_weight)
        # with all of them 0 there would be nothing to learn
        if not any(weights) or any(not 0 <= weight < float("inf") for weight in weights):
            raise ConfigurationError(
                "`class_weight` must have one number for every class, 0 or more, not all 0; found "
                f"{self.class_weight}"
            )
        self.class_weight = weights

    def check_classes(self, classes: int) -> None:
        """Raise if there is a weight for more or fewer classes."""
        if self.class_weight is not None and len(self.class_weight) != classes:
            raise ConfigurationError(
                f"`class_weight` of `{self.name}` must have one number for each of {classes} "
                f"classes, found {len(self.class_weight)}"
            )


@dataclass(kw_only=True, eq=False, repr=False)
class BinaryCrossEntropy(Classification):
    """Binary cross-entropy of logits ``[B]`` or ``[B, 1]`` with labels in {0, 1}.

    Args:
        ignore_nan: whether a label may be NaN, for samples that have none; they count for nothing.
        class_weight: what the negative and the positive class count for.
        label_smoothing: the share of the label that is spread over both classes.
        weight: the target that says what each sample counts for, where there is one of that name.

    >>> import torch
    >>> BinaryCrossEntropy().loss(torch.zeros(4), {"label": torch.tensor([0.0, 1.0, 1.0, 0.0])})
    tensor(0.6931)
    """

    ignore_nan: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_classes(2)

    @property
    def missing(self) -> float | None:
        return float("nan") if self.ignore_nan else None

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        # torch's fused loss wherever the losses of single samples are not needed
        plain = self.class_weight is None and not (self.ignore_nan or self.label_smoothing)
        if plain and self.weight not in targets:
            return F.binary_cross_entropy_with_logits(*self._read_logits(outputs, targets))
        return super().loss(outputs, targets)

    def sums(self, outputs: Outputs, targets: Targets) -> Tensor:
        return super().sums(outputs, targets)  # of the loss above, too

    def parts(self, outputs: Outputs, targets: Targets) -> Parts:
        logits, label = self._read_logits(outputs, targets)
        label, present = known_numbers(label, self.ignore_nan)
        weights = sample_weights(logits, targets, self.weight)
        if self.class_weight is not None:
            negative, positive = self.class_weight
            # linear in the label, so that labels between 0 and 1 are weighted in proportion
            of_class = negative + (positive - negative) * label
            weights = of_class if weights is None else of_class * weights
        if self.label_smoothing:
            # after the class weights, which go by the true label
            label = label + self.label_smoothing * (0.5 - label)
        losses = F.binary_cross_entropy_with_logits(logits, label, reduction="none")
        return Parts(losses, present, weights)

    def _read_logits(self, outputs: Outputs, targets: Targets) -> tuple[Tensor, Tensor]:
        logits = logits_of(outputs, self.output)
        return logits, align(targets[self.target].to(logits.dtype), logits, self.target)


@dataclass(kw_only=True, eq=False, repr=False)
class CrossEntropy(Classification):
    """Cross-entropy of class logits ``[B, K]`` with labels ``[B]``, averaged over all labels.

    Dense labels ``[B, ...]`` take logits with the classes second, ``[B, K, ...]``, as torch has
    them, or last, ``[B, ..., K]``, as language models give them.

    Args:
        axis: of the classes, 1 or -1; the one that fits the labels if `None`.
        ignore_index: the label that means there is none; such samples or pixels count for nothing.
        class_weight: what each class counts for, as in `torch.nn.CrossEntropyLoss`.
        label_smoothing: the share of the label that is spread over all classes.
        weight: the target that says what each sample counts for, where there is one of that name.

    >>> import torch
    >>> CrossEntropy().loss(torch.zeros(4, 2), {"label": torch.tensor([0, 1, 1, 0])})
    tensor(0.6931)
    """

    axis: int | None = None
    ignore_index: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_axis(self.axis)

    @property
    def missing(self) -> float | None:
        return self.ignore_index

    def parts(self, outputs: Outputs, targets: Targets) -> Parts:
        # `gather` takes only int64 indices
        labels, logits = targets[self.target].long(), self._logits(outputs, targets)
        # not F.cross_entropy, which under vmap asks twice for labels to ignore: on a GPU half of
        # the kernels of a small network's loss
        logarithms = F.log_softmax(logits, dim=-1)
        present = None if self.ignore_index is None else labels != self.ignore_index
        if present is not None:
            # any valid class will do: `gather` reads it, and `present` leaves it out
            labels = labels.where(present, 0)
        losses, counted = -logarithms.gather(-1, labels.unsqueeze(-1)).squeeze(-1), None
        spread = logarithms
        if self.class_weight is not None:
            self.check_classes(logarithms.shape[-1])
            weights = logarithms.new_tensor(self.class_weight)
            counted, spread = weights[labels], logarithms * weights
            losses = losses * counted
        if self.label_smoothing:
            # (1 - ε) times the loss plus ε times the mean loss over all classes, as torch smooths
            losses = losses - self.label_smoothing * (losses + spread.mean(dim=-1))
        return Parts(losses, present, sample_weights(losses, targets, self.weight), counted)

    def classes(self, outputs: Outputs, targets: Targets) -> int:
        """Return the number of classes of a network, given its outputs for some targets."""
        return self._logits(outputs, targets).shape[-1]

    def _logits(self, outputs: Outputs, targets: Targets) -> Tensor:
        output, labels = pick(outputs, self.output), targets[self.target]
        return classes_last(output, labels, self.axis, self.target)


@dataclass(kw_only=True, eq=False, repr=False)
class ClassLoss(Objective):
    r"""Cross-entropy averaged over the samples of one class: what it costs to miss that class.

    .. math:: \frac{1}{\#\{y = c\}} \sum_{y = c} -\log p_c

    One for every class makes the weight of each a preference: equal weights balance the classes,
    however rare they are. Logits are ``[B]`` or ``[B, 1]`` with labels 0 and 1, or ``[B, K]``. A
    batch without the class costs nothing; in the score of a whole split that is NaN.

    Args:
        of: the class, numbered from 0.
        axis: of the classes, where there are several: 1 or -1; the one that fits the labels if
            `None`.
        share: of the samples that are of the class, where it is known: a batch's sum is then
            divided by how many it should have, so that batches without a rare class do not make
            it cheaper.

    >>> ClassLoss(of=1).loss(torch.zeros(4), {"label": torch.tensor([0.0, 1.0, 1.0, 0.0])})
    tensor(0.6931)
    """

    measure = Measure(
        "loss of one class",
        "fewer misses of the class",
        "What it costs to miss a class: the cross-entropy over its own rows.",
    )

    of: int = 1
    share: float | None = None
    axis: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_axis(self.axis)
        if self.of < 0:
            raise ConfigurationError(f"`of` must be a class, numbered from 0, found {self.of}")
        if self.share is not None and not 0 < self.share <= 1:
            raise ConfigurationError(f"`share` must lie between 0 and 1, found {self.share}")

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        total, size = self.sums(outputs, targets).unbind()
        if self.share is not None:
            # one after the other: all weights times 2 then change no bit
            return total / total_weight(targets[self.target], targets) / self.share
        return total / torch.where(size > 0, size, 1.0)

    def score(self, outputs: Outputs, targets: Targets) -> Tensor:
        return self.from_sums(self.sums(outputs, targets))

    def from_sums(self, sums: Tensor) -> Tensor:
        total, size = sums.unbind()
        # NaN without the class, unlike the loss: such a split has no value
        return total / size

    def sums(self, outputs: Outputs, targets: Targets) -> Tensor:
        """Return the loss summed over the samples of the class, and their number: ``[2]``."""
        logits, label = logits_of(outputs, self.output), targets[self.target]
        if logits.ndim == 1:
            # log(1 + exp(-z)) for the positive class, log(1 + exp(z)) for the negative
            losses = F.softplus(-logits if self.of else logits)
        else:
            last = classes_last(logits, label, self.axis, self.target)
            losses = -F.log_softmax(last, dim=-1)[..., self.of]
        # a mask of factors: selecting rows would give shapes that depend on the data
        member = (align(label, losses, self.target) == self.of).to(losses.dtype)
        if "weight" in targets:
            member = member * align(targets["weight"], losses, "weight")
        return torch.stack([(losses * member).sum(), member.sum()])


@dataclass(kw_only=True, eq=False, repr=False)
class NumberMean(LabelMean):
    """The mean of a distance between outputs and numbers, which may be NaN if `ignore_nan`."""

    # off by default, so that a NaN in the data is noticed
    ignore_nan: bool = False

    @property
    def missing(self) -> float | None:
        return float("nan") if self.ignore_nan else None

    @abstractmethod
    def distance(self, difference: Tensor) -> Tensor:
        """Return the error of every output, given its signed difference from the target."""

    def parts(self, outputs: Outputs, targets: Targets) -> Parts:
        output = pick(outputs, self.output)
        target, present = known_numbers(targets[self.target], self.ignore_nan)
        # aligned first: `[B]` minus `[B, 1]` would broadcast to `[B, B]`
        errors = self.distance(output - align(target, output, self.target))
        if present is not None:
            # `align` has made sure that only axes of length 1 differ
            present = present.reshape(output.shape)
        return Parts(errors, present, sample_weights(errors, targets, self.weight))


@dataclass(kw_only=True, eq=False, repr=False)
class MeanSquaredError(NumberMean):
    """Squared distance of outputs and targets, averaged over samples and components.

    Args:
        ignore_nan: whether a target may be NaN where there is none; it counts for nothing.
        weight: the target that says what each sample counts for, where there is one of that name.

    >>> import torch
    >>> MeanSquaredError().loss(torch.zeros(2, 3), {"label": torch.ones(2, 3)})
    tensor(1.)
    """

    measure = Measure(
        "squared error",
        "smaller errors",
        "The mean squared distance of predictions from the truth, in units of the variance.",
    )

    def distance(self, difference: Tensor) -> Tensor:
        return difference.square()

    def unit(self, scale: float) -> float:
        return scale**2


@dataclass(kw_only=True, eq=False, repr=False)
class MeanAbsoluteError(NumberMean):
    """Absolute distance of outputs and targets, averaged over samples and components.

    Args:
        ignore_nan: whether a target may be NaN where there is none; it counts for nothing.
        weight: the target that says what each sample counts for, where there is one of that name.

    >>> import torch
    >>> MeanAbsoluteError().loss(torch.zeros(2, 3), {"label": -torch.ones(2, 3)})
    tensor(1.)
    """

    measure = Measure(
        "average error",
        "a smaller average error",
        "The average distance of a prediction from the truth, in units of the target's deviation.",
    )

    def distance(self, difference: Tensor) -> Tensor:
        return difference.abs()

    def unit(self, scale: float) -> float:
        return scale


@dataclass(kw_only=True, eq=False, repr=False)
class OneSidedError(Objective):
    r"""The mean of the positive, or of the negative part of prediction - target, to a power.

    .. math:: \frac1B \sum \max(0, \hat y - y)^p \quad\text{or}\quad
              \frac1B \sum \max(0, y - \hat y)^p

    The two against each other: their sum weighted by (1 - t, t) is smallest at the t-quantile of
    the target for p = 1, and at its t-expectile for p = 2 (Newey and Powell 1987).

    Args:
        side: ``"over"`` counts predictions above the target, ``"under"`` those below.
        power: p, 1 or 2.

    >>> import torch
    >>> outputs, targets = torch.tensor([3.0, 0.0]), {"label": torch.tensor([1.0, 1.0])}
    >>> OneSidedError(side="over").loss(outputs, targets)
    tensor(2.)
    """

    measure = Measure(
        "error to one side",
        "less error to one side",
        "The mean distance of predictions from the truth on one side of it: too high, or too low.",
    )

    side: Literal["over", "under"] = "over"
    # squares are smooth at 0, where absolute errors have a kink
    power: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.side not in ("over", "under"):
            raise ConfigurationError(f"`side` must be `over` or `under`, found `{self.side}`")
        check_power(self.power)

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        return weighted_mean(self._compute_errors(outputs, targets), targets)

    def sums(self, outputs: Outputs, targets: Targets) -> Tensor:
        return weighted_sums(self._compute_errors(outputs, targets), targets)

    def _compute_errors(self, outputs: Outputs, targets: Targets) -> Tensor:
        """Return the error of every prediction on the counted side."""
        output = logits_of(outputs, self.output)
        above = output - align(targets[self.target], output, self.target)
        error = F.relu(above if self.side == "over" else -above)
        return error.square() if self.power == 2 else error

    def unit(self, scale: float) -> float:
        return scale**self.power


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
