"""Arguments of the estimators, checked: features, weights and groups."""

import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length, validate_data
from torch import Tensor

from paretocosmos.errors import (
    ConfigurationError,
    DataError,
    DataWarning,
    FrontWarning,
    ParetoCosmosError,
)
from paretocosmos.io.files import one_line
from paretocosmos.pareto import as_rays
from paretocosmos.problems.tables import (
    Codes,
    Grouping,
    Table,
    as_pandas,
    find_identifiers,
    group_targets,
    read_columns,
    to_frame,
    to_numbers,
)

Column = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Rows:
    """Some rows and what is known of them.

    Attributes:
        frame: the features.
        truth: the targets, a column each: numbers, or classes numbered from 0.
        groups: the groups, numbered from 0; `None` if they are not known.
        weight: how much each counts; `None` if all count the same.
        given: the features as the caller gave them, for `base`.
    """

    frame: pd.DataFrame
    truth: tuple[Column, ...]
    groups: Codes | None = None
    weight: Floats | None = None
    given: Any = None

    def __len__(self) -> int:
        return len(self.frame)

    def take(self, rows: Codes) -> "Rows":
        """Return some of the rows, by their positions."""
        return Rows(
            self.frame.iloc[rows],
            tuple(column[rows] for column in self.truth),
            None if self.groups is None else self.groups[rows],
            None if self.weight is None else self.weight[rows],
            None if self.given is None else take_rows(self.given, rows),
        )


def take_rows(given: Any, rows: npt.NDArray[Any]) -> Any:
    """Return some rows of a caller's features, by position or by a mask."""
    given = as_pandas(given)
    return given.iloc[rows] if isinstance(given, pd.DataFrame) else np.asarray(given)[rows]


class InputTypeError(DataError, TypeError):
    """Data of a kind that cannot be read."""


@contextmanager
def translate_errors(way_out: str = "") -> Iterator[None]:
    """Turn errors of scikit-learn and numpy into those of this library.

    Args:
        way_out: what the message recommends.
    """
    try:
        yield
    except ParetoCosmosError:
        raise
    except (TypeError, ValueError) as error:
        kind = InputTypeError if isinstance(error, TypeError) else DataError
        message = one_line(error)
        raise kind(f"{message.removesuffix('.')}: {way_out}" if way_out else message) from error


def read_features(estimator: Any, rows: Any, *, reset: bool) -> pd.DataFrame:
    """Return features as a table with the column names from when the estimator was fitted.

    Args:
        estimator: gets `n_features_in_` and `feature_names_in_`, or is asked for them.
        rows: a DataFrame of pandas or polars, of any columns a `Table` takes; or numbers
            ``[n, features]``.
        reset: whether these are the rows it is fitted on.
    """
    # scikit-learn's own message does not tell the way out
    if getattr(getattr(rows, "dtype", None), "kind", "") in ("U", "S"):
        raise DataError(
            "an array `X` must hold numbers, found text: give a pandas DataFrame, whose columns "
            "may be text or categories"
        )
    rows = as_pandas(rows)
    with translate_errors("" if reset else "give the columns that `fit` had"):
        if isinstance(rows, pd.DataFrame):
            # names and number of columns only: a `Table` takes text, categories and missing values
            validate_data(estimator, rows, reset=reset, skip_check_array=True)
            frame = to_frame(rows)
            if reset:
                chosen = resolve_columns(estimator.categorical, frame)
                frame = read_columns(frame, as_they_are=chosen)
                for name, why in find_identifiers(frame).items():
                    if name not in chosen:
                        warnings.warn(
                            f"`{name}` looks like an identifier ({why}): leave it out of `X`, or "
                            "list it in `categorical` if you need it",
                            DataWarning,
                            stacklevel=3,
                        )
        else:
            array = validate_data(
                estimator, rows, reset=reset, dtype="numeric", ensure_all_finite=False
            )
            columns = [f"x{k}" for k in range(array.shape[1])]
            frame = pd.DataFrame(array, columns=columns, copy=False)
    if not frame.shape[0] or not frame.shape[1]:
        raise DataError(
            f"`X` must have at least 1 row and 1 feature, found shape {frame.shape}: give some"
        )
    # by position, as scikit-learn does where names are missing on one side (it has warned)
    return frame if reset else frame.set_axis(estimator._columns, axis=1)


def encode_features(table: Table, frame: pd.DataFrame) -> npt.NDArray[np.float32]:
    """Encode rows to predict for; warn of missing values where `fit` had none."""
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


def check_lengths(**arguments: Any) -> None:
    """Raise if arguments have different numbers of rows."""
    present = {name: value for name, value in arguments.items() if value is not None}
    with translate_errors(f"{', '.join(f'`{n}`' for n in present)} have one entry for each row"):
        check_consistent_length(*present.values())


def check_preference(
    preference: Any,
    names: Sequence[str],
    rows: int | None,
    off_simplex: str,
    accurate: Sequence[float] | None = None,
) -> Tensor:
    """Return rays ``[1, J]`` or ``[rows, J]``.

    Args:
        preference: a ray ``[J]``, weights by name, rays ``[rows, J]``, or `None` for equal weights.
        names: of the J objectives.
        rows: how many there are; `None` where only one ray will do.
        off_simplex: ``"refuse"`` or ``"normalise"`` what does not sum to 1.
        accurate: the ray to take instead of equal weights where a gap between groups is traded: how
            much accuracy it may cost is for a person to say.
    """
    if preference is None:
        preference = torch.full((1, len(names)), 1 / len(names)) if accurate is None else accurate
        if accurate is not None and rows is not None:
            warnings.warn(
                f"no preference was chosen, so `{names[1]}` has no weight in these predictions: "
                "use `choose`, or give a `preference`",
                FrontWarning,
                stacklevel=4,
            )
    rays = as_rays(preference, len(names), names=names, off_simplex=off_simplex)
    if len(rays) not in (1, rows or 1):
        wanted = "one ray" if rows is None else f"one ray, or one for each of the {rows} rows"
        raise ConfigurationError(f"`preference` must be {wanted}, found {len(rays)}")
    return rays


def check_weights(sample_weight: Any, count: int) -> Floats | None:
    """Return the weight of each row; `None` where all count the same."""
    if sample_weight is None:
        return None
    with translate_errors("`sample_weight` is one number for each row"):
        weight = np.asarray(sample_weight, dtype=np.float64)
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
    return drop_equal_weights(weight)


def drop_equal_weights(weight: Floats) -> Floats | None:
    """Return weights, or `None` where all are the same."""
    return None if (weight == weight[0]).all() else weight


def read_groups(
    sensitive: Any, counts: npt.NDArray[np.bool_], rows: Any, features: pd.DataFrame
) -> tuple[Grouping, Codes]:
    """Return the groups, and that of each row that counts.

    Args:
        sensitive: a column, or several, whose combinations are the groups.
        counts: which rows do.
        rows: the features; if they have an index, so that of `sensitive` must be theirs.
        features: the same by name; groups without a name have that of the feature they are.
    """
    # rows of weight 0 may lack a group
    frame = _frame_groups(sensitive, rows, features).loc[counts]
    missing = int(frame.isna().any(axis=1).sum())
    if missing:
        raise DataError(
            f"`sensitive` must be known in every row, found {missing:,} missing of {len(frame):,}: "
            "leave those rows out, or make them a group of their own"
        )
    grouping = Grouping.fit(frame, list(frame.columns))
    return grouping, grouping.codes(frame)


def _frame_groups(sensitive: Any, rows: Any, features: pd.DataFrame) -> pd.DataFrame:
    """Return the columns of groups, with names."""
    sensitive = as_pandas(sensitive)
    _check_index(sensitive, as_pandas(rows))
    if isinstance(sensitive, pd.DataFrame):
        return to_frame(sensitive).reset_index(drop=True)
    values = np.asarray(sensitive)
    if values.ndim not in (1, 2):
        raise DataError(
            f"`sensitive` must be one column or several, found shape {values.shape}: give the "
            "group of every row"
        )
    columns: list[Any] = [values] if values.ndim == 1 else list(values.T)
    names = [f"sensitive_{k}" for k in range(len(columns))]
    if len(columns) == 1:
        names = [str(getattr(sensitive, "name", None) or "sensitive")]
    if not getattr(sensitive, "name", None):
        pairs = zip(columns, names, strict=True)
        names = [_find_feature_name(features, values, name) for values, name in pairs]
    if isinstance(getattr(sensitive, "dtype", None), pd.CategoricalDtype):
        columns = [pd.Categorical(sensitive)]  # whose categories have an order of their own
    return pd.DataFrame(dict(zip(names, columns, strict=True)))


def read_known_groups(
    grouping: Grouping, sensitive: Any, rows: Any, features: pd.DataFrame
) -> Codes:
    """Return the groups of rows to predict for, by `sensitive` or by columns of the features."""
    names = [attribute.name for attribute in grouping.attributes]
    if sensitive is not None:
        check_lengths(X=features, sensitive=sensitive)
        frame = _frame_groups(sensitive, rows, features).set_axis(names, axis=1)
    elif {*names} <= {*features.columns}:
        frame = features
    else:
        raise DataError(
            f"these predictions depend on the group (`{grouping.title}`), found no `sensitive`: "
            'give the group of every row, or fit with group="estimate"'
        )
    return group_targets(frame, grouping)["sensitive"]


def _find_feature_name(features: pd.DataFrame, values: Column, default: str) -> str:
    """Return the name of the feature with these values, or the default if there is none."""
    for name in features.columns:
        column = features[name]
        if not column.isna().any() and np.array_equal(column.to_numpy(), values):
            return str(name)
    return default


def _check_index(sensitive: Any, rows: Any) -> None:
    """Raise if, by their index labels, groups are in another order than the features."""
    pandas = (pd.Series, pd.DataFrame)
    if not isinstance(sensitive, pandas) or not isinstance(rows, pandas):
        return
    if len(sensitive) != len(rows):
        return  # which `check_lengths` has refused
    index = sensitive.index
    # a new column 0, 1, 2, ... beside rows with labels of another kind carries no order
    unlabelled = index.equals(pd.RangeIndex(len(index))) and not rows.index.isin(index).all()
    if not index.equals(rows.index) and not unlabelled:
        raise DataError(
            "`sensitive` and `X` have different index labels, so their rows may not match: give "
            "`sensitive.loc[X.index]`, or `sensitive.to_numpy()` if they are in the "
            "same order"
        )


def draw_seed(random_state: Any) -> int:
    """Draw the seed of a training from scikit-learn's `random_state`."""
    with translate_errors("`random_state` is a whole number, a RandomState, or None"):
        # one draw from the caller's RandomState, so that a second fit differs from the first
        return int(check_random_state(random_state).randint(2**31 - 1))


def resolve_columns(categorical: Collection[Any], frame: pd.DataFrame) -> list[str]:
    """Return the names of columns given by name or by position."""
    if isinstance(categorical, str):
        raise ConfigurationError(
            f"`categorical` must be a list of columns, found {categorical!r}: [{categorical!r}]"
        )
    positions = range(frame.shape[1])
    return [
        str(frame.columns[int(c)] if isinstance(c, Integral) and c in positions else c)
        for c in categorical
    ]
