"""Tables whose target is a number or one of several classes, or that compare no groups."""

import math
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from paretocosmos.errors import ConfigurationError, DataWarning
from paretocosmos.objectives import (
    GroupObjective,
    Objective,
    accuracy,
    fairness_objective,
    fairness_objectives,
    logits_of,
    misclassification,
    pick,
    weighted_mean,
)
from paretocosmos.objectives.class_loss import ClassLoss
from paretocosmos.objectives.cross_entropy import CrossEntropy
from paretocosmos.objectives.mean_absolute_error import MeanAbsoluteError
from paretocosmos.objectives.mean_squared_error import MeanSquaredError
from paretocosmos.objectives.one_sided_error import OneSidedError
from paretocosmos.problems._base import SPLITS, Split
from paretocosmos.problems.tables.answers import Answer, Task
from paretocosmos.problems.tables.frames import named
from paretocosmos.problems.tables.groups import Grouping, column_of
from paretocosmos.problems.tables.rows import (
    check,
    check_columns,
    group_targets,
    labels_of,
    split_rows,
    together,
)
from paretocosmos.problems.tables.small_groups import SmallGroups, pooled
from paretocosmos.problems.tables.table import Table
from paretocosmos.problems.tables.tabular import (
    TableProblem,
    batch_of,
    features_in,
    positive_rate,
)
from paretocosmos.types import Batch, Metric, Outputs, Targets

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "OtherTable",
    "largest_share",
    "other_labelled_rows",
    "other_table",
    "recall",
    "with_weights",
]


@dataclass(frozen=True, kw_only=True, eq=False)
class OtherTable(TableProblem):
    """A table whose target is a number or one of several classes, or that compares no groups.

    Attributes:
        splits: train, val and test.
        target: the column that is predicted.
        answer: what is predicted.
        grouping: which group a row belongs to; `None` where none are compared.
    """

    splits: Mapping[Split, Batch] = field(repr=False)
    target: str
    answer: Answer
    grouping: Grouping | None = field(default=None, repr=False)

    @property
    def about(self) -> Mapping[str, object]:
        said: dict[str, object] = {"target": self.target, "answer": self.answer.to_dict()}
        if self.answer.task == "binary":
            negative, positive = self.answer.classes
            said |= {"positive": positive, "negative": negative}
        if self.grouping is not None:
            said |= {
                "sensitive": self.grouping.called,
                "groups": list(self.grouping.names),
                "grouping": self.grouping.to_dict(),
            }
        return said


def other_table(
    frame: "pd.DataFrame",
    *,
    target: str,
    task: Task,
    sensitive: Sequence[str] = (),
    small_groups: SmallGroups = "keep",
    positive: object = None,
    fairness: str | None = None,
    categorical: Collection[str] = (),
    drop: Collection[str] = (),
    keep: Collection[str] = (),
    balanced: bool = False,
    name: str = "table",
    seed: int = 1,
    val: "pd.DataFrame | None" = None,
    test: "pd.DataFrame | None" = None,
) -> OtherTable:
    """Split a frame, encode it, and pair what can be traded.

    With groups, the loss and the gap between them; without, for classes the loss of each, for a
    number too high against too low predictions. Losses of numbers are in units of the target's
    deviation; the metrics `rmse` and `mae` are in its own.

    Args:
        frame: one row per sample; never modified.
        target: the column to predict.
        task: whether it is one of several classes, or a number; or of two classes, `binary`, where
            no groups are compared.
        sensitive: as for `TabularProblem.from_frame`; may be empty.
        small_groups: likewise.
        positive: of two classes.
        fairness: the gap; ``"tpr_gap"`` for classes and ``"error_gap"`` for numbers if `None`.
        categorical: columns to read as categories although they hold numbers.
        drop: columns to leave out.
        keep: columns to learn from although they seem to be identifiers.
        balanced: whether rows to train on count so that all classes weigh the same.
        name: how runs call the problem.
        seed: decides which rows are train, val and test.
        val: rows to validate on; a share of `frame` if `None`.
        test: rows to test on; a share of `frame` if `None`.
    """
    frame, sizes = together({"train": frame, "val": val, "test": test})
    people = [column_of(one, list(frame.columns))[0] for one in sensitive]
    check(frame, target, people, categorical, drop, keep, seed)
    features = features_in(
        frame, leave=(target, *people, *drop), categorical=categorical, keep=keep
    )
    rows = split_rows(sizes, seed)
    if task == "binary":
        chosen, other, label = labels_of(frame[target], positive)
        answer = Answer("binary", (other, chosen))
    else:
        made = Answer.number_of if task == "number" else Answer.classes_of
        answer = made(frame[target].iloc[rows["train"]])
        label = answer.labels(frame[target])
    grouping: Grouping | None = None
    targets: dict[str, npt.NDArray[Any]] = {"label": label}
    if people:
        grouping = Grouping.fit(frame, list(sensitive))
        grouping, codes = pooled(
            grouping,
            grouping.codes(frame),
            np.ones(len(frame), dtype=np.float32),
            rows,
            how=small_groups,
            positives=False,
        )
        targets |= {"sensitive": codes}
        targets |= {f"sensitive_{one.name}": alone for one, alone in grouping.alone(frame)}
    table = Table.fit(
        features.iloc[rows["train"]],
        categorical=[column for column in categorical if column in features.columns],
    )
    inputs = table.transform(features)
    objectives = _objectives(answer, grouping, fairness, label[rows["train"]])
    if grouping is None:
        against = " against ".join(f"`{one.name}`" for one in objectives)
        warnings.warn(
            f"no groups are compared, since no `sensitive` column is named: what is traded is "
            f"{against}",
            DataWarning,
            stacklevel=3,
        )
    splits = {key: batch_of(inputs, targets, rows[key]) for key in SPLITS}
    if balanced:
        splits["train"] = with_weights(splits["train"], answer)
    return OtherTable(
        name=name,
        objectives=objectives,
        reference=tuple(_reference(one, answer) for one in objectives),
        input_shape=(inputs.shape[1],),
        outputs=answer.outputs,
        metrics=_metrics(answer, grouping, objectives),
        splits=splits,
        table=table,
        target=target,
        answer=answer,
        grouping=grouping,
    )


def other_labelled_rows(
    frame: "pd.DataFrame",
    *,
    table: Table,
    about: Mapping[str, Any],
    objectives: tuple[Objective, ...],
    reference: tuple[float, ...],
    name: str,
) -> OtherTable:
    """As `labelled_rows`, for what such tables predict."""
    frame, target, answer = named(frame), str(about["target"]), Answer.from_about(about)
    grouping = Grouping.from_dict(about["grouping"]) if "grouping" in about else None
    check_columns(frame, target, grouping)
    targets = {"label": answer.labels(frame[target]), **group_targets(frame, grouping)}
    inputs = table.transform(frame)
    return OtherTable(
        name=name,
        objectives=objectives,
        reference=reference,
        input_shape=(inputs.shape[1],),
        outputs=answer.outputs,
        metrics=_metrics(answer, grouping, objectives),
        splits={"test": batch_of(inputs, targets, np.arange(len(frame)))},
        table=table,
        target=target,
        answer=answer,
        grouping=grouping,
    )


def with_weights(batch: Batch, answer: Answer) -> Batch:
    """Rows to train on that count so that every class weighs the same, and 1 in the mean."""
    if answer.task == "number":
        raise ConfigurationError(
            '`class_weight="balanced"` is for classes, found a number to predict: leave it out'
        )
    codes = batch.targets["label"].long()
    counts = torch.bincount(codes, minlength=len(answer.classes) or 2)
    weight = (len(codes) / (counts > 0).sum() / counts)[codes]
    return Batch(batch.inputs, {**batch.targets, "weight": weight.float()})


def _objectives(
    answer: Answer,
    grouping: Grouping | None,
    fairness: str | None,
    label: npt.NDArray[Any],
) -> tuple[Objective, ...]:
    if answer.task == "number":
        if grouping is None:
            return (
                OneSidedError(name="over_prediction", side="over"),
                OneSidedError(name="under_prediction", side="under"),
            )
        gap = fairness_objective(fairness or "error_gap", "numbers", what="fairness objective")
        return MeanSquaredError(), gap(groups=len(grouping.names))
    if grouping is None:
        counts = np.bincount(label.astype(np.int64), minlength=len(answer.classes))
        if not counts.all():
            lost = answer.classes[int(counts.argmin())]
            raise ConfigurationError(f"no row to train on is of the class `{lost}`: add some")
        return tuple(
            ClassLoss(name=f"loss_{one}", of=at, share=float(counts[at] / counts.sum()))
            for at, one in enumerate(answer.classes)
        )
    gap = fairness_objective(fairness or "tpr_gap", "classes", what="fairness objective")
    return CrossEntropy(), gap(groups=len(grouping.names))


def _metrics(
    answer: Answer, grouping: Grouping | None, objectives: Sequence[Objective]
) -> dict[str, Metric]:
    found: dict[str, Metric] = {}
    groups = 0 if grouping is None else len(grouping.names)
    if answer.task == "number":
        found["rmse"] = partial(_rmse, scale=answer.scale)
        found["mae"] = partial(_scaled, of=MeanAbsoluteError(), by=answer.scale)
        for name, kind in fairness_objectives("numbers").items() if groups else ():
            gap = kind(groups=groups)
            found[f"{name}_in_units"] = partial(_scaled, of=gap, by=gap.unit(answer.scale))
        return found
    found |= {"accuracy": accuracy, "misclassification": misclassification}
    found |= {f"recall_{one}": partial(recall, of=at) for at, one in enumerate(answer.classes)}
    found |= (
        {"positive_rate": positive_rate}
        if answer.task == "binary"
        else {"largest_share": largest_share}
    )
    if grouping is not None and len(grouping.attributes) > 1:
        compared = type(objectives[-1])
        assert issubclass(compared, GroupObjective)
        for one in grouping.attributes:
            alone = compared(groups=len(one.labels), sensitive=f"sensitive_{one.name}")
            found[f"{alone.name}_{one.name}"] = alone.score
    return found


def _reference(objective: Objective, answer: Answer) -> float:
    """Twice what a network without weights reaches, at least 2."""
    losses = isinstance(objective, CrossEntropy | ClassLoss)
    return max(2.0, round(2 * math.log(answer.outputs), 2)) if losses else 2.0


def recall(outputs: Outputs, targets: Targets, *, of: int) -> Tensor:
    """The share of a class that is found; NaN where it is missing.

    >>> recall(torch.tensor([1.0, -1.0, 2.0]), {"label": torch.tensor([1.0, 1.0, 0.0])}, of=1)
    tensor(0.5000)
    """
    scores = logits_of(outputs, None)
    chosen = scores.argmax(dim=-1) == of if scores.ndim > 1 else (scores > 0) == bool(of)
    member = (targets["label"].reshape(chosen.shape) == of).to(scores.dtype)
    if "weight" in targets:
        member = member * targets["weight"]
    return (chosen * member).sum() / member.sum()


def largest_share(outputs: Outputs, targets: Targets, *, output: str | None = None) -> Tensor:
    """The share of samples predicted as the class predicted most: 1 betrays a constant one.

    >>> largest_share(torch.eye(4)[:, :2], {})
    tensor(0.7500)
    """
    scores = pick(outputs, output)
    if scores.ndim == 1 or scores.shape[-1] == 1:  # one logit stands for two classes
        scores = torch.stack([-scores.flatten(), scores.flatten()], dim=-1)
    classes = torch.arange(scores.shape[-1], device=scores.device)
    chosen = (scores.argmax(dim=-1, keepdim=True) == classes).to(scores.dtype)
    return torch.stack([weighted_mean(one, targets) for one in chosen.unbind(-1)]).amax()


def _rmse(outputs: Outputs, targets: Targets, *, scale: float) -> Tensor:
    return MeanSquaredError().score(outputs, targets).sqrt() * scale


def _scaled(outputs: Outputs, targets: Targets, *, of: Objective, by: float) -> Tensor:
    return of.score(outputs, targets) * by
