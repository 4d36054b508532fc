"""The problem an estimator trains on, and its training in a temporary folder."""

import tempfile
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor, nn

from paretocosmos.errors import (
    ConfigurationError,
    DataError,
    DivergedError,
    FindingWarning,
    FrontWarning,
)
from paretocosmos.estimators.inputs import Classes, Floats, Numbers, Rows
from paretocosmos.estimators.objectives import InUnit
from paretocosmos.evaluation.evaluate import evaluate
from paretocosmos.methods import Method
from paretocosmos.objectives import Objective
from paretocosmos.pareto.front import Front
from paretocosmos.problems import Problem, Split, check_split
from paretocosmos.problems.tables import (
    Codes,
    Grouping,
    Table,
    TableProblem,
    TabularProblem,
    encode_labels,
    is_categorical,
    to_numbers,
)
from paretocosmos.training.callbacks import Callback
from paretocosmos.training.fit import fit
from paretocosmos.training.progress import Progress, show_bars
from paretocosmos.types import Batch, Metric, Outputs, map_tensors

Kind = Classes | Numbers
HELD_OUT: tuple[Split, ...] = ("val", "test")
# A reference point for losses of standardised things, as for the paper's tables.
REFERENCE = 2.0


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


# Fewer rows than this are not split: the few that could be spared would say little of a front.
SMALL = 100


def split_rows(strata: Codes, share: float, seed: int) -> tuple[Codes, Codes]:
    """Rows to train on and rows to validate on, each stratum in both where it has two rows.

    Args:
        strata: each row's, such as its class and group.
        share: of the rows that validate.
        seed: of the draw.
    """
    if not 0 < share < 1:
        raise ConfigurationError(
            f"`validation_fraction` must lie between 0 and 1, found {share}: 0.15 is usual"
        )
    draw = np.random.default_rng(seed)
    if len(strata) < SMALL:
        every = np.arange(len(strata))
        return every, every
    if np.unique(strata).size > len(strata) // 2:  # hardly any has two rows
        strata = np.zeros_like(strata)
    train, val = [], []
    for stratum in np.unique(strata):
        rows = draw.permutation(np.flatnonzero(strata == stratum))
        count = int(np.clip(round(share * len(rows)), len(rows) > 1, max(len(rows) - 1, 0)))
        val.append(rows[:count])
        train.append(rows[count:])
    return np.sort(np.concatenate(train)), np.sort(np.concatenate(val))


def alike(
    frame: pd.DataFrame, targets: list[npt.NDArray[Any]], weight: Floats | None
) -> tuple[Codes, Floats]:
    """One row of each kind, in an order of their own, and how much all of its kind count together.

    So a weight of 2 is the same as a row given twice, and the order of rows does not matter.

    Args:
        frame: the features.
        targets: everything else by which rows differ.
        weight: how much each row counts.
    """
    columns = [
        encode_labels(frame[name])[0]
        if is_categorical(frame[name])
        else np.unique(to_numbers(frame[name]), return_inverse=True)[1]
        for name in frame.columns
    ]
    columns += [np.unique(target, return_inverse=True)[1] for target in targets]
    _, rows, kind = np.unique(
        np.stack(columns, axis=1), axis=0, return_index=True, return_inverse=True
    )
    return rows, np.bincount(kind.ravel(), weight, minlength=len(rows)).astype(np.float64)


def check_parts(
    codes: Codes, called: Sequence[object], parts: tuple[Codes, Codes], what: str
) -> None:
    """Refuse a class or group of which only one of the parts has rows.

    Args:
        codes: each row's, numbered from 0.
        called: what the numbers stand for.
        parts: the rows that train and those that validate.
        what: they are, in a word.
    """
    for rows in parts:
        found = np.bincount(codes[rows], minlength=len(called))
        if not found.all():
            raise DataError(
                f"every {what} needs rows for training and for validation, found too few of "
                f"`{called[int(found.argmin())]}`: add some, leave it out, or merge it with another"
            )


# Where an epoch is a few steps, a training needs more epochs; without rows to select the best epoch
# by, more steps learn the rows by heart. Picked by held-out scores on small tables.
EPOCHS, STEPS, STEPS_UNJUDGED = 50, 1000, 300
# A small table is passed over several times in what counts as an epoch, which costs a checkpoint.
STEPS_AT_ONCE = 100
EVALUATIONS = 10
# What a training draws, and how its steps are recorded, belongs to the whole process: threads (a
# grid search with that backend) take turns.
ONE_AT_A_TIME = threading.Lock()
# Calls between somebody's `fit` and what is said here.
DEPTH = 5
# Numbers that a table repeated in this way may take: 16 megabytes.
REPEATED = 4_000_000
# What a record says of the files beside it, and of a front that is measured anew.
NOT_KEPT = ("files", "sha256", "metrics", "by_objective")


class Trained(NamedTuple):
    """What a training gave.

    Attributes:
        model: the network, in float64 on the CPU.
        front: its validation front.
        record: what `run.json` said of it.
    """

    model: nn.Module
    front: Front
    record: dict[str, Any]


def passes(
    epochs: int | None, rows: int, features: int, batch_size: int, *, judged: bool
) -> tuple[int, int]:
    """Epochs, and how often each passes over the rows.

    Args:
        epochs: passes over the data, if somebody said so.
        rows: to train on.
        features: of a row.
        batch_size: of a step.
        judged: whether other rows select the best epoch.

    >>> passes(None, 100_000, 10, 256, judged=True), passes(None, 50, 10, 50, judged=False)
    ((50, 1), (3, 100))
    """
    if epochs is not None:
        return epochs, 1
    steps = -(-rows // batch_size)
    wanted = max(EPOCHS, -(-(STEPS if judged else STEPS_UNJUDGED) // steps))
    repeat = max(1, min(STEPS_AT_ONCE // steps, REPEATED // (rows * features)))
    return -(-wanted // repeat), repeat


def train(
    problem: Fitted,
    *,
    method: str | Method | None,
    settings: Mapping[str, Any],
    seed: int,
    device: str,
    progress: Callable[[Progress], None] | bool = True,
    callbacks: Sequence[Callback] = (),
) -> Trained:
    """Train a network, bring it to the CPU and look at it there, in float64.

    So what it predicts for a row does not depend on the rows beside it, and a front tells exactly
    what predictions have. What the training found of its front is warned of, in a sentence each.

    Args:
        problem: what to train on.
        method: a method or its name; the default preset's if `None`.
        settings: of the method, the network and the training.
        seed: of all that is drawn.
        device: where to train.
        progress: a bar where somebody looks, none, or what is called after every epoch.
        callbacks: told of the training.
    """
    place = tempfile.TemporaryDirectory(prefix="paretocosmos-")
    with (
        ONE_AT_A_TIME,
        place as folder,
        show_bars(keep=False, quiet=progress is not True),
        warnings.catch_warnings(),
    ):
        # the reference point is not the caller's, and no number of an estimator's; what is found is
        # told once all is done, as of the caller's own line
        warnings.simplefilter("ignore", FrontWarning)
        try:
            run = fit(
                problem,
                method=method,
                settings=settings,
                seed=seed,
                device=device,
                out=Path(folder) / "run",
                progress=progress,
                callbacks=callbacks,
                report=False,
            )
        except DivergedError as error:  # it speaks of a checkpoint, which is gone with the folder
            what = str(error).partition(";")[0]
            raise DivergedError(f"{what}: lower `learning_rate` or look at the data") from error
    for finding in run.record["findings"]:
        warnings.warn(finding["text"], FindingWarning, stacklevel=DEPTH)
    model = run.model.cpu().double()
    rays = [[float(part) for part in ray] for ray in run.front_val.rays]
    origin = dict(run.front_val.provenance)
    front = evaluate(model, problem, split="val", rays=rays, provenance=origin)
    record = {key: value for key, value in run.record.items() if key not in NOT_KEPT}
    return Trained(model, front, record)
