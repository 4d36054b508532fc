"""What everything that touches a pandas frame shares: the import, names, labels and numbers."""

import numbers
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from paretocosmos.errors import ConfigurationError, DataError, DataWarning, need
from paretocosmos.problems.tables.cells import days_of, parse_dates, parse_numbers, some_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "as_pandas",
    "holds_dates",
    "is_categorical",
    "label_of",
    "labelled",
    "named",
    "numbers_of",
    "single_of",
]

# A number that float32 moves by more than this share of its column's deviation is warned about: a
# prediction may move as far.
ROUNDED = 1e-4


def named(frame: "pd.DataFrame") -> "pd.DataFrame":
    """A frame of pandas or polars as one of pandas, its column names as text and all different."""
    need("pandas", "tabular", "a table")
    import pandas as pd

    frame = as_pandas(frame)
    if not isinstance(frame, pd.DataFrame):
        raise ConfigurationError(
            f"a table must be a pandas or polars DataFrame, found {type(frame).__name__}: "
            "wrap it in pandas.DataFrame with column names"
        )
    frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise DataError(f"column names must be unique, found `{twice}` twice: rename one of them")
    return frame


def as_pandas(frame: Any) -> Any:
    """A DataFrame of polars as one of pandas; anything else as it is.

    Through plain lists: polars itself would ask for pyarrow.
    """
    import pandas as pd

    if type(frame).__module__.partition(".")[0] != "polars" or not hasattr(frame, "to_dict"):
        return frame
    return pd.DataFrame(frame.to_dict(as_series=False))


def holds_dates(series: "pd.Series[Any]") -> bool:
    """Whether a column is dates or durations by its type."""
    import pandas as pd

    return series.dtype.kind in "mM" or isinstance(series.dtype, pd.PeriodDtype)


def is_categorical(series: "pd.Series[Any]") -> bool:
    """Whether a column is read as categories by its type; one that is no number is refused."""
    import pandas as pd
    from pandas.api import types

    dtype = series.dtype
    if isinstance(dtype, pd.CategoricalDtype) or types.is_bool_dtype(dtype):
        return True
    if types.is_object_dtype(dtype) or types.is_string_dtype(dtype):
        return True
    if types.is_numeric_dtype(dtype) and not types.is_complex_dtype(dtype):
        return False
    raise DataError(
        f"the column `{series.name}` must hold numbers, text, categories or booleans, found "
        f"{dtype}: convert it to numbers, such as days since a date, or leave it out with `drop`"
    )


def label_of(value: object) -> str:
    """How a category is written: 1, 1.0 and "1" are one category.

    >>> label_of(1.0), label_of(True), label_of("Private")
    ('1', 'True', 'Private')
    """
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)


def labelled(
    series: "pd.Series[Any]", *, own_order: bool = False
) -> tuple[npt.NDArray[np.int64], list[str]]:
    """A column as codes ``[rows]``, -1 where missing, and their labels, sorted.

    Numbers sort by value and come before text; with `own_order` a column of pandas categories
    keeps theirs.
    """
    import pandas as pd

    try:
        codes, values = pd.factorize(series)
    except TypeError as error:
        raise DataError(
            f"the column `{series.name}` holds values that cannot be categories ({error}): "
            "leave it out with `drop`"
        ) from error
    if own_order and isinstance(series.dtype, pd.CategoricalDtype):
        seen = set(values)
        ordered = [value for value in series.cat.categories if value in seen]
    else:
        ordered = sorted(values, key=_order)
    labels = list(dict.fromkeys(label_of(value) for value in ordered))
    position = {label: index for index, label in enumerate(labels)}
    # the last entry answers the code -1
    lookup = np.array([*(position[label_of(value)] for value in values), -1], dtype=np.int64)
    return lookup[codes], labels


def numbers_of(series: "pd.Series[Any]") -> npt.NDArray[np.float64]:
    """A column as float64 ``[rows]``, NaN where missing or infinite; dates as days.

    Text that is no number counts as missing, with a warning; a column of nothing else is refused.
    """
    from pandas.api import types

    if holds_dates(series):
        return days_of(series)
    if is_categorical(series) and not types.is_bool_dtype(series.dtype):
        return _finite(_read_numbers(series))
    return _finite(series.to_numpy(dtype=np.float64, na_value=np.nan))


def _finite(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.where(np.isfinite(values), values, np.nan)


def _read_numbers(series: "pd.Series[Any]") -> npt.NDArray[np.float64]:
    parsed = parse_numbers(series)
    wrong = parsed.bad & ~parsed.marks
    if not wrong.any():
        return parsed.values
    if parsed.share == 0:
        parsed = parse_dates(series)
        wrong = parsed.bad & ~parsed.marks
        if not wrong.any():
            return parsed.values
    if parsed.share == 0:
        raise DataError(
            f"the column `{series.name}` held numbers when this table was fitted, found the text "
            f"{series[wrong].iloc[0]!r}: convert it with pandas.to_numeric"
        )
    count = int(wrong.sum())
    warnings.warn(
        f"the column `{series.name}` has {count:,} cell{'s' * (count > 1)} without a number, "
        f"counted as missing: {some_of(series, wrong)}{', ...' * (count > 3)}",
        DataWarning,
        stacklevel=4,
    )
    return parsed.values


def single_of(name: str, values: npt.NDArray[np.float64], scale: float) -> npt.NDArray[np.float32]:
    """Numbers in float32; those too large for it become its largest, not missing."""
    largest = float(np.finfo(np.float32).max)
    single = np.clip(values, -largest, largest).astype(np.float32)
    with np.errstate(over="ignore"):
        moved = np.abs(single - values) / scale
    if (moved > ROUNDED).any():
        warnings.warn(
            f"the column `{name}` has numbers that float32 rounds by up to "
            f"{np.nanmax(moved):.2g} of their standard deviation: subtract a constant from it "
            "before training",
            UserWarning,
            stacklevel=3,
        )
    return single


def _order(value: object) -> tuple[bool, float, str]:
    if isinstance(value, numbers.Real):
        return (False, float(value), "")
    return (True, 0.0, str(value))
