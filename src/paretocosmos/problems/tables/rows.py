"""The rows of a table: checked, split, grouped and encoded, for files and estimators alike."""

import itertools
import warnings
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from paretocosmos.errors import ConfigurationError, DataError, DataWarning, require_extra, unknown
from paretocosmos.objectives import GroupObjective
from paretocosmos.problems.base import SPLITS, Split
from paretocosmos.problems.tables.cells import to_frame
from paretocosmos.problems.tables.columns import drop_identifiers, read_columns
from paretocosmos.problems.tables.groups import (
    Codes,
    Grouping,
    SmallGroups,
    pool_small_groups,
    split_cut,
)
from paretocosmos.problems.tables.table import Table
from paretocosmos.types import Batch

if TYPE_CHECKING:
    import pandas as pd

# 70/10/20, as the published code cuts it: 20 % off for test, then an eighth of the rest for val.
TEST_SHARE, VAL_SHARE = 0.2, 0.125
MIN_ROWS, FEW_ROWS = 10, 100


def _check_columns_and_sizes(
    frame: "pd.DataFrame",
    target: str,
    sensitive: Sequence[str],
    categorical: Collection[str],
    drop: Collection[str],
    keep: Collection[str],
    seed: int,
) -> None:
    """Validate the names of columns and the number of rows."""
    require_extra("sklearn", "tabular", "splitting a table")
    for key, listed in (("categorical", categorical), ("drop", drop), ("keep", keep)):
        if isinstance(listed, str):
            raise ConfigurationError(
                f"`{key}` must be a list of columns, found {listed!r}: [{listed!r}]"
            )
    for role, columns in (
        ("target column", (target,)),
        ("sensitive column", sensitive),
        ("categorical column", categorical),
        ("column to drop", drop),
        ("column to keep", keep),
    ):
        for column in columns:
            if column not in frame.columns:
                raise unknown(role, column, frame.columns)
    if target in sensitive:
        raise ConfigurationError(
            f"`target` and `sensitive` must be different columns, found `{target}` for both"
        )
    if not 0 <= seed < 2**32:
        raise ConfigurationError(f"the seed of a split must be 0 to 2**32 - 1, found {seed}")
    if len(frame) < MIN_ROWS:
        raise DataError(
            f"a table needs at least {MIN_ROWS} rows to be split 70/10/20, found {len(frame)}"
        )
    if len(frame) < FEW_ROWS:
        warnings.warn(
            f"a table of {len(frame)} rows leaves only a few for validation and test, so the front "
            f"is mostly noise: use at least {FEW_ROWS} rows",
            DataWarning,
            stacklevel=3,
        )
    for role, column in (("target", target), *(("sensitive column", s) for s in sensitive)):
        missing = int(frame[column].isna().sum())
        if missing:
            raise DataError(
                f"the {role} `{column}` must be known in every row, found {missing:,} missing of "
                f"{len(frame):,}: leave those rows out of the data first"
            )


def stack_frames(
    parts: "Mapping[str, pd.DataFrame | None]",
) -> "tuple[pd.DataFrame, dict[str, int]]":
    """Return the rows of all files one below the other, and the number of rows of each."""
    frames = {key: to_frame(part) for key, part in parts.items() if part is not None}
    import pandas as pd

    first = frames["train"]
    for key, frame in frames.items():
        absent = [f"`{name}`" for name in first.columns if name not in frame.columns]
        if absent:
            raise DataError(
                f"the rows of `{key}` must have the columns of the training rows, found none "
                f"called {', '.join(absent[:3])}: give the same columns"
            )
    sizes = {key: len(frame) for key, frame in frames.items()}
    if len(frames) == 1:
        return first, sizes
    every = [frame[list(first.columns)] for frame in frames.values()]
    return pd.concat(every, ignore_index=True), sizes


def split_rows(sizes: Mapping[str, int], seed: int) -> dict[str, Codes]:
    """The rows of each split, by position; those that were not given are drawn from train."""
    from sklearn.model_selection import train_test_split

    rest, start = np.arange(sizes["train"]), sizes["train"]
    found: dict[str, Codes] = {}
    for key in ("val", "test"):
        if key in sizes:
            found[key] = np.arange(start, start + sizes[key])
            start += sizes[key]
    if "test" not in found:
        rest, found["test"] = train_test_split(rest, test_size=TEST_SHARE, random_state=seed)
    if "val" not in found:
        rest, found["val"] = train_test_split(rest, test_size=VAL_SHARE, random_state=seed)
    return {"train": rest, "val": found["val"], "test": found["test"]}


def select_features(
    frame: "pd.DataFrame",
    *,
    leave: Collection[str],
    categorical: Collection[str],
    keep: Collection[str],
    read: bool = True,
) -> "pd.DataFrame":
    """Return the columns of a table to learn from.

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
        features = drop_identifiers(features, keep=(*keep, *categorical))
    if features.shape[1] == 0:
        raise DataError(
            f"a table needs a feature besides {', '.join(f'`{name}`' for name in leave)}, found "
            "none left: drop fewer columns"
        )
    return features


class PreparedTable(NamedTuple):
    """A table that is checked and split, but not yet encoded.

    Attributes:
        frame: all of its rows, whatever file they came from.
        features: the columns to learn from.
        rows: those of every split, by position.
    """

    frame: "pd.DataFrame"
    features: "pd.DataFrame"
    rows: dict[str, Codes]

    def group(
        self,
        asked: Sequence[str],
        label: npt.NDArray[np.float32],
        *,
        how: SmallGroups | None,
        positives: bool,
    ) -> tuple[Grouping, dict[str, Codes]]:
        """Return the groups, and the targets that say which group a row belongs to.

        Args:
            asked: the sensitive columns, as `Grouping.fit` takes them.
            label: every row's, 1 for the positive class.
            how: what to do with small groups; `None` for nothing.
            positives: whether a group needs positive rows in every split.
        """
        grouping = Grouping.fit(self.frame, asked)
        codes = grouping.codes(self.frame)
        if how is not None:
            grouping, codes = pool_small_groups(
                grouping, codes, label, self.rows, how=how, positives=positives
            )
        return grouping, {"sensitive": codes, **grouping.codes_by_attribute(self.frame)}

    def encode(
        self,
        targets: Mapping[str, npt.NDArray[Any]],
        *,
        categorical: Collection[str],
        on_all: bool = False,
    ) -> tuple[Table, dict[Split, Batch]]:
        """Fit the preprocessing on the rows to train on, or on all, and encode the splits."""
        table = Table.fit(
            self.features if on_all else self.features.iloc[self.rows["train"]],
            categorical=[column for column in categorical if column in self.features.columns],
        )
        inputs = table.transform(self.features)
        return table, {key: to_batch(inputs, targets, self.rows[key]) for key in SPLITS}


def prepare_table(
    frames: "Mapping[str, pd.DataFrame | None]",
    *,
    target: str,
    sensitive: Sequence[str],
    categorical: Collection[str],
    drop: Collection[str],
    keep: Collection[str],
    seed: int,
    read: bool = True,
) -> PreparedTable:
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
    frame, sizes = stack_frames(frames)
    people = [split_cut(name, list(frame.columns))[0] for name in sensitive]
    _check_columns_and_sizes(frame, target, people, categorical, drop, keep, seed)
    leave = (target, *people, *drop)
    features = select_features(frame, leave=leave, categorical=categorical, keep=keep, read=read)
    return PreparedTable(frame, features, split_rows(sizes, seed))


def check_target_columns(frame: "pd.DataFrame", target: str, grouping: Grouping | None) -> None:
    """Refuse rows without the column of the target or one of the groups."""
    people = () if grouping is None else grouping.attributes
    for role, columns in (
        ("target column", [target]),
        ("sensitive column", [attribute.name for attribute in people]),
    ):
        for column in columns:
            if column not in frame.columns:
                raise unknown(role, column, frame.columns)


def group_targets(frame: "pd.DataFrame", grouping: Grouping | None) -> dict[str, Codes]:
    """Return the group of every row, together and by each column alone; refuse a new group."""
    if grouping is None:
        return {}
    groups = grouping.codes(frame)
    lost = np.flatnonzero(groups < 0)
    if len(lost):
        cells = " & ".join(str(frame[one.name].iloc[lost[0]]) for one in grouping.attributes)
        raise DataError(
            f"every row must belong to a group of `{grouping.called}` from training, found "
            f"{len(lost):,} that do not, such as row {lost[0] + 1:,} with `{cells}`: leave such "
            "rows out"
        )
    return {"sensitive": groups, **grouping.codes_by_attribute(frame)}


def check_compared_rows(
    parts: Mapping[str, Codes],
    classes: Codes,
    groups: Codes,
    names: Sequence[str],
    gap: GroupObjective,
) -> None:
    """Refuse a part of the data in which a group has none of the rows that an objective compares.

    Args:
        parts: the rows of every part, such as a split.
        classes: the class of each row; of two the second is positive, of several each in turn.
        groups: the group of each row.
        names: of the groups.
        gap: the objective that compares them.
    """
    count = max(2, int(classes.max()) + 1)
    for kind, (part, rows) in itertools.product(gap.over, parts.items()):
        present = np.zeros((len(names), count), dtype=bool)
        present[groups[rows], classes[rows]] = True
        if kind == "all":
            present = np.repeat(present.any(axis=1, keepdims=True), count, axis=1)
        elif kind == "negatives":
            present = present @ ~np.eye(count, dtype=bool)
        # each of several classes is positive in turn; those that a group lacks are skipped
        enough = present[:, 1:] if count == 2 else present
        if enough.all(axis=0).any():
            continue
        empty = np.flatnonzero(enough.sum(axis=1) == enough.sum(axis=1).min())[:5]
        what = "rows" if kind == "all" else f"{kind.removesuffix('s')} rows"
        if kind != "all" and count > 2:
            what = "rows of a class that the others have, too"
        raise DataError(
            f"`{gap.name}` needs {what} in every group and split, found none of "
            f"{', '.join(f'`{names[at]}`' for at in empty)} in `{part}` ({len(rows):,} rows): "
            "merge or pool small groups, add rows, draw another split, or compare "
            "`demographic_parity`"
        ).with_hint({"small_groups": "pool"})


def to_batch(
    inputs: npt.NDArray[np.float32], targets: Mapping[str, npt.NDArray[Any]], rows: Codes
) -> Batch:
    """Return some of the rows as tensors."""
    tensors = {name: torch.from_numpy(column[rows]) for name, column in targets.items()}
    return Batch(torch.from_numpy(inputs[rows]), tensors)
