"""The target of a table: how it is predicted, what is traded for it, and its metrics.

Tables and estimators share these rules.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from paretocosmos.errors import ConfigurationError, DataError, unknown
from paretocosmos.objectives import (
    BinaryCrossEntropy,
    ClassLoss,
    CrossEntropy,
    DemographicParity,
    ErrorGap,
    GroupObjective,
    LowestTpr,
    MeanAbsoluteError,
    MeanSquaredError,
    Measure,
    Objective,
    OneSidedError,
    TprGap,
    accuracy,
    balanced_accuracy,
    calibration_error,
    fairness_objectives,
    largest_share,
    logits_of,
    misclassification,
    mistakes,
    positive_rate,
    recall,
    selection_rate,
)
from paretocosmos.problems.base import CROSS_ENTROPY, Wording
from paretocosmos.problems.tables.columns import encode_labels, format_label, to_numbers
from paretocosmos.problems.tables.groups import Grouping
from paretocosmos.problems.tables.table import compute_moments
from paretocosmos.registry import parameters
from paretocosmos.types import Metric, Outputs, Targets

if TYPE_CHECKING:
    import pandas as pd

Task = Literal["binary", "classes", "number"]
COMPARED: dict[Task, Literal["classes", "numbers"]] = {
    "binary": "classes",
    "classes": "classes",
    "number": "numbers",
}
"""The values that groups are compared by, for each task."""
DECISION = "decision"
"""The name in files of the predicted class, numbered from 0, beside its probabilities."""

# More classes than this are names, or numbers.
MAX_CLASSES = 100
# Classes that are listed where another one is asked for.
LISTED = 50
# Classes that need no explanation: the negative one, the positive one.
PAIRS = (
    *(("0", "1"), ("-1", "1"), ("false", "true"), ("f", "t"), ("no", "yes"), ("n", "y")),
    *(("negative", "positive"), ("neg", "pos")),
)


@final
@dataclass(frozen=True)
class Answer:
    """The kind of prediction, and how it is read from a network.

    Attributes:
        task: one class or not (`binary`), one of several `classes`, or a `number`.
        classes: their names; of two, the positive one comes second.
        mean: of a number in the rows to train on.
        scale: its deviation there, never 0.
    """

    task: Task = "binary"
    classes: tuple[str, ...] = ()
    mean: float = 0.0
    scale: float = 1.0

    @classmethod
    def fit_binary(cls, series: "pd.Series[Any]", positive: object) -> "Answer":
        """Return the answer for one class against all others, which are negative."""
        # categories in order say which of two classes is positive: the second
        _, classes = encode_labels(series, own_order=True)
        if len(classes) < 2:
            raise DataError(
                f"the target `{series.name}` must have two classes, found only `{classes[0]}`: "
                "there is nothing to learn"
            )
        chosen = _find_positive(series, classes) if positive is None else format_label(positive)
        if chosen not in classes:
            raise unknown(f"class of `{series.name}`", chosen, classes[:LISTED])
        # with more than two classes the negative one has no name of its own
        negatives = [label for label in classes if label != chosen]
        return cls("binary", (negatives[0] if len(negatives) == 1 else f"not {chosen}", chosen))

    @classmethod
    def fit_classes(cls, series: "pd.Series[Any]") -> "Answer":
        """Return the answer for one of several classes."""
        codes, labels = encode_labels(series, own_order=True)
        if not 2 <= len(labels) <= MAX_CLASSES or (codes < 0).any():
            raise DataError(
                f"the target `{series.name}` must have 2 to {MAX_CLASSES} classes, found "
                f"{len(labels):,}: merge some, or predict a number"
            )
        return cls("classes", tuple(labels))

    @classmethod
    def fit_number(cls, series: "pd.Series[Any]") -> "Answer":
        """Return the answer for a number, standardised for the network."""
        values = _read_finite(series)
        # squares of numbers beyond 1e154 overflow, and the deviation with them
        mean, scale = compute_moments(values)
        if not np.isfinite([mean, scale]).all():
            raise DataError(
                f"the target `{series.name}` must have numbers that can be averaged, found up to "
                f"{np.abs(values).max():g}: divide it, or take its logarithm"
            )
        if scale == 0:
            raise DataError(
                f"the target `{series.name}` is {mean:g} in every row: there is nothing to learn"
            )
        return cls("number", mean=mean, scale=scale)

    @classmethod
    def from_about(cls, about: Mapping[str, Any]) -> "Answer":
        """Return the answer that a run's record describes; by default, one class or not."""
        record = about.get("answer")
        # a run on two classes and groups records only their names, outside `answer`
        if record is None:
            return cls()
        return cls(**record | {"classes": tuple(record["classes"])})

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists and numbers, ready for JSON."""
        return vars(self) | {"classes": list(self.classes)}

    @property
    def outputs(self) -> int:
        """The number of a network's outputs for a row."""
        # one logit serves two classes: its sigmoid is the probability of the positive one
        return len(self.classes) if self.task == "classes" else 1

    @property
    def output_name(self) -> str:
        """The name in files of the values that `read` returns."""
        return "prediction" if self.task == "number" else "probability"

    def labels(self, series: "pd.Series[Any]") -> npt.NDArray[Any]:
        """Return a column as a network's targets: standardised numbers, or numbered classes."""
        if self.task == "number":
            return ((_read_finite(series) - self.mean) / self.scale).astype(np.float32)
        codes, labels = encode_labels(series)
        # "not X" stands for every other class
        one_against_rest = self.task == "binary" and self.classes[0] == f"not {self.classes[1]}"
        unseen = [] if one_against_rest else [x for x in labels if x not in self.classes]
        if unseen or (codes < 0).any():
            mistake = f"`{unseen[0]}`" if unseen else f"{int((codes < 0).sum()):,} missing"
            raise DataError(
                f"the target `{series.name}` must be one of {', '.join(self.classes[:5])} in every "
                f"row, found {mistake}: leave such rows out"
            )
        numbers = {label: number for number, label in enumerate(self.classes)}
        lookup = np.array([numbers.get(label, 0) for label in labels], dtype=np.int64)
        # floats for one logit, whose loss compares numbers; class indices for several
        return lookup[codes].astype(np.float32 if self.task == "binary" else np.int64)

    def read(self, outputs: Outputs) -> Tensor:
        """Turn a network's outputs into probabilities or numbers.

        Returns:
            The probability of the positive class ``[N]``, of every class ``[N, K]``, or the number
            ``[N]``.
        """
        logits = logits_of(outputs, None)
        if self.task == "number":
            # the network was trained on standardised numbers
            return logits * self.scale + self.mean
        return logits.softmax(dim=-1) if self.task == "classes" else torch.sigmoid(logits)


def _read_finite(series: "pd.Series[Any]") -> npt.NDArray[np.float64]:
    """Return a target's numbers; raise if some are missing or infinite."""
    values = to_numbers(series)
    rows = np.flatnonzero(np.isnan(values))
    if len(rows):
        raise DataError(
            f"the target `{series.name}` must be a finite number in every row, found "
            f"{len(rows):,} missing or infinite, such as `{series.iloc[rows[0]]}`: leave those "
            "rows out"
        )
    return values


def _find_positive(series: "pd.Series[Any]", classes: list[str]) -> str:
    """Return the positive one of two classes, by their names or their order; else raise."""
    import pandas as pd

    if len(classes) > 2:
        quoted = ", ".join(f"`{label}`" for label in classes[:4]) + ", ..." * (len(classes) > 4)
        raise DataError(
            f"the target `{series.name}` must have two classes, found {len(classes):,} values "
            f"({quoted}): name the positive class with `positive`, or say with `task` that it is "
            "several classes or a number"
        )

    by_name = {label.strip().lower(): label for label in classes}
    for negative, positive in PAIRS:
        if by_name.keys() == {negative, positive}:
            return by_name[positive]
    # unordered categories come in the order of the alphabet, which says nothing
    if isinstance(series.dtype, pd.CategoricalDtype) and series.cat.ordered:
        return classes[1]
    raise ConfigurationError(
        f"the target `{series.name}` has the classes `{classes[0]}` and `{classes[1]}`, but it is "
        "not clear which one is positive: name it with `positive`"
    )


def build_loss(answer: Answer, *, power: int = 2, head: str | None = None) -> Objective:
    """Return the loss of a target: a cross-entropy, or an error of numbers.

    Args:
        answer: what is predicted.
        power: of a number's error: 2 for squared, 1 for absolute.
        head: the name of the target and of its head, if there are several.
    """
    kind: type[Objective] = BinaryCrossEntropy if answer.task == "binary" else CrossEntropy
    if answer.task == "number":
        kind = MeanSquaredError if power == 2 else MeanAbsoluteError
    return kind() if head is None else kind(name=head, output=head, target=head)


def build_gap(kind: type[GroupObjective], groups: int, power: int = 2) -> GroupObjective:
    """Build a gap between groups, of errors to some power if it takes one."""
    # gaps between rates have no power
    settings: dict[str, Any] = {"power": power} if "power" in parameters(kind) else {}
    return kind(groups=groups, **settings)


def build_objectives(
    answer: Answer,
    gap: GroupObjective | None,
    *,
    classes: Sequence[object] = (),
    shares: Sequence[float] = (),
    power: int = 2,
) -> tuple[Objective, ...]:
    """Return what is traded for one target: a loss and the gap between groups.

    Without groups, the loss of each class, or too high against too low predictions.

    Args:
        answer: what is predicted.
        gap: the gap between groups; `None` where none are compared.
        classes: the names of the classes, if no groups are compared.
        shares: of the classes among the rows to train on, if no groups are compared.
        power: of a number's error.
    """
    if gap is not None:
        return build_loss(answer, power=power), gap
    if answer.task == "number":
        return (
            OneSidedError(name="over_prediction", side="over", power=power),
            OneSidedError(name="under_prediction", side="under", power=power),
        )
    return tuple(
        # with the share in the whole split, a batch without a rare class is no cheaper
        ClassLoss(name=f"loss_{name}", of=code, share=share)
        for code, (name, share) in enumerate(zip(classes, shares, strict=True))
    )


def compute_shares(
    codes: npt.NDArray[Any], classes: int, weight: npt.NDArray[np.float64] | None = None
) -> tuple[float, ...]:
    """Return the share of every class among some rows."""
    # labels for a single logit are floats, which `bincount` refuses
    counts = np.bincount(codes.astype(np.int64), weight, minlength=classes)
    return tuple((counts / counts.sum()).tolist())


def build_metrics(
    answer: Answer, grouping: Grouping | None, objectives: Sequence[Objective]
) -> dict[str, Metric]:
    """Return the further numbers of a front; of several sensitive columns, the gap by each too."""
    metrics: dict[str, Metric] = {}
    groups = 0 if grouping is None else len(grouping.names)
    if answer.task == "number":
        # in the target's own unit: the network works on standardised numbers
        metrics["rmse"] = partial(_compute_rmse, scale=answer.scale)
        metrics["mae"] = partial(_scale_score, objective=MeanAbsoluteError(), factor=answer.scale)
        for name, kind in fairness_objectives("numbers").items() if groups else ():
            gap = kind(groups=groups)
            metrics[f"{name}_in_units"] = partial(
                _scale_score, objective=gap, factor=gap.unit(answer.scale)
            )
        return metrics
    metrics |= build_decision_metrics(answer, groups)
    if answer.task == "binary" and grouping is not None:
        # a gap alone does not say which group is better off
        for code, group in enumerate(grouping.names):
            metrics[f"selection_rate_{group}"] = partial(selection_rate, group=code)
        metrics["calibration_error"] = calibration_error
    else:
        for code, name in enumerate(answer.classes):
            metrics[f"recall_{name}"] = partial(recall, of=code)
    if grouping is not None and len(grouping.attributes) > 1:
        # the gap comes last among the objectives
        gap_class = type(objectives[-1])
        assert issubclass(gap_class, GroupObjective)
        for attribute in grouping.attributes:
            gap = gap_class(groups=len(attribute.labels), sensitive=f"sensitive_{attribute.name}")
            metrics[f"{gap.name}_{attribute.name}"] = gap.score
    # an objective would be reported twice if it were a metric too
    traded = [objective.name for objective in objectives]
    return {name: metric for name, metric in metrics.items() if name not in traded}


def build_decision_metrics(answer: Answer, groups: int) -> dict[str, Metric]:
    """Return numbers of decisions that tables and estimators report alike.

    Args:
        answer: what is predicted, one class or not, or one of several.
        groups: how many groups of people there are, 0 if they are not known.
    """
    metrics: dict[str, Metric] = {"accuracy": accuracy, "misclassification": misclassification}
    metrics["balanced_accuracy"] = balanced_accuracy
    if answer.task == "binary":
        metrics["false_positives"] = partial(mistakes, of=0)
        metrics["false_negatives"] = partial(mistakes, of=1)
    if groups:
        # both gaps, whichever is traded: a model that closes one may open the other
        metrics["tpr_gap"] = TprGap(groups=groups).score
        metrics["demographic_parity"] = DemographicParity(groups=groups).score
    if groups and answer.task == "binary":
        metrics["lowest_tpr"] = LowestTpr(groups=groups).score
    # either shows a constant classifier, which closes every gap
    constant = positive_rate if answer.task == "binary" else largest_share
    return metrics | {constant.__name__: constant}


def get_reference(objective: Objective, answer: Answer) -> float:
    """Return twice the loss of a network without weights, at least 2."""
    # uniform probabilities over K classes have a cross-entropy of log K
    is_cross_entropy = isinstance(objective, CrossEntropy | ClassLoss)
    return max(2.0, round(2 * math.log(answer.outputs), 2)) if is_cross_entropy else 2.0


def build_wording(answer: Answer, objectives: Sequence[Objective]) -> Wording:
    """Describe what is traded where it is not a loss against a gap between rates."""
    names = {objective.name for objective in objectives}
    measures = {
        f"{side}_prediction": Measure(
            f"predictions that are too {level}",
            f"fewer predictions that are too {level}",
            "By how much, on average.",
        )
        for side, level in (("over", "high"), ("under", "low"))
    }
    # the class describes errors of either power; squares need words of their own
    if any(isinstance(gap, ErrorGap) and gap.power == 2 for gap in objectives):
        squared = Measure(
            "gap in squared errors",
            "a smaller gap in squared errors",
            "The mean squared error of a group, largest minus smallest over the groups.",
        )
        measures |= {"error_gap": squared, "error_gap_in_units": squared}
    instead = {}
    for name in answer.classes:
        measures[f"recall_{name}"] = recalled = Measure(
            f"“{name}” that are found",
            f"fewer missed “{name}”",
            f"Of the rows that are “{name}”, the share that is predicted as such.",
            "of 100",
            larger=True,
        )
        # few people can read a cross-entropy, so pages show the recall instead
        if f"loss_{name}" in names:
            measures[f"loss_{name}"] = Measure(f"loss on “{name}”", recalled.goal, CROSS_ENTROPY)
            instead[f"loss_{name}"] = f"recall_{name}"
    return Wording(measures=measures, instead=instead)


def _compute_rmse(outputs: Outputs, targets: Targets, *, scale: float) -> Tensor:
    return MeanSquaredError().score(outputs, targets).sqrt() * scale


def _scale_score(
    outputs: Outputs, targets: Targets, *, objective: Objective, factor: float
) -> Tensor:
    return objective.score(outputs, targets) * factor
