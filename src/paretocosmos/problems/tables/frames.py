"""What everything that touches a pandas frame shares: the import, names, labels and numbers."""

import numbers
import warnings
import zlib
from lzma import LZMAError
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from paretocosmos.errors import ConfigurationError, DataError, need
from paretocosmos.io.packed import check_lines

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "CSV_ENDINGS",
    "is_categorical",
    "label_of",
    "labelled",
    "named",
    "numbers_of",
    "read_csv",
    "single_of",
]

CSV_ENDINGS = (".csv", ".csv.gz", ".csv.xz")

# A number that float32 moves by more than this share of its column's deviation is warned about: a
# prediction may move as far.
ROUNDED = 1e-4


def named(frame: "pd.DataFrame") -> "pd.DataFrame":
    """The frame with its column names as text; a name that occurs twice is refused."""
    need("pandas", "tabular", "a table")
    import pandas as pd

    if not isinstance(frame, pd.DataFrame):
        raise ConfigurationError(
            f"a table is a pandas DataFrame, found {type(frame).__name__}: "
            "wrap it in pandas.DataFrame with column names"
        )
    frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise DataError(f"column names occur once each, found `{twice}` twice: rename one of them")
    return frame


def read_csv(path: Path, way_out: str, *, own: bool = False, **options: Any) -> "pd.DataFrame":
    """Read a CSV file, packed or plain; whatever is wrong with it is one sentence.

    Args:
        path: the file.
        way_out: what to do where it cannot be read.
        own: whether it came with this package, so that its size is known.
        options: of pandas.
    """
    need("pandas", "tabular", f"reading `{path}`")
    import pandas as pd

    try:
        if not own:
            check_lines(path)
        with warnings.catch_warnings(action="error", category=pd.errors.ParserWarning):
            # without `index_col`, rows with more fields than the header would shift every name
            frame: pd.DataFrame = pd.read_csv(path, index_col=False, low_memory=False, **options)
    except pd.errors.ParserWarning as error:
        raise DataError(
            f"the rows of `{path}` have more fields than its header: name every column"
        ) from error
    except DataError:
        raise
    except (OSError, EOFError, ValueError, LZMAError, zlib.error) as error:
        what = " ".join(str(error).split())  # pandas ends some of its messages with a newline
        raise DataError(f"`{path}` cannot be read ({what}); {way_out}") from error
    return frame


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
        f"the column `{series.name}` is numbers, text, categories or truth values, found {dtype}: "
        "turn it into numbers (days since a date, say) or leave it out with `drop`"
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
            f"the column `{series.name}` holds values that are no categories ({error}): "
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
    """A column as float64 ``[rows]``, NaN where missing or infinite."""
    import pandas as pd

    if is_categorical(series):
        series = series.astype(object)
        text = series[series.map(lambda value: isinstance(value, str))]
        if len(text):
            raise DataError(
                f"the column `{series.name}` was numbers when this table was fitted, found the "
                f"text {text.iloc[0]!r}: convert it with pandas.to_numeric"
            )
        series = pd.to_numeric(series, errors="coerce")
    values = series.to_numpy(dtype=np.float64, na_value=np.nan)
    return np.where(np.isfinite(values), values, np.nan)


def single_of(name: str, values: npt.NDArray[np.float64], scale: float) -> npt.NDArray[np.float32]:
    """Numbers in float32; those too large for it become its largest, not missing."""
    largest = float(np.finfo(np.float32).max)
    single = np.clip(values, -largest, largest).astype(np.float32)
    with np.errstate(over="ignore"):
        moved = np.abs(single - values) / scale
    if (moved > ROUNDED).any():
        warnings.warn(
            f"the column `{name}` has numbers that float32 rounds by up to "
            f"{np.nanmax(moved):.2g} of their deviation: subtract a constant from it before "
            "training",
            UserWarning,
            stacklevel=3,
        )
    return single


def _order(value: object) -> tuple[bool, float, str]:
    if isinstance(value, numbers.Real):
        return (False, float(value), "")
    return (True, 0.0, str(value))
