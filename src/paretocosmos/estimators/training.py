"""The problem an estimator trains on, and its training in a temporary folder."""

import tempfile
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from paretocosmos.errors import (
    ConfigurationError,
    DataError,
    DivergedError,
    FindingWarning,
    FrontWarning,
)
from paretocosmos.estimators.inputs import Rows, drop_equal_weights
from paretocosmos.estimators.objectives import InUnit, Numbers, Target
from paretocosmos.evaluation.evaluate import evaluate
from paretocosmos.evaluation.samples import map_batch
from paretocosmos.objectives import Objective
from paretocosmos.pareto import Front
from paretocosmos.problems import InMemoryProblem, Problem, Split
from paretocosmos.problems.tables import (
    Codes,
    Grouping,
    GroupUse,
    Table,
    TabularProblem,
    encode_labels,
    is_categorical,
    split_strata,
    to_numbers,
)
from paretocosmos.training.fit import fit
from paretocosmos.training.progress import Progress, show_bars
from paretocosmos.types import Batch, Metric, Outputs

HELD_OUT: tuple[Split, ...] = ("val", "test")
# A reference point for losses of standardised things, as for the paper's tables.
REFERENCE = 2.0
# Fewer rows than this are not split: the few that could be spared would say little of a front.
SMALL = 100
# Where an epoch is a few steps, a training needs more epochs; without rows to select the best epoch
# by, more steps learn the rows by heart. Picked by held-out scores on small tables.
EPOCHS, STEPS, STEPS_WITHOUT_VALIDATION = 50, 1000, 300
# A small table is passed over several times in what counts as an epoch, which costs a checkpoint.
STEPS_AT_ONCE = 100
EVALUATIONS = 10
# Numbers that a table repeated in this way may take: 16 megabytes.
REPEATED = 4_000_000
# The random generators that a training seeds, and the recording of its steps, belong to the
# whole process: threads (a grid search with that backend) take turns.
TRAINING_LOCK = threading.Lock()
# Calls between somebody's `fit` and the warnings here.
DEPTH = 3
# What a record says of the files beside it, and of a front that is measured anew.
NOT_KEPT = ("files", "sha256", "metrics", "by_objective")


@dataclass(frozen=True, kw_only=True, eq=False)
class RowsProblem(InMemoryProblem):
    """Rows in memory with several targets."""

    tabular: ClassVar[bool] = True


def build_problem(
    train: Rows,
    val: Rows,
    table: Table,
    targets: Sequence[Target],
    objectives: tuple[Objective, ...],
    metrics: Mapping[str, Metric],
    *,
    name: str,
    target_name: str,
    grouping: Grouping | None,
    group_use: GroupUse,
) -> TabularProblem | RowsProblem:
    """Build the problem of some rows. Those that validate stand for test, too.

    Args:
        train: rows to train on.
        val: rows to validate on.
        table: how columns become features.
        targets: what is predicted.
        objectives: what is traded.
        metrics: further numbers of a front.
        name: of the problem.
        target_name: of a single target.
        grouping: which groups there are.
        group_use: how predictions may depend on them.
    """
    with warnings.catch_warnings():
        # a category that only validation rows have is nobody's mistake
        warnings.simplefilter("ignore", UserWarning)
        val_batch = _encode_batch(val, table, targets)
    train_batch = _encode_batch(train, table, targets)
    names = [objective.name for objective in objectives]
    shared: dict[str, Any] = {
        "name": name,
        "objectives": objectives,
        "reference": tuple(_compute_reference(o, val_batch, targets) for o in objectives),
        "input_shape": (len(table.features),),
        "metrics": {key: metric for key, metric in metrics.items() if key not in names},
        "splits": {"train": train_batch, **dict.fromkeys(HELD_OUT, val_batch)},
    }
    if len(targets) > 1:
        return RowsProblem(**shared, outputs={t.name: t.width for t in targets})
    (target,) = targets
    answer = target.answer
    shared |= {"outputs": target.width, "table": table, "target": target_name, "answer": answer}
    shared |= {"grouping": grouping, "group_use": group_use}
    return TabularProblem(**shared)


def repeat_rows(problem: TabularProblem | RowsProblem, repeat: int) -> TabularProblem | RowsProblem:
    """Return a problem of which an epoch passes over the training rows several times."""
    if repeat == 1:
        return problem
    train = map_batch(
        problem.splits["train"], lambda values: values.repeat(repeat, *[1] * (values.ndim - 1))
    )
    return replace(problem, splits={**problem.splits, "train": train})


def _encode_batch(rows: Rows, table: Table, targets: Sequence[Target]) -> Batch:
    truth: dict[str, Tensor] = {}
    for target, column in zip(targets, rows.truth, strict=True):
        if isinstance(target, Numbers):
            values = (column - target.mean) / target.scale
        else:
            # a binary cross-entropy takes floats, that of several classes their numbers
            values = column.astype(np.float32 if target.width == 1 else np.int64)
        truth[target.name] = torch.from_numpy(values)
    for name, known in (("sensitive", rows.groups), ("weight", rows.weight)):
        if known is not None:
            truth[name] = torch.from_numpy(known.copy())
    return Batch(torch.from_numpy(table.transform(rows.frame)), truth)


def _compute_reference(objective: Objective, batch: Batch, targets: Sequence[Target]) -> float:
    """Return twice what a network without weights reaches: every useful front lies below."""
    zeros = {t.name: torch.zeros(len(batch), t.width, dtype=torch.float64) for t in targets}
    outputs: Outputs = zeros if len(targets) > 1 else zeros[targets[0].name]
    score = float(objective.score(outputs, batch.targets))
    floor = REFERENCE * (objective.factor if isinstance(objective, InUnit) else 1)
    # fmax, since the score of a group without rows is NaN
    return float(np.fmax(score + abs(score), floor))


def split_rows(strata: Codes, share: float, seed: int) -> tuple[Codes, Codes]:
    """Return the rows to train on and those to validate on, from each stratum the same share.

    A stratum of two rows or more is in both. Fewer than `SMALL` rows are not split: then both are
    the same array.

    Args:
        strata: each row's, such as its class and group.
        share: of the rows that validate.
        seed: of the draw.
    """
    if not 0 < share < 1:
        raise ConfigurationError(
            f"`validation_fraction` must lie between 0 and 1, found {share}: 0.15 is usual"
        )
    if len(strata) < SMALL:
        rows = np.arange(len(strata))
        return rows, rows
    draw = np.random.default_rng(seed)
    if np.unique(strata).size > len(strata) // 2:  # hardly any has two rows
        strata = np.zeros_like(strata)
    return split_strata(strata, share, draw)


def merge_equal_rows(rows: Rows) -> Rows:
    """Return each distinct row once, weighed by all that equal it, in an order of their own.

    So a weight of 2 is the same as a row given twice, and the order of rows does not matter.
    """
    columns = [
        encode_labels(rows.frame[name])[0]
        if is_categorical(rows.frame[name])
        else np.unique(to_numbers(rows.frame[name]), return_inverse=True)[1]
        for name in rows.frame.columns
    ]
    others = [*rows.truth, *([] if rows.groups is None else [rows.groups])]
    columns += [np.unique(values, return_inverse=True)[1] for values in others]
    # sorted by content, so that the order of the rows given does not matter
    _, index, kind = np.unique(
        np.stack(columns, axis=1), axis=0, return_index=True, return_inverse=True
    )
    total = np.bincount(kind.ravel(), rows.weight, minlength=len(index)).astype(np.float64)
    return replace(rows.take(index), weight=drop_equal_weights(total))


def check_in_both_splits(
    codes: Codes, labels: Sequence[object], splits: tuple[Codes, Codes], what: str
) -> None:
    """Raise if a class or group has no rows in one of the splits.

    Args:
        codes: each row's, numbered from 0.
        labels: what the numbers stand for.
        splits: the rows that train and those that validate.
        what: they are, in a word.
    """
    for rows in splits:
        counts = np.bincount(codes[rows], minlength=len(labels))
        if not counts.all():
            raise DataError(
                f"every {what} needs rows for training and for validation, found too few of "
                f"`{labels[int(counts.argmin())]}`: add some, leave it out, or merge it with "
                "another"
            )


def choose_epochs(
    epochs: int | None, rows: int, features: int, batch_size: int, *, holds_out: bool
) -> tuple[int, int]:
    """Return the number of epochs, and how often each passes over the rows.

    Args:
        epochs: passes over the data, if the caller said so.
        rows: to train on.
        features: of a row.
        batch_size: of a step.
        holds_out: whether other rows select the best epoch.

    >>> choose_epochs(None, 100_000, 10, 256, holds_out=True)
    (50, 1)
    >>> choose_epochs(None, 50, 10, 50, holds_out=False)
    (3, 100)
    """
    if epochs is not None:
        return epochs, 1
    steps = -(-rows // batch_size)
    wanted = max(EPOCHS, -(-(STEPS if holds_out else STEPS_WITHOUT_VALIDATION) // steps))
    repeat = max(1, min(STEPS_AT_ONCE // steps, REPEATED // (rows * features)))
    return -(-wanted // repeat), repeat


def train(
    problem: Problem, *, progress: Callable[[Progress], None] | bool, **options: Any
) -> tuple[nn.Module, Front, dict[str, Any]]:
    """Train a network, bring it to the CPU and evaluate it there, in float64.

    So what it predicts for a row does not depend on the rows beside it, and a front tells exactly
    what predictions have. Findings about its front are warnings, in a sentence each.

    Args:
        problem: what to train on.
        progress: a bar where somebody looks, none, or what is called after every epoch.
        options: of `training.fit.fit`.

    Returns:
        The network, its validation front, and what `run.json` said of the training.
    """
    with (
        TRAINING_LOCK,
        tempfile.TemporaryDirectory(prefix="paretocosmos-") as folder,
        show_bars(keep=False, quiet=progress is not True),
        warnings.catch_warnings(),
    ):
        # the reference point is not the caller's, and no number of an estimator's; findings are
        # warned of once all is done, as of the caller's own line
        warnings.simplefilter("ignore", FrontWarning)
        try:
            out = Path(folder) / "run"
            run = fit(problem, out=out, report=False, progress=progress, **options)
        except DivergedError as error:
            # it names a checkpoint, which is gone with the folder
            reason = str(error).partition(";")[0]
            raise DivergedError(f"{reason}: lower `learning_rate` or look at the data") from error
    for finding in run.record["findings"]:
        warnings.warn(finding["text"], FindingWarning, stacklevel=DEPTH)
    model = run.model.cpu().double()
    rays, provenance = run.front_val.rays.tolist(), dict(run.front_val.provenance)
    front = evaluate(model, problem, split="val", rays=rays, provenance=provenance)
    record = {key: value for key, value in run.record.items() if key not in NOT_KEPT}
    return model, front, record
