"""Cells and columns of a pandas frame: names, labels, numbers and dates."""

import datetime
import numbers
import re
import warnings
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from paretocosmos.errors import ConfigurationError, DataError, DataWarning, require_extra

if TYPE_CHECKING:
    import pandas as pd

# What people write where they do not know a number.
MARKS = {"", "?", "-", "--", ".", "na", "n/a", "#n/a", "nan", "none", "null", "unknown", "missing"}
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?")
_DECIMAL_COMMA = re.compile(r"[+-]?(\d{1,3}(\.\d{3})+|\d+),\d+([eE][+-]?\d+)?")
_CODE = re.compile(r"[+-]?0\d+")
_ISO = re.compile(
    r"\d{4}[-/]\d{1,2}[-/]\d{1,2}([ T]\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?"
)
_POINTS = re.compile(r"\d{1,2}\.\d{1,2}\.\d{4}")
_SLASHES = re.compile(r"\d{1,2}/\d{1,2}/(\d{4}|\d{2})")


@dataclass(frozen=True)
class Parsed:
    """A column's cells as numbers.

    Attributes:
        values: float64 ``[rows]``, NaN where missing or bad.
        bad: bool ``[rows]``, where there is something that is no number.
        marks: bool ``[rows]``, those of `bad` that only say "not known", as `?` does.
        leading_zeros: whether some begin with a zero, as postcodes do and numbers do not.
        commas: whether commas were taken for marks within a number, and for which.
    """

    values: npt.NDArray[np.float64]
    bad: npt.NDArray[np.bool_]
    marks: npt.NDArray[np.bool_]
    leading_zeros: bool = False
    commas: str = ""

    @property
    def share(self) -> float:
        """Of the cells that say something, how many were read."""
        read = int((~np.isnan(self.values)).sum())
        asked = read + int((self.bad & ~self.marks).sum())
        return read / asked if asked else 0.0


def parse_numbers(series: "pd.Series[Any]") -> Parsed:
    """Cells as numbers: numbers, and text that is one.

    Commas in numbers are thousands where all of them can be (``1,234,567.8``), else decimal marks.

    >>> import pandas as pd
    >>> parse_numbers(pd.Series(["1.5", " 2 ", "?", "many", None])).values
    array([1.5, 2. , nan, nan, nan])
    >>> parse_numbers(pd.Series(["1.234,5", "7,25"])).values
    array([1234.5 ,    7.25])
    """
    import pandas as pd

    codes, cells = unique_cells(series)
    commas = [cell for cell in cells if isinstance(cell, str) and "," in cell]
    meaning = ""
    if commas and all(map(_THOUSANDS.fullmatch, commas)):
        meaning = "thousands"
        cells = [cell.replace(",", "") if isinstance(cell, str) else cell for cell in cells]
    elif commas and any(map(_DECIMAL_COMMA.fullmatch, commas)):
        meaning = "decimals"
        cells = [_with_point(cell) if isinstance(cell, str) else cell for cell in cells]
    plain = [cell if isinstance(cell, str | Real) else _to_float(cell) for cell in cells]
    values = pd.to_numeric(pd.Series(plain, dtype=object), errors="coerce").to_numpy(np.float64)
    leading_zeros = any(isinstance(cell, str) and _CODE.fullmatch(cell) for cell in cells)
    return _parsed(values, cells, codes, leading_zeros=leading_zeros, commas=meaning)


def parse_dates(series: "pd.Series[Any]") -> Parsed:
    """Cells as days since 1970-01-01: dates, and text such as 2024-02-29 or 29.2.2024.

    >>> import pandas as pd
    >>> parse_dates(pd.Series(["1970-01-02", "1.2.1970 ", "soon"])).values
    array([ 1., 31., nan])
    """
    import pandas as pd

    codes, cells = unique_cells(series)
    iso = pd.Series([_iso(cell) for cell in cells], dtype=object)
    points = pd.Series(
        [cell if isinstance(cell, str) and _POINTS.fullmatch(cell) else None for cell in cells],
        dtype=object,
    )
    dates = pd.to_datetime(iso, format="ISO8601", errors="coerce", utc=True)
    others = pd.to_datetime(points, format="%d.%m.%Y", errors="coerce", utc=True)
    return _parsed(to_days(dates.fillna(others)), cells, codes)


def unique_cells(series: "pd.Series[Any]") -> tuple[npt.NDArray[np.int64], list[Any]]:
    """Return the code of every row and the different cells, without the spaces around text.

    The last cell is `None`, which stands for every missing value. A column has far fewer different
    cells than rows, so each is parsed only once.
    """
    import pandas as pd

    try:
        codes, values = pd.factorize(series)
    except TypeError:  # lists and other cells that cannot be compared
        codes, values = np.where(series.isna(), -1, np.arange(len(series))), pd.Index(series)
    cells = [cell.strip() if isinstance(cell, str) else cell for cell in values]
    return np.where(codes < 0, len(cells), codes), [*cells, None]


def _parsed(
    values: npt.NDArray[np.float64],
    cells: list[Any],
    codes: npt.NDArray[np.int64],
    *,
    leading_zeros: bool = False,
    commas: str = "",
) -> Parsed:
    """Return the parsed rows, given the parsed cells and the code of every row."""
    bad = np.isnan(values)
    bad[-1] = False  # the cell that stands for missing values
    marks = bad & np.array([isinstance(c, str) and c.lower() in MARKS for c in cells], dtype=bool)
    return Parsed(values[codes], bad[codes], marks[codes], leading_zeros, commas)


def to_days(series: "pd.Series[Any]") -> npt.NDArray[np.float64]:
    """A column of dates or durations as days, dates since 1970-01-01."""
    import pandas as pd

    if isinstance(series.dtype, pd.PeriodDtype):
        series = series.dt.to_timestamp()
    if series.dtype.kind == "M":
        aware = pd.to_datetime(series, utc=True)
        series = aware - pd.Timestamp("1970-01-01", tz="UTC")
    return pd.to_timedelta(series).dt.total_seconds().to_numpy(np.float64) / 86_400


def find_ambiguous_date(series: "pd.Series[Any]") -> str | None:
    """A date such as 3/4/2024, if all of a column's cells are written so: day and month unclear."""
    cells = [str(cell).strip() for cell in unique_cells(series)[1][:-1]]
    return cells[0] if cells and all(map(_SLASHES.fullmatch, cells)) else None


def some_of(series: "pd.Series[Any]", chosen: npt.NDArray[np.bool_]) -> str:
    """A few cells with different content, by their row, counted from 1."""
    found: dict[str, int] = {}
    for at in np.flatnonzero(chosen):
        found.setdefault(str(series.iloc[at])[:40], int(at) + 1)
        if len(found) == 3:
            break
    return ", ".join(f"row {row:,} `{cell}`" for cell, row in found.items())


def _with_point(cell: str) -> str:
    if not _DECIMAL_COMMA.fullmatch(cell):
        return cell
    return cell.replace(".", "").replace(",", ".")


def _to_float(cell: object) -> float | None:
    """What else can be a number, such as a Decimal; a missing value is none."""
    try:
        return float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


def _iso(cell: object) -> object:
    if isinstance(cell, datetime.date):  # a Timestamp is one, too
        return cell.isoformat()
    if isinstance(cell, str) and _ISO.fullmatch(cell):
        return cell.replace("/", "-")
    return None


# A number that float32 moves by more than this share of its column's deviation is warned about: a
# prediction may move as far.
ROUNDED = 1e-4


def to_frame(frame: "pd.DataFrame") -> "pd.DataFrame":
    """A frame of pandas or polars as one of pandas, its column names as text and all different."""
    require_extra("pandas", "tabular", "a table")
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


def format_label(value: object) -> str:
    """How a category is written: 1, 1.0 and "1" are one category.

    >>> format_label(1.0), format_label(True), format_label("Private")
    ('1', 'True', 'Private')
    """
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)


def encode_labels(
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
    labels = list(dict.fromkeys(format_label(value) for value in ordered))
    position = {label: index for index, label in enumerate(labels)}
    # the last entry answers the code -1
    lookup = np.array([*(position[format_label(value)] for value in values), -1], dtype=np.int64)
    return lookup[codes], labels


def to_numbers(series: "pd.Series[Any]") -> npt.NDArray[np.float64]:
    """A column as float64 ``[rows]``, NaN where missing or infinite; dates as days.

    Text that is no number counts as missing, with a warning; a column of nothing else is refused.
    """
    from pandas.api import types

    if holds_dates(series):
        return to_days(series)
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


def to_float32(name: str, values: npt.NDArray[np.float64], scale: float) -> npt.NDArray[np.float32]:
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
