"""Check, split, group and encode the rows of a table, for files and estimators alike."""

import itertools
import re
import warnings
from collections.abc import Collection, Mapping, Sequence
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from paretocosmos.errors import (
    ConfigurationError,
    DataError,
    DataWarning,
    check_choice,
    require_extra,
)
from paretocosmos.objectives import GroupObjective
from paretocosmos.problems.base import HELD, SPLITS, Split
from paretocosmos.problems.tables.columns import holds_text, read_columns, to_frame
from paretocosmos.problems.tables.groups import Codes, Grouping, split_cut
from paretocosmos.problems.tables.table import Table
from paretocosmos.types import Batch

if TYPE_CHECKING:
    import pandas as pd

# 70/10/20, as the published code cuts it: 20 % off for test, then an eighth of the rest for val.
TEST_SHARE, VAL_SHARE = 0.2, 0.125
# Ten rows leave one or two for val and test; of fewer than a hundred, both say hardly anything.
MIN_ROWS, FEW_ROWS = 10, 100

# Rows that become features at once.
BLOCK_ROWS = 2**18

# Fewer rows than this may all differ by chance, so none of their columns is an identifier.
IDENTIFIER_ROWS = 50
# Text that differs in this share of the rows is a name, an address or a remark.
DISTINCT_SHARE = 0.5
# At the end of a name and after something that is no letter: `paid` and `grid` are no ids.
_ID_NAME = re.compile(
    r"(^|[^a-z])(id|uuid|guid|key|nr|no|index|row|rowid)$|^unnamed", re.IGNORECASE
)


class PreparedTable(NamedTuple):
    """A table that is checked and split, but not yet encoded.

    Attributes:
        frame: all of its rows, whatever file they came from.
        features: the columns to learn from.
        rows: those of every split, by position.
        seed: of the draw, if all splits were drawn; else `None`.
    """

    frame: "pd.DataFrame"
    features: "pd.DataFrame"
    rows: dict[str, Codes]
    seed: int | None

    def split_by(self, strata: Codes) -> "PreparedTable":
        """Return the table split again, with the same share of each stratum in every split."""
        draw = np.random.default_rng(self.seed)
        rest, test = split_strata(strata, TEST_SHARE, draw)
        train, val = split_strata(strata[rest], VAL_SHARE, draw)
        return self._replace(rows={"train": rest[train], "val": rest[val], "test": test})

    def encode(
        self,
        targets: Mapping[str, npt.NDArray[Any]],
        *,
        categorical: Collection[str],
        on_all: bool = False,
    ) -> tuple[Table, dict[Split, Batch]]:
        """Fit the preprocessing on the rows to train on, or on all, and encode the splits."""
        table = Table.fit(
            self.features,
            # the published code's preprocessing also sees the other rows
            rows=None if on_all else self.rows["train"],
            categorical=[column for column in categorical if column in self.features.columns],
        )
        splits: dict[Split, Codes] = {key: self.rows[key] for key in SPLITS}
        return table, encode_rows(table, self.features, targets, splits)


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
    require_extra("sklearn", "tabular", "splitting a table")
    frame, sizes = _stack_frames(frames)
    # cuts such as the `:5` of `age:5` are no part of a column's name
    people = [split_cut(name, list(frame.columns))[0] for name in sensitive]
    for key, columns in (("categorical", categorical), ("drop", drop), ("keep", keep)):
        # a text is a collection too, of letters
        if isinstance(columns, str):
            raise ConfigurationError(
                f"`{key}` must be a list of columns, found {columns!r}: [{columns!r}]"
            )
    check_columns(
        frame,
        {
            "target column": (target,),
            "sensitive column": people,
            "categorical column": categorical,
            "column to drop": drop,
            "column to keep": keep,
        },
    )
    _check_target_and_size(frame, target, people, seed)
    # sensitive columns are no features: a decision must not depend on the group as such
    excluded = (target, *people, *drop)
    features = frame.drop(columns=[*{*excluded}])
    if read:
        features = read_columns(features, as_they_are=categorical)
        # only after reading: numbers written as text may count the rows too
        features = drop_identifiers(features, keep=(*keep, *categorical))
    if features.shape[1] == 0:
        raise DataError(
            f"a table needs a feature besides {', '.join(f'`{name}`' for name in excluded)}, found "
            "none left: drop fewer columns"
        )
    drawn = seed if sizes.keys() == {"train"} else None
    return PreparedTable(frame, features, split_rows(sizes, seed), drawn)


def _stack_frames(
    frames: "Mapping[str, pd.DataFrame | None]",
) -> "tuple[pd.DataFrame, dict[str, int]]":
    """Return the rows of all files one below the other, and the number of rows of each."""
    parts = {key: to_frame(frame) for key, frame in frames.items() if frame is not None}
    import pandas as pd  # only now: `to_frame` explains its absence

    columns = list(parts["train"].columns)
    for key, frame in parts.items():
        absent = [f"`{name}`" for name in columns if name not in frame.columns]
        if absent:
            raise DataError(
                f"the rows of `{key}` must have the columns of the training rows, found none "
                f"called {', '.join(absent[:3])}: give the same columns"
            )
    sizes = {key: len(frame) for key, frame in parts.items()}
    # a single frame is not copied, since it is only read
    if len(parts) == 1:
        return parts["train"], sizes
    # one frame, so that categories and codes agree between files
    return pd.concat([frame[columns] for frame in parts.values()], ignore_index=True), sizes


def check_columns(frame: "pd.DataFrame", roles: Mapping[str, Collection[str]]) -> None:
    """Raise if a column that has a role is not in the table."""
    for role, columns in roles.items():
        for column in columns:
            check_choice(role, column, frame.columns)


def _check_target_and_size(
    frame: "pd.DataFrame", target: str, sensitive: Sequence[str], seed: int
) -> None:
    """Validate the columns that must be known in every row, the seed and the number of rows."""
    if target in sensitive:
        raise ConfigurationError(
            f"`target` and `sensitive` must be different columns, found `{target}` for both"
        )
    # the range of NumPy's RandomState, which scikit-learn seeds
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


def split_rows(sizes: Mapping[str, int], seed: int) -> dict[str, Codes]:
    """Return the rows of each split, by position; absent splits are drawn from train."""
    from sklearn.model_selection import train_test_split

    train, start = np.arange(sizes["train"]), sizes["train"]
    rows: dict[str, Codes] = {}
    for key in ("val", "test"):
        if key in sizes:
            rows[key] = np.arange(start, start + sizes[key])
            start += sizes[key]
    # test before val: the order decides which rows the published code's seed draws
    for key, share in (("test", TEST_SHARE), ("val", VAL_SHARE)):
        if key not in rows:
            train, rows[key] = train_test_split(train, test_size=share, random_state=seed)
    return {"train": train, "val": rows["val"], "test": rows["test"]}


def split_strata(strata: Codes, share: float, draw: np.random.Generator) -> tuple[Codes, Codes]:
    """Return two parts of the rows, the second with the same share of each stratum.

    A stratum of two rows or more is in both.
    """
    first, second = [], []
    for stratum in np.unique(strata):
        rows = draw.permutation(np.flatnonzero(strata == stratum))
        count = int(np.clip(round(share * len(rows)), len(rows) > 1, max(len(rows) - 1, 0)))
        second.append(rows[:count])
        first.append(rows[count:])
    return np.sort(np.concatenate(first)), np.sort(np.concatenate(second))


def find_identifiers(frame: "pd.DataFrame") -> dict[str, str]:
    """Find columns that name a row instead of describing it, each with the reason.

    Whole numbers that all differ and count the rows, go up with them, or are called an identifier;
    text that differs in most rows.

    >>> import pandas as pd
    >>> people = pd.DataFrame({"id": range(100, 200), "age": [20, 30, 40, 50] * 25})
    >>> find_identifiers(people)
    {'id': 'a whole number of its own in every row'}
    """
    from pandas.api import types

    reasons = {}
    for name in frame.columns if len(frame) >= IDENTIFIER_ROWS else ():
        series = frame[name]
        if types.is_integer_dtype(series.dtype):
            if _is_row_number(str(name), series):
                reasons[name] = "a whole number of its own in every row"
        elif holds_text(series):
            texts = series.dropna()
            if types.is_object_dtype(texts.dtype):  # 1 and "1" are one text
                texts = texts.map(str)
            distinct = texts.nunique()
            if len(texts) >= IDENTIFIER_ROWS and distinct >= DISTINCT_SHARE * len(texts):
                reasons[name] = f"{distinct:,} different texts in {len(texts):,} rows"
    return reasons


def _is_row_number(name: str, series: "pd.Series[Any]") -> bool:
    if series.isna().any() or not series.is_unique:
        return False
    values = series.to_numpy(np.float64)
    # all different and without a hole: they count the rows
    if _ID_NAME.search(name) or values.max() - values.min() == len(values) - 1:
        return True
    # in order all the way through: a serial number, or a time stamp
    steps = np.diff(values)
    return bool((steps > 0).all() or (steps < 0).all())


def drop_identifiers(frame: "pd.DataFrame", *, keep: Collection[str]) -> "pd.DataFrame":
    """Return the frame without identifiers, with a warning; those of `keep` stay."""
    reasons = {name: why for name, why in find_identifiers(frame).items() if name not in keep}
    if not reasons:
        return frame
    names = ", ".join(f"`{name}` ({why})" for name, why in reasons.items())
    verb = "names rows rather than describing them, and is"
    if len(reasons) > 1:
        verb = "name rows rather than describing them, and are"
    warnings.warn(
        f"{names} {verb} left out: list a column in `keep` to use it, or in `drop` to leave it out "
        "without this note",
        DataWarning,
        stacklevel=3,
    )
    return frame.drop(columns=list(reasons))


def add_group(frame: "pd.DataFrame", table: Table, grouping: Grouping | None) -> "pd.DataFrame":
    """Return rows with the name of their group, where that is one of the table's columns."""
    if grouping is None or {*table.categorical.get(grouping.title, ())} != {*grouping.names}:
        return frame
    frame = to_frame(frame)
    if not all(attribute.name in frame.columns for attribute in grouping.attributes):
        return frame  # the table names what it lacks
    return grouping.add_to(frame, grouping.codes(frame))


def group_targets(frame: "pd.DataFrame", grouping: Grouping | None) -> dict[str, Codes]:
    """Return the group of every row, together and by each column alone; refuse a new group."""
    if grouping is None:
        return {}
    groups = grouping.codes(frame)
    # -1 is no group: an objective would leave such a row out silently
    unseen = np.flatnonzero(groups < 0)
    if len(unseen):
        cells = " & ".join(str(frame[a.name].iloc[unseen[0]]) for a in grouping.attributes)
        raise DataError(
            f"every row must belong to a group of `{grouping.title}` from training, found "
            f"{len(unseen):,} that do not, such as row {unseen[0] + 1:,} with `{cells}`: leave "
            "such rows out"
        )
    return {"sensitive": groups, **grouping.codes_by_attribute(frame)}


def check_compared_rows(
    splits: Mapping[str, Codes],
    classes: Codes,
    groups: Codes,
    names: Sequence[str],
    gap: GroupObjective,
) -> None:
    """Raise if a group has none of the rows that an objective compares in some split.

    Args:
        splits: the rows of every split.
        classes: the class of each row; of two the second is positive, of several each in turn.
        groups: the group of each row.
        names: of the groups.
        gap: the objective that compares them.
    """
    # at least two, even where no row is positive
    count = max(2, int(classes.max()) + 1)
    for kind, (split, rows) in itertools.product(gap.over, splits.items()):
        present = np.zeros((len(names), count), dtype=bool)
        present[groups[rows], classes[rows]] = True
        if kind == "all":
            present = np.repeat(present.any(axis=1, keepdims=True), count, axis=1)
        elif kind == "negatives":
            # the negatives of a class are the rows of any other class
            present = present @ ~np.eye(count, dtype=bool)
        # each of several classes is positive in turn; those that a group lacks are skipped
        enough = present[:, 1:] if count == 2 else present
        if enough.all(axis=0).any():
            continue
        empty = np.flatnonzero(enough.sum(axis=1) == enough.sum(axis=1).min())[:5]
        needed = "rows" if kind == "all" else f"{kind.removesuffix('s')} rows"
        if kind != "all" and count > 2:
            needed = "rows of a class that the others have, too"
        # of two groups, none is left to compare a pool with
        pooling = 'pool small groups with `small_groups="pool"`, ' if len(names) > 2 else ""
        raise DataError(
            f"`{gap.name}` needs {needed} in every group and split, found none of "
            f"{', '.join(f'`{names[group]}`' for group in empty)} in {split} ({len(rows):,} "
            f"rows): {pooling}add rows, or compare `demographic_parity`"
        )


def encode_rows(
    table: Table,
    frame: "pd.DataFrame",
    targets: Mapping[str, npt.NDArray[Any]],
    splits: Mapping[Split, Codes],
) -> dict[Split, Batch]:
    """Return the rows of each split as tensors; features beyond 1 GB are mapped from a file."""
    inputs: dict[Split, npt.NDArray[np.float32]] = {}
    for key, rows in splits.items():
        shape = len(rows), len(table.features)
        if shape[0] * shape[1] * 4 <= HELD:
            inputs[key] = np.empty(shape, np.float32)
            continue
        # the system keeps the file until nothing uses it
        with TemporaryFile() as file:
            inputs[key] = np.memmap(file, np.float32, "w+", shape=shape)
    for start in range(0, len(frame), BLOCK_ROWS):
        stop = start + BLOCK_ROWS
        features = table.transform(frame.iloc[start:stop])
        for key, rows in splits.items():
            here = np.flatnonzero((rows >= start) & (rows < stop))
            inputs[key][here] = features[rows[here] - start]
    return {
        key: Batch(
            torch.from_numpy(inputs[key]),
            {name: torch.from_numpy(column[rows]) for name, column in targets.items()},
        )
        for key, rows in splits.items()
    }
