"""The problem an estimator trains on: rows in memory, some of them kept for validation."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from paretocosmos.estimators._inputs import Floats
from paretocosmos.estimators._own import InUnit
from paretocosmos.estimators._targets import Classes, Numbers
from paretocosmos.objectives import Objective
from paretocosmos.problems import Problem, Split, check_split
from paretocosmos.problems.tables import Codes, Grouping, Table, TableProblem, TabularProblem
from paretocosmos.types import Batch, Metric, Outputs, map_tensors

__all__ = ["Fitted", "Kind", "Rows", "RowsProblem", "judging", "problem_of"]

Kind = Classes | Numbers
HELD_OUT: tuple[Split, ...] = ("val", "test")
# A reference point for losses of standardised things, as for the paper's tables.
REFERENCE = 2.0


@dataclass(frozen=True)
class Rows:
    """What is known of some rows.

    Attributes:
        frame: the features.
        truth: the targets, a column each: numbers, or classes numbered from 0.
        groups: the groups, numbered from 0; `None` if they are not known.
        weight: how much each counts; `None` if all count the same.
    """

    frame: pd.DataFrame
    truth: tuple[npt.NDArray[Any], ...]
    groups: Codes | None = None
    weight: Floats | None = None

    def __len__(self) -> int:
        return len(self.frame)

    def take(self, rows: Codes) -> "Rows":
        """Some of them, by their places."""
        return Rows(
            self.frame.iloc[rows],
            tuple(column[rows] for column in self.truth),
            None if self.groups is None else self.groups[rows],
            None if self.weight is None else self.weight[rows],
        )

    def weighing(self, weight: Floats) -> "Rows":
        """The same rows, each counting as much."""
        return replace(self, weight=None if (weight == weight[0]).all() else weight)


@dataclass(frozen=True, kw_only=True, eq=False)
class RowsProblem(Problem):
    """Rows in memory with several targets."""

    tabular: ClassVar[bool] = True

    splits: Mapping[Split, Batch] = field(repr=False)

    def split(self, name: Split) -> Batch:
        return self.splits[check_split(name)]


Fitted = TableProblem | RowsProblem
"""What an estimator trains on: a table with one target, or several targets."""


def judging(problem: Fitted, *, repeat: int) -> Fitted:
    """The same with every row that trains once, though an epoch passes over it `repeat` times."""
    trained = problem.splits["train"]
    once = len(trained) // repeat
    kept = (map_tensors(lambda t: t[:once], part) for part in (trained.inputs, trained.targets))
    return replace(problem, splits={**problem.splits, "train": Batch(*kept)})


def problem_of(
    train: Rows,
    val: Rows,
    table: Table,
    targets: Sequence[Kind],
    objectives: tuple[Objective, ...],
    metrics: Mapping[str, Metric],
    *,
    repeat: int,
    name: str,
    called: str,
    grouping: Grouping | None,
) -> Fitted:
    """The problem of some rows. Those that validate stand for test, too.

    Args:
        train: rows to train on.
        val: rows to validate on.
        table: how columns become features.
        targets: what is predicted.
        objectives: what is traded.
        metrics: further numbers of a front.
        repeat: how often an epoch passes over the rows.
        name: what to call it.
        called: the name of a single target.
        grouping: which groups there are.
    """
    with warnings.catch_warnings():
        # a category that only validation rows have is nobody's mistake
        warnings.simplefilter("ignore", UserWarning)
        judged = _batch(val, table, targets)
    names = [objective.name for objective in objectives]
    trained = _batch(train, table, targets)
    if repeat > 1:
        many = (
            map_tensors(lambda t: t.repeat(repeat, *[1] * (t.ndim - 1)), part)
            for part in (trained.inputs, trained.targets)
        )
        trained = Batch(*many)
    shared: dict[str, Any] = {
        "name": name,
        "objectives": objectives,
        "reference": tuple(_reference(o, judged, targets) for o in objectives),
        "input_shape": (len(table.features),),
        "metrics": {key: metric for key, metric in metrics.items() if key not in names},
        "splits": {"train": trained, **dict.fromkeys(HELD_OUT, judged)},
    }
    if len(targets) > 1:
        return RowsProblem(**shared, outputs={t.name: t.width for t in targets})
    (target,) = targets
    shared |= {"outputs": target.width, "table": table, "target": called}
    answer = target.answer
    if answer.task != "binary" or grouping is None:
        return TableProblem(**shared, answer=answer, grouping=grouping)
    return TabularProblem(**shared, answer=answer, grouping=grouping)


def _batch(rows: Rows, table: Table, targets: Sequence[Kind]) -> Batch:
    truth: dict[str, Tensor] = {}
    for target, column in zip(targets, rows.truth, strict=True):
        if isinstance(target, Numbers):
            plain: npt.NDArray[Any] = (column - target.mean) / target.scale
        else:
            plain = column.astype(np.float32 if target.width == 1 else np.int64)
        truth[target.name] = torch.from_numpy(plain)
    if rows.groups is not None:
        truth["sensitive"] = torch.from_numpy(rows.groups.copy())
    if rows.weight is not None:
        truth["weight"] = torch.from_numpy(rows.weight.copy())
    return Batch(torch.from_numpy(table.transform(rows.frame)), truth)


def _reference(objective: Objective, batch: Batch, targets: Sequence[Kind]) -> float:
    """Twice what a network without weights reaches: every front worth having lies below."""
    blank = {t.name: torch.zeros(len(batch), t.width, dtype=torch.float64) for t in targets}
    outputs: Outputs = blank if len(targets) > 1 else blank[targets[0].name]
    reached = float(objective.score(outputs, batch.targets))
    floor = REFERENCE * (objective.factor if isinstance(objective, InUnit) else 1)
    return float(np.fmax(reached + abs(reached), floor))
