"""What problems on tables share: columns to learn from, and rows as tensors."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from paretocosmos.errors import DataError
from paretocosmos.problems._base import SPLITS, Problem, Split, check_split
from paretocosmos.problems.tables.columns import read_columns, without_identifiers
from paretocosmos.problems.tables.groups import Codes, Grouping, column_of
from paretocosmos.problems.tables.rows import check, split_rows, together
from paretocosmos.problems.tables.small_groups import SmallGroups, pooled
from paretocosmos.problems.tables.table import Table
from paretocosmos.types import Batch

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Prepared", "TableProblem", "batch_of", "prepared"]


@dataclass(frozen=True, kw_only=True, eq=False)
class TableProblem(Problem):
    """A problem whose inputs are the columns of a table, float32 ``[B, features]``.

    Attributes:
        splits: train, val and test.
        table: the preprocessing, for rows to come.
    """

    tabular: ClassVar[bool] = True

    splits: Mapping[Split, Batch] = field(repr=False)
    table: Table = field(repr=False)

    def split(self, name: Split) -> Batch:
        check_split(name)
        return self.splits[name]

    def inputs_for(self, frame: "pd.DataFrame") -> Tensor:
        """A network's inputs for new rows: ``[rows, features]``."""
        return torch.from_numpy(self.table.transform(frame))


def _features_in(
    frame: "pd.DataFrame",
    *,
    leave: Collection[str],
    categorical: Collection[str],
    keep: Collection[str],
    read: bool = True,
) -> "pd.DataFrame":
    """The columns of a table to learn from.

    Args:
        frame: the table.
        leave: columns that are no features.
        categorical: columns to read as categories.
        keep: columns to keep although they seem to be identifiers.
        read: whether text may be numbers, and identifiers are left out.
    """
    features = frame.drop(columns=[*{*leave}])
    if read:
        features = read_columns(features, as_they_are=categorical)
        features = without_identifiers(features, keep=(*keep, *categorical))
    if features.shape[1] == 0:
        raise DataError(
            f"a table needs a feature besides {', '.join(f'`{name}`' for name in leave)}, found "
            "none left: drop fewer columns"
        )
    return features


class Prepared(NamedTuple):
    """A table that is checked and split, but not yet encoded.

    Attributes:
        frame: all of its rows, whatever file they came from.
        features: the columns to learn from.
        rows: those of every split, by position.
    """

    frame: "pd.DataFrame"
    features: "pd.DataFrame"
    rows: dict[str, Codes]

    def grouped(
        self,
        asked: Sequence[str],
        label: npt.NDArray[np.float32],
        *,
        how: SmallGroups | None,
        positives: bool,
    ) -> tuple[Grouping, dict[str, Codes]]:
        """The groups of its rows, and the targets that say which group a row belongs to.

        Args:
            asked: the sensitive columns, as `Grouping.fit` takes them.
            label: every row's, 1 for the positive class.
            how: what to do with small groups; `None` for nothing.
            positives: whether a group needs positive rows in every split.
        """
        grouping = Grouping.fit(self.frame, asked)
        codes = grouping.codes(self.frame)
        if how is not None:
            grouping, codes = pooled(
                grouping, codes, label, self.rows, how=how, positives=positives
            )
        alone = {f"sensitive_{one.name}": part for one, part in grouping.alone(self.frame)}
        return grouping, {"sensitive": codes, **alone}

    def encoded(
        self,
        targets: Mapping[str, npt.NDArray[Any]],
        *,
        categorical: Collection[str],
        on_all: bool = False,
    ) -> tuple[Table, dict[Split, Batch]]:
        """The preprocessing, fitted on the rows to train on or on all, and the splits."""
        table = Table.fit(
            self.features if on_all else self.features.iloc[self.rows["train"]],
            categorical=[column for column in categorical if column in self.features.columns],
        )
        inputs = table.transform(self.features)
        return table, {key: batch_of(inputs, targets, self.rows[key]) for key in SPLITS}


def prepared(
    frames: "Mapping[str, pd.DataFrame | None]",
    *,
    target: str,
    sensitive: Sequence[str],
    categorical: Collection[str],
    drop: Collection[str],
    keep: Collection[str],
    seed: int,
    read: bool = True,
) -> Prepared:
    """Check a table and split it.

    Args:
        frames: the rows of `train`, and those of `val` and `test` that are not to be drawn.
        target: the column to predict.
        sensitive: the columns whose groups are compared.
        categorical: columns to read as categories.
        drop: columns to leave out.
        keep: columns to keep although they seem to be identifiers.
        seed: decides which rows are train, val and test.
        read: whether text may be numbers, and identifiers are left out.
    """
    frame, sizes = together(frames)
    people = [column_of(one, list(frame.columns))[0] for one in sensitive]
    check(frame, target, people, categorical, drop, keep, seed)
    leave = (target, *people, *drop)
    features = _features_in(frame, leave=leave, categorical=categorical, keep=keep, read=read)
    return Prepared(frame, features, split_rows(sizes, seed))


def batch_of(
    inputs: npt.NDArray[np.float32], targets: Mapping[str, npt.NDArray[Any]], rows: Codes
) -> Batch:
    """Some of the rows, as tensors."""
    some = {name: torch.from_numpy(column[rows]) for name, column in targets.items()}
    return Batch(torch.from_numpy(inputs[rows]), some)
