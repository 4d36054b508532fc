"""Tables whose target is a number or one of several classes, or that compare no groups."""

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy.typing as npt
import torch

from paretocosmos.errors import ConfigurationError, DataWarning
from paretocosmos.objectives import ErrorGap, Measure, Objective
from paretocosmos.problems._base import Split
from paretocosmos.problems._wording import CROSS_ENTROPY, Wording
from paretocosmos.problems.tables.answers import Answer, Task
from paretocosmos.problems.tables.base import TableProblem, prepared
from paretocosmos.problems.tables.groups import Grouping
from paretocosmos.problems.tables.rows import (
    labels_of,
)
from paretocosmos.problems.tables.small_groups import SmallGroups
from paretocosmos.problems.tables.trades import metrics_of, objectives_of, reference_of
from paretocosmos.types import Batch

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["OtherTable", "other_table", "with_weights"]


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
    made = prepared(
        {"train": frame, "val": val, "test": test},
        target=target,
        sensitive=sensitive,
        categorical=categorical,
        drop=drop,
        keep=keep,
        seed=seed,
    )
    column, train = made.frame[target], made.rows["train"]
    if task == "binary":
        chosen, other, label = labels_of(column, positive)
        answer = Answer("binary", (other, chosen))
    else:
        kind = Answer.number_of if task == "number" else Answer.classes_of
        answer = kind(column.iloc[train])
        label = answer.labels(column)
    grouping: Grouping | None = None
    targets: dict[str, npt.NDArray[Any]] = {"label": label}
    if sensitive:
        grouping, people = made.grouped(sensitive, label, how=small_groups, positives=False)
        targets |= people
    objectives = objectives_of(answer, grouping, fairness, label[train])
    if grouping is None:
        _say(objectives)
    table, splits = made.encoded(targets, categorical=categorical)
    if balanced:
        splits["train"] = with_weights(splits["train"], answer)
    return OtherTable(
        name=name,
        objectives=objectives,
        reference=tuple(reference_of(one, answer) for one in objectives),
        input_shape=(len(table.features),),
        outputs=answer.outputs,
        metrics=metrics_of(answer, grouping, objectives),
        splits=splits,
        table=table,
        target=target,
        answer=answer,
        grouping=grouping,
        wording=_wording(answer, objectives),
    )


def _wording(answer: Answer, objectives: Sequence[Objective]) -> Wording:
    """What is traded where nobody is compared: the classes, or too high against too low."""
    names = {one.name for one in objectives}
    measures = {
        "over_prediction": Measure(
            "predictions that are too high",
            "fewer predictions that are too high",
            "By how much, on average.",
        ),
        "under_prediction": Measure(
            "predictions that are too low",
            "fewer predictions that are too low",
            "By how much, on average.",
        ),
    }
    if any(isinstance(one, ErrorGap) and one.power == 2 for one in objectives):
        squared = Measure(
            "gap in squared errors",
            "a smaller gap in squared errors",
            "The mean squared error of a group, largest minus smallest over the groups.",
        )
        measures |= {"error_gap": squared, "error_gap_in_units": squared}
    instead = {}
    for one in answer.classes:
        found = Measure(
            f"“{one}” that are found",
            f"fewer missed “{one}”",
            f"Of the rows that are “{one}”, the share that is predicted as such.",
            "of 100",
            larger=True,
        )
        measures[f"recall_{one}"] = found
        if f"loss_{one}" in names:
            measures[f"loss_{one}"] = Measure(f"loss on “{one}”", found.goal, CROSS_ENTROPY)
            instead[f"loss_{one}"] = f"recall_{one}"
    return Wording(measures=measures, instead=instead)


def _say(objectives: Sequence[Objective]) -> None:
    """What is traded where nobody is compared, which its owner may not have meant."""
    against = " against ".join(f"`{one.name}`" for one in objectives)
    warnings.warn(
        f"no `sensitive` column is named, so no groups are compared; the objectives are {against}",
        DataWarning,
        stacklevel=4,
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
