"""A finished run on rows it has not seen, whose answers are known."""

from typing import TYPE_CHECKING

from paretocosmos import registry
from paretocosmos.errors import RunError
from paretocosmos.problems.tables import TableProblem, label_rows
from paretocosmos.registry import Spec
from paretocosmos.runs.reloaded import objective_of
from paretocosmos.runs.run import Run

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["labelled"]


def labelled(run: Run, frame: "pd.DataFrame") -> TableProblem:
    """The problem of a run with other rows as its test data, to pass to `evaluate`.

    The data that the run was trained on are not needed.

    Args:
        run: a run on a table.
        frame: rows with the columns the run was trained on, the target and the sensitive columns.

    >>> from paretocosmos import evaluate, load
    >>> from paretocosmos.problems.tables import read_embedded
    >>> run, rows = load("compas"), read_embedded("compas").tail(1000)
    >>> front = evaluate(run.model, labelled(run, rows), rays=[[1.0, 0.0], [0.0, 1.0]])
    >>> before, after = front.values[:, front.names.index("demographic_parity")]
    >>> bool(after < before)  # the gap between men and women
    True
    """
    about = run.record["about"]
    if run.table is None or not {"grouping", "answer"} & about.keys():
        raise RunError(
            f"`{run.folder}` does not record its target and group columns: it was not trained on a "
            "table, or by an earlier version; train again"
        )
    specs = [Spec(**spec) for spec in run.record["objective_specs"]]
    own = [spec.name for spec in specs if spec.name not in registry.names("objectives")]
    if own:
        raise RunError(
            f"`{run.folder}` was trained on `{own[0]}`, your own objective, which the folder "
            "cannot rebuild: use `run.predict` and compute it yourself"
        )
    return label_rows(
        frame,
        table=run.table,
        about=about,
        objectives=tuple(objective_of(spec) for spec in specs),
        reference=tuple(run.front.reference.tolist()),
        name=run.record["name"],
    )
