"""What an estimator is given, checked: features, targets, weights and groups."""

import math
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import (
    assert_all_finite,
    check_array,
    check_consistent_length,
    column_or_1d,
    validate_data,
)
from torch import Tensor

from paretocosmos.errors import ConfigurationError, DataError, DataWarning, ParetoCosmosError
from paretocosmos.io.files import one_line
from paretocosmos.problems.tables import (
    Answer,
    Codes,
    Grouping,
    Table,
    as_pandas,
    format_label,
    to_frame,
    to_numbers,
)
from paretocosmos.problems.tables.columns import find_identifiers, read_columns
from paretocosmos.problems.tables.policy import compute_shares
from paretocosmos.problems.tables.targets import compute_moments

Floats = npt.NDArray[np.float64]


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


class InputTypeError(DataError, TypeError):
    """Data of a kind that cannot be read."""


@contextmanager
def ours(way_out: str = "") -> Iterator[None]:
    """What scikit-learn refuses is refused as this library does it."""
    try:
        yield
    except ParetoCosmosError:
        raise
    except (TypeError, ValueError) as error:
        kind = InputTypeError if isinstance(error, TypeError) else DataError
        said = one_line(error)
        raise kind(f"{said.removesuffix('.')}: {way_out}" if way_out else said) from error


def frame_of(estimator: Any, rows: Any, *, reset: bool) -> pd.DataFrame:
    """Features as a table whose columns are called as when the estimator was fitted.

    Args:
        estimator: gets `n_features_in_` and `feature_names_in_`, or is asked for them.
        rows: a DataFrame of pandas or polars, of any columns a `Table` takes; or numbers
            ``[n, features]``.
        reset: whether these are the rows it is fitted on.
    """
    if getattr(getattr(rows, "dtype", None), "kind", "") in ("U", "S"):
        raise DataError(
            "an array `X` must hold numbers, found text: give a pandas DataFrame, whose columns "
            "may be text or categories"
        )
    rows = as_pandas(rows)
    with ours("" if reset else "give the columns that `fit` had"):
        if isinstance(rows, pd.DataFrame):
            validate_data(estimator, rows, reset=reset, skip_check_array=True)
            frame = _read(to_frame(rows), estimator.categorical) if reset else to_frame(rows)
        else:
            plain = validate_data(
                estimator, rows, reset=reset, dtype="numeric", ensure_all_finite=False
            )
            columns = [f"x{place}" for place in range(plain.shape[1])]
            frame = pd.DataFrame(plain, columns=columns, copy=False)
    if not frame.shape[0] or not frame.shape[1]:
        raise DataError(
            f"`X` must have at least 1 row and 1 feature, found shape {frame.shape}: give some"
        )
    # by their place, as scikit-learn does where names are missing on one side (it has warned)
    return frame if reset else frame.set_axis(estimator._columns, axis=1)


def _read(frame: pd.DataFrame, categorical: Collection[Any]) -> pd.DataFrame:
    """A frame to be fitted on: text that is numbers as numbers, identifiers noticed."""
    chosen = columns_in(categorical, frame)
    frame = read_columns(frame, as_they_are=chosen)
    for name, why in find_identifiers(frame).items():
        if name not in chosen:
            warnings.warn(
                f"`{name}` looks like an identifier ({why}): leave it out of `X`, or list it in "
                "`categorical` if you need it",
                DataWarning,
                stacklevel=5,
            )
    return frame


def features_of(table: Table, frame: pd.DataFrame) -> npt.NDArray[np.float32]:
    """Rows to predict for as features; a missing value where none was known is told."""
    filled = [
        name
        for name in table.numeric
        if name not in table.flagged and np.isnan(to_numbers(frame[name])).any()
    ]
    if filled:
        few = ", ".join(f"`{name}`" for name in filled[:3]) + ", ..." * (len(filled) > 3)
        warnings.warn(
            f"values are missing in {few}, which had none missing in `fit`: they are filled with "
            "the median from `fit`",
            UserWarning,
            stacklevel=4,
        )
    return table.transform(frame)


def check_lengths(**parts: Any) -> None:
    """Refuse parts with different numbers of rows."""
    given = {name: part for name, part in parts.items() if part is not None}
    with ours(f"{', '.join(f'`{name}`' for name in given)} have one entry for each row"):
        check_consistent_length(*given.values())


def weights_of(given: Any, count: int) -> Floats | None:
    """How much each row counts, checked; `None` where all count the same."""
    if given is None:
        return None
    with ours("`sample_weight` is one number for each row"):
        weight = np.asarray(given, dtype=np.float64)
    if weight.shape != (count,):
        raise DataError(
            f"`sample_weight` must be one number for each of the {count} rows, found shape "
            f"{weight.shape}"
        )
    if not np.isfinite(weight).all() or (weight < 0).any():
        raise DataError("`sample_weight` must be finite and not negative: leave other rows out")
    if not weight.any():
        raise DataError(
            "`sample_weight` is zero for every row: leave it out, or give some rows a positive "
            "weight"
        )
    return None if (weight == weight[0]).all() else weight


def groups_in(
    given: Any, kept: npt.NDArray[np.bool_], rows: Any, features: pd.DataFrame
) -> tuple[Grouping, Codes]:
    """Return which groups there are, and that of each row that is kept.

    Args:
        given: a column, or several, whose combinations are the groups.
        kept: which rows.
        rows: the features; if they have an index, so that of `given` must be theirs.
        features: the same by name; groups without a name have that of the feature they are.
    """
    given = as_pandas(given)
    _check_index(given, as_pandas(rows))
    if isinstance(given, pd.DataFrame):
        frame = to_frame(given).reset_index(drop=True)
    else:
        values = given.to_numpy() if isinstance(given, pd.Series) else np.asarray(given)
        categories = isinstance(getattr(given, "dtype", None), pd.CategoricalDtype)
        if values.ndim not in (1, 2):
            raise DataError(
                f"`sensitive` must be one column or several, found shape {values.shape}: give the "
                "group of every row"
            )
        if values.ndim == 1:
            name = str(getattr(given, "name", None) or _name_in(features, values, "sensitive"))
            frame = pd.DataFrame({name: given.array if categories else values})
        else:
            count = values.shape[1]
            usual = [f"sensitive_{k}" for k in range(count)] if count > 1 else ["sensitive"]
            names = [_name_in(features, values[:, k], name) for k, name in enumerate(usual)]
            frame = pd.DataFrame(values, columns=names)
    frame = frame.loc[kept]
    missing = int(frame.isna().any(axis=1).sum())
    if missing:
        raise DataError(
            f"`sensitive` must be known in every row, found {missing:,} missing of {len(frame):,}: "
            "leave those rows out, or make them a group of their own"
        )
    grouping = Grouping.fit(frame, list(frame.columns))
    return grouping, grouping.codes(frame)


def _name_in(features: pd.DataFrame, values: npt.NDArray[Any], usual: str) -> str:
    """Return the name of the feature with these values, or the usual one if there is none."""
    for name in features.columns:
        column = features[name]
        if not column.isna().any() and np.array_equal(column.to_numpy(), values):
            return str(name)
    return usual


def _check_index(given: Any, rows: Any) -> None:
    """Refuse groups whose rows are in another order than the features', going by their labels."""
    both = (pd.Series, pd.DataFrame)
    if not isinstance(given, both) or not isinstance(rows, both) or len(given) != len(rows):
        return
    plain = given.index.equals(pd.RangeIndex(len(given))) and not rows.index.isin(given.index).all()
    if not given.index.equals(rows.index) and not plain:
        raise DataError(
            "`sensitive` and `X` have different index labels, so their rows may not match: give "
            "`sensitive.loc[X.index]`, or `sensitive.to_numpy()` if they are in the "
            "same order"
        )


def seed_of(random_state: Any) -> int:
    """A seed for everything that is drawn."""
    with ours("`random_state` is a whole number, a RandomState, or None"):
        return int(check_random_state(random_state).randint(2**31 - 1))


def columns_in(categorical: Collection[Any], frame: pd.DataFrame) -> list[str]:
    """The names of columns given by name, or by their place."""
    if isinstance(categorical, str):
        raise ConfigurationError(
            f"`categorical` must be a list of columns, found {categorical!r}: [{categorical!r}]"
        )
    found = []
    for one in categorical:
        by_place = isinstance(one, Integral) and 0 <= int(one) < frame.shape[1]
        found.append(str(frame.columns[int(one)] if by_place else one))
    return found


LABEL = "label"
RESERVED = ("sensitive", "weight")
Column = npt.NDArray[Any]


@dataclass(frozen=True)
class Classes:
    """A target that is one of some classes.

    Attributes:
        name: of the target; of the head, where there are several.
        classes: what the numbers 0 to K - 1 stand for.
        shares: of the rows that train, which are of each class; empty until they are known.
    """

    name: str
    classes: Column
    shares: tuple[float, ...] = ()

    def among(self, codes: Column, weight: Floats | None) -> "Classes":
        """The same, with the shares of these rows."""
        return replace(self, shares=compute_shares(codes, len(self.classes), weight))

    @property
    def answer(self) -> Answer:
        """The same, as a run says it."""
        names = tuple(format_label(one) for one in self.classes.tolist())
        return Answer("binary" if len(names) == 2 else "classes", names)

    @property
    def width(self) -> int:
        """Numbers a network gives for it: one logit for two classes, else one for each."""
        return 1 if len(self.classes) == 2 else len(self.classes)

    def probabilities(self, logits: Tensor) -> Floats:
        """``[n, width]`` to ``[n, K]``."""
        if self.width > 1:
            return logits.softmax(dim=1).numpy()
        positive = torch.sigmoid(logits)
        return torch.cat([torch.sigmoid(-logits), positive], dim=1).numpy()

    def predicted(self, logits: Tensor, threshold: float = 0.5) -> Column:
        """``[n, width]`` to the classes ``[n]``; of two, the second above a probability."""
        offset = math.log(threshold / (1 - threshold))
        codes = logits.argmax(dim=1) if self.width > 1 else (logits[:, 0] > offset).long()
        chosen: Column = self.classes[codes.numpy()]
        return chosen


@dataclass(frozen=True)
class Numbers:
    """A target that is a number, standardised for the network.

    Attributes:
        name: of the target; of the head, where there are several.
        mean: of the rows of `fit`.
        scale: likewise, never 0.
    """

    name: str
    mean: float
    scale: float
    width: int = field(default=1, init=False)

    @property
    def answer(self) -> Answer:
        """The same, as a run says it."""
        return Answer("number", mean=self.mean, scale=self.scale)

    def predicted(self, outputs: Tensor) -> Floats:
        """``[n, 1]`` to numbers ``[n]`` in the target's unit."""
        return outputs[:, 0].numpy() * self.scale + self.mean


def name_of(y: Any) -> str:
    """What a single target is called: as its column, or `label`."""
    columns = getattr(y, "columns", None)
    found = getattr(y, "name", None) if columns is None else columns[0]
    return LABEL if found is None or found == "" else str(found)


def plain_of(y: Any) -> Any:
    """A nullable column in which nothing is missing as numpy has it, so that 1 stays 1."""
    if isinstance(y, pd.DataFrame):
        return y.assign(**{name: plain_of(y[name]) for name in y.columns})
    kind = getattr(getattr(y, "dtype", None), "numpy_dtype", None)
    if not isinstance(y, pd.Series) or kind is None or y.hasnans:
        return y
    return pd.Series(y.to_numpy(dtype=kind), y.index, name=y.name)


def columns_of(y: Any) -> tuple[list[str], list[Column]]:
    """The targets' names and values, column by column; a single one is called `label`."""
    if y is None:
        raise DataError(
            "requires y to be passed, but the target y is None: pass the values to predict"
        )
    y = plain_of(y)
    with ours():
        whole = check_array(
            y, ensure_2d=False, allow_nd=False, dtype=None, ensure_all_finite=False, input_name="y"
        )
        if whole.ndim < 2 or whole.shape[1] == 1:
            return [LABEL], [column_or_1d(whole, warn=True)]
    count = whole.shape[1]
    columns = [whole[:, k] for k in range(count)]
    called = [f"target_{k}" for k in range(count)]
    if isinstance(y, pd.DataFrame):  # whose columns may be of several types
        called = [str(name) for name in y.columns]
        columns = [y.iloc[:, k].to_numpy() for k in range(count)]
    wrong = [name for name in called if name in RESERVED or called.count(name) > 1]
    if wrong:
        raise DataError(
            f"target names must be unique and not {' or '.join(RESERVED)}, found "
            f"`{wrong[0]}`: rename that column of `y`"
        )
    return called, columns


def classes_of(names: Sequence[str], columns: Sequence[Column]) -> tuple[list[Classes], list[Any]]:
    """Targets that are classes, and every row's class, numbered."""
    targets, codes = [], []
    for name, column in zip(names, columns, strict=True):
        unknown = pd.isna(column)
        if column.dtype.kind == "f":
            unknown |= np.isinf(column)
        missing = int(unknown.sum())
        if missing:
            raise DataError(
                f"the target must be known in every row, found {missing:,} missing or infinite of "
                f"{len(column):,}: leave those rows out"
            )
        try:
            check_classification_targets(column)
        except ValueError as error:
            raise DataError(
                "Unknown label type: a classifier predicts classes, found "
                f"{type_of_target(column)} values such as {column[0]!r}: use ParetoRegressor for a "
                "number"
            ) from error
        with ours("the classes of a target are all text or all numbers"):
            classes, numbered = np.unique(column, return_inverse=True)
        if len(classes) < 2:
            raise DataError(
                f"a classifier needs at least two classes, found one class, "
                f"{classes[0]!r}: there is nothing to learn"
            )
        targets.append(Classes(name, classes))
        codes.append(numbered)
    return targets, codes


def numbers_in(columns: Sequence[Column]) -> list[Floats]:
    """Targets that are numbers, checked."""
    found = []
    for column in columns:
        try:
            numbers = np.asarray(column, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise DataError(
                f"a regressor predicts numbers, found values such as {column[0]!r}: use "
                "ParetoClassifier for classes"
            ) from error
        with ours("leave such rows out"):
            assert_all_finite(numbers, input_name="y")
        found.append(numbers)
    return found


def standardised(name: str, numbers: Column, weight: Floats | None) -> Numbers:
    """A target that is a number, with the moments of the rows that train."""
    mean, scale = compute_moments(numbers, weight)
    if not np.isfinite(scale):
        raise DataError("the target has numbers too large to standardise: divide them first")
    return Numbers(name, mean, scale if numbers.min() < numbers.max() and scale > 0 else 1.0)
