"""A table of yours, in a file."""

from functools import partial
from pathlib import Path
from typing import Literal

from paretocosmos.errors import DataError
from paretocosmos.problems.base import Protocol
from paretocosmos.problems.tables.files import read_table
from paretocosmos.problems.tables.groups import GroupUse, SmallGroups
from paretocosmos.problems.tables.problem import TabularProblem
from paretocosmos.problems.tables.targets import Task


def table(
    *,
    data: str,
    target: str,
    task: Task = "binary",
    sensitive: tuple[str, ...] | str = (),
    small_groups: SmallGroups = "keep",
    group: GroupUse = "estimate",
    positive: str | bool | int | float | None = None,
    fairness: str | None = None,
    categorical: tuple[str, ...] = (),
    drop: tuple[str, ...] = (),
    keep: tuple[str, ...] = (),
    class_weight: Literal["balanced"] | None = None,
    separator: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    val: str | None = None,
    test: str | None = None,
    split_seed: int = 1,
    protocol: Protocol = "clean",
) -> TabularProblem:
    r"""A table in a file: predict one column, and treat the groups of others alike.

    Args:
        data: the file, with a header: ``.csv`` or ``.tsv``, also packed as ``.gz`` or ``.xz``, or
            ``.parquet``.
        target: the column to predict.
        task: what the target holds: ``"binary"``, two classes or one against the rest;
            ``"classes"``, several; or a ``"number"``.
        sensitive: the columns whose groups are compared; they are not features. With several
            columns the groups are their combinations, and each column alone is reported too.
            ``age:5`` cuts a number into five groups of about equal size, ``age:30/60`` at these
            values. Without any, the losses of the classes are traded, or predictions that are too
            high against those that are too low.
        small_groups: groups with fewer than 30 rows to train on, or without positive rows where
            some are needed: ``"keep"`` them and warn, ``"pool"`` them into one, or ``"refuse"``.
        group: how answers may depend on a person's group: ``"estimate"`` it from the other columns,
            take it as an ``"input"``, or ``"none"`` of both, so that only the training is told.
        positive: the class that counts as positive; needed unless the classes are such as no and
            yes.
        fairness: what is compared between groups: by default ``"tpr_gap"`` for classes and
            ``"error_gap"`` for numbers; `TabularProblem.from_frame` lists the others.
        categorical: columns to read as categories although they hold numbers.
        drop: columns to leave out.
        keep: columns to learn from although they seem to be identifiers.
        class_weight: ``"balanced"`` gives all classes the same weight in training, however rare;
            reported numbers count every row once.
        separator: between two columns, ``"tab"`` for a tab; by the header if left out.
        decimal: the decimal mark, ``"."`` or ``","``; a comma between semicolons if left out.
        encoding: of the text, such as ``"cp1252"``; UTF-8 if left out.
        val: a file with the rows to validate on; a share of those in `data` if left out.
        test: a file with the rows to test on, likewise.
        split_seed: decides which rows are train, val and test.
        protocol: ``"clean"`` fits the preprocessing on the train rows, ``"paper"`` on all.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "loans.csv"
    >>> rows = ["34,no,f", "51,yes,f", "29,yes,m", "46,no,m"] * 100
    >>> _ = file.write_text("\n".join(["age,loan,sex", *rows]))
    >>> problem = table(data=str(file), target="loan", sensitive="sex")
    >>> problem.names, problem.groups, problem.positive
    (('binary_cross_entropy', 'tpr_gap'), ('f', 'm'), 'yes')
    """
    path = Path(data)
    # files for val and test have the format of the first one
    read = partial(read_table, separator=separator, decimal=decimal, encoding=encoding)
    frame = read(path)
    # a wrong separator leaves one wide column
    if frame.shape[1] < 2:
        raise DataError(
            "a table must have several columns, found only "
            f"`{str(frame.columns[0])[:60]}` in `{data}`: name their separator with `separator`"
        ).with_hint({"separator": None})
    return TabularProblem.from_frame(
        frame,
        target=target,
        task=task,
        sensitive=sensitive,
        small_groups=small_groups,
        group=group,
        positive=positive,
        fairness=fairness,
        categorical=categorical,
        drop=drop,
        keep=keep,
        class_weight=class_weight,
        # without all of its endings: `loans.csv.gz` is `loans`
        name=path.name.partition(".")[0],
        seed=split_seed,
        protocol=protocol,
        val=None if val is None else read(Path(val)),
        test=None if test is None else read(Path(test)),
    )
