"""The problem of a finished training on other rows, whose answers and groups are known."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from paretocosmos.objectives import GroupObjective, Objective
from paretocosmos.problems.tables.answers import Answer
from paretocosmos.problems.tables.base import TableProblem, batch_of
from paretocosmos.problems.tables.frames import named
from paretocosmos.problems.tables.groups import Grouping
from paretocosmos.problems.tables.other import OtherTable
from paretocosmos.problems.tables.rows import check_columns, group_targets, known_targets
from paretocosmos.problems.tables.table import Table
from paretocosmos.problems.tables.tabular import TabularProblem, class_metrics
from paretocosmos.problems.tables.trades import metrics_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["labelled_rows"]


def labelled_rows(
    frame: "pd.DataFrame",
    *,
    table: Table,
    about: Mapping[str, Any],
    objectives: tuple[Objective, ...],
    reference: tuple[float, ...],
    name: str,
) -> TableProblem:
    """The problem on other rows; all of them are `test`.

    Args:
        frame: has the columns of the table, the target and the sensitive columns.
        table: the fitted preprocessing.
        about: what the training's problem said of itself.
        objectives: what was traded, the gap between groups last.
        reference: the point hypervolume is measured from.
        name: what to call it.
    """
    frame, target, answer = named(frame), str(about["target"]), Answer.from_about(about)
    grouping = Grouping.from_dict(about["grouping"]) if "grouping" in about else None
    inputs = table.transform(frame)
    shared: dict[str, Any] = {
        "name": name,
        "objectives": objectives,
        "reference": reference,
        "input_shape": (inputs.shape[1],),
        "outputs": answer.outputs,
        "table": table,
        "target": target,
        "grouping": grouping,
    }
    every = np.arange(len(frame))
    if "answer" in about:
        check_columns(frame, target, grouping)
        targets = {"label": answer.labels(frame[target]), **group_targets(frame, grouping)}
        return OtherTable(
            **shared,
            answer=answer,
            metrics=metrics_of(answer, grouping, objectives),
            splits={"test": batch_of(inputs, targets, every)},
        )
    positive, negative = (str(about[key]) for key in ("positive", "negative"))
    compared = type(objectives[-1])
    assert grouping is not None
    assert issubclass(compared, GroupObjective)
    targets = known_targets(frame, target, (positive, negative), grouping)
    return TabularProblem(
        **shared,
        metrics=class_metrics(objectives, compared, grouping),
        splits={"test": batch_of(inputs, targets, every)},
        positive=positive,
        negative=negative,
        sensitive=grouping.called,
        groups=grouping.names,
    )
