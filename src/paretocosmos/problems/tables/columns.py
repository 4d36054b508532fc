"""Read the columns of a pandas frame: names, labels, numbers and dates."""

import datetime
import re
import warnings
from collections.abc import Collection
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from paretocosmos.errors import ConfigurationError, DataError, DataWarning, require_extra

if TYPE_CHECKING:
    import pandas as pd

# Texts that people write where they do not know a number.
MARKS = {"", "?", "-", "--", ".", "na", "n/a", "#n/a", "nan", "none", "null", "unknown", "missing"}
# Text of which this share is numbers is a column of numbers with some mistakes in it.
NEARLY_ALL = 0.95
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?")
# `007` is a code: as a number it would lose its zeros.
_LEADING_ZERO = re.compile(r"[+-]?0\d+")
# The only dates that are read: 3/4/2024 is in March or in April, depending on the country.
_ISO_DATE = re.compile(
    r"\d{4}-\d{1,2}-\d{1,2}([ T]\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?"
)


@dataclass(frozen=True)
class ParsedColumn:
    """The cells of a column as numbers.

    Attributes:
        values: float64 ``[rows]``, NaN where missing or wrong.
        wrong: bool ``[rows]``, cells with text that is not a number; `?` and the like are missing.
    """

    values: npt.NDArray[np.float64]
    wrong: npt.NDArray[np.bool_]

    @property
    def share(self) -> float:
        """The share of cells that could be read, not counting missing ones."""
        read = int((~np.isnan(self.values)).sum())
        total = read + int(self.wrong.sum())
        return read / total if total else 0.0


def parse_numbers(series: "pd.Series[Any]") -> ParsedColumn:
    """Parse numbers, and text that is one; commas may set thousands apart (``1,234,567.8``).

    >>> import pandas as pd
    >>> parse_numbers(pd.Series(["1.5", " 2 ", "?", "many", "1,234"])).values
    array([   1.5,    2. ,    nan,    nan, 1234. ])
    """
    import pandas as pd

    codes, cells = unique_cells(series)
    plain = pd.Series([_to_plain_number(cell) for cell in cells], dtype=object)
    values = pd.to_numeric(plain, errors="coerce").to_numpy(np.float64)
    return _expand(values, cells, codes)


def parse_dates(series: "pd.Series[Any]") -> ParsedColumn:
    """Parse dates, and text such as 2024-02-29, as days since 1970-01-01.

    >>> import pandas as pd
    >>> parse_dates(pd.Series(["1970-01-02", "1970-02-01 ", "soon"])).values
    array([ 1., 31., nan])
    """
    import pandas as pd

    codes, cells = unique_cells(series)
    # with the format fixed: pandas' guess may take the day for the month; and in UTC: a column may
    # mix offsets, which pandas refuses to compare otherwise
    # a Timestamp is a date, too
    texts = [cell.isoformat() if isinstance(cell, datetime.date) else cell for cell in cells]
    dates_only = [t if isinstance(t, str) and _ISO_DATE.fullmatch(t) else None for t in texts]
    iso = pd.Series(dates_only, dtype=object)
    if iso.isna().all():  # most text is no dates, and asking pandas takes longer
        return _expand(np.full(len(cells), np.nan), cells, codes)
    dates = pd.to_datetime(iso, format="ISO8601", errors="coerce", utc=True)
    return _expand(to_days(dates), cells, codes)


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


def _expand(
    values: npt.NDArray[np.float64], cells: list[Any], codes: npt.NDArray[np.int64]
) -> ParsedColumn:
    """Return the parsed rows, given the parsed cells and the code of every row."""
    marks = [cell is None or (isinstance(cell, str) and cell.lower() in MARKS) for cell in cells]
    wrong = np.isnan(values) & ~np.array(marks)
    return ParsedColumn(values[codes], wrong[codes])


def _to_plain_number(cell: object) -> object:
    """Return a cell as pandas reads numbers; `None` for what is none."""
    if isinstance(cell, str):
        return cell.replace(",", "") if _THOUSANDS.fullmatch(cell) else cell
    try:
        # other kinds of numbers, such as a Decimal
        return cell if isinstance(cell, Real) else float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


def to_days(series: "pd.Series[Any]") -> npt.NDArray[np.float64]:
    """Convert a column of dates or durations to days, dates since 1970-01-01."""
    import pandas as pd

    if isinstance(series.dtype, pd.PeriodDtype):
        # a period counts from its beginning
        series = series.dt.to_timestamp()
    if series.dtype.kind == "M":
        series = pd.to_datetime(series, utc=True) - pd.Timestamp("1970-01-01", tz="UTC")
    return pd.to_timedelta(series).dt.total_seconds().to_numpy(np.float64) / 86_400


def to_frame(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Return a frame of pandas or polars as one of pandas, with unique text as column names."""
    require_extra("pandas", "tabular", "a table")
    import pandas as pd

    frame = as_pandas(frame)
    if not isinstance(frame, pd.DataFrame):
        raise ConfigurationError(
            f"a table must be a pandas or polars DataFrame, found {type(frame).__name__}: "
            "wrap it in pandas.DataFrame with column names"
        )
    # text, since the columns of a fitted table are keys in JSON
    frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise DataError(f"column names must be unique, found `{twice}` twice: rename one of them")
    return frame


def as_pandas(frame: Any) -> Any:
    """Convert a polars DataFrame to pandas; return anything else as it is."""
    import pandas as pd

    if type(frame).__module__.partition(".")[0] != "polars" or not hasattr(frame, "to_dict"):
        return frame
    # through plain lists: polars' own `to_pandas` needs pyarrow
    return pd.DataFrame(frame.to_dict(as_series=False))


def holds_dates(series: "pd.Series[Any]") -> bool:
    """Return True if a column is dates or durations by its type."""
    import pandas as pd

    return series.dtype.kind in "mM" or isinstance(series.dtype, pd.PeriodDtype)


def holds_text(series: "pd.Series[Any]") -> bool:
    """Return True for a column of text or mixed objects: not numbers, booleans or categories."""
    from pandas.api import types

    return types.is_object_dtype(series.dtype) or (
        types.is_string_dtype(series.dtype) and series.dtype.name != "category"
    )


def is_categorical(series: "pd.Series[Any]") -> bool:
    """Return True if a column is read as categories by its type; refuse types that are neither."""
    import pandas as pd
    from pandas.api import types

    dtype = series.dtype
    if isinstance(dtype, pd.CategoricalDtype) or types.is_bool_dtype(dtype) or holds_text(series):
        return True
    if types.is_numeric_dtype(dtype) and not types.is_complex_dtype(dtype):
        return False
    raise DataError(
        f"the column `{series.name}` must hold numbers, text, categories or booleans, found "
        f"{dtype}: convert it to numbers, such as days since a date, or leave it out with `drop`"
    )


def format_label(value: object) -> str:
    """Return the text of a category: 1, 1.0 and "1" are one category.

    >>> format_label(1.0), format_label(True), format_label("Private")
    ('1', 'True', 'Private')
    """
    # a gap turns a column of whole numbers into floats, and 1 into 1.0
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)


def encode_labels(
    series: "pd.Series[Any]", *, own_order: bool = False
) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Return a column as codes ``[rows]``, -1 where missing, and their labels, sorted.

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
        present = set(values)
        ordered = [value for value in series.cat.categories if value in present]
    else:
        # a tuple, since Python compares no number with a text
        ordered = sorted(
            values, key=lambda v: (0, float(v), "") if isinstance(v, Real) else (1, 0.0, str(v))
        )
    # 1 and "1" in one column have the same label, so they become one category
    labels = list(dict.fromkeys(format_label(value) for value in ordered))
    position = {label: index for index, label in enumerate(labels)}
    # the last entry answers the code -1
    lookup = np.array([*(position[format_label(value)] for value in values), -1], dtype=np.int64)
    return lookup[codes], labels


def to_numbers(series: "pd.Series[Any]") -> npt.NDArray[np.float64]:
    """Convert a column to float64 ``[rows]``, NaN where missing or infinite; dates become days.

    Text that is no number counts as missing, with a warning; a column of nothing else is refused.
    """
    from pandas.api import types

    if holds_dates(series):
        return to_days(series)
    if is_categorical(series) and not types.is_bool_dtype(series.dtype):
        values = _read_numbers(series)
    else:
        values = series.to_numpy(dtype=np.float64, na_value=np.nan)
    # an infinite number would make the mean of its column infinite
    return np.where(np.isfinite(values), values, np.nan)


def _read_numbers(series: "pd.Series[Any]") -> npt.NDArray[np.float64]:
    # numbers first, as when the table was fitted
    for parse in (parse_numbers, parse_dates):
        parsed = parse(series)
        if parsed.share > 0 or not parsed.wrong.any():
            _warn_of_wrong_cells(series, parsed)
            return parsed.values
    raise DataError(
        f"the column `{series.name}` held numbers when this table was fitted, found the text "
        f"{series[parsed.wrong].iloc[0]!r}: convert it with pandas.to_numeric"
    )


def _warn_of_wrong_cells(series: "pd.Series[Any]", parsed: ParsedColumn) -> None:
    count = int(parsed.wrong.sum())
    if not count:
        return
    position = int(parsed.wrong.argmax())
    # in the whole table, of which this may be a part
    row = getattr(series.index, "start", 0) + position + 1
    warnings.warn(
        f"the column `{series.name}` has {count:,} cell{'s' * (count > 1)} without a number, "
        f"counted as missing, such as `{str(series.iloc[position])[:40]}` in row {row:,}",
        DataWarning,
        stacklevel=4,
    )


def read_columns(frame: "pd.DataFrame", *, as_they_are: Collection[str]) -> "pd.DataFrame":
    """Return the frame with text that is numbers as numbers, and dates as days since 1970-01-01.

    A column of text is numbers if at least 95 % of its cells are. The other cells count as missing
    and are counted in a warning. Text with leading zeros is a code, and stays text.

    Args:
        frame: the features; never modified.
        as_they_are: columns to leave alone, since they are to be categories.

    >>> import pandas as pd
    >>> people = pd.DataFrame({"age": ["20", "31", None], "born": ["1970-01-03"] * 3})
    >>> with warnings.catch_warnings(action="ignore"):
    ...     read_columns(people, as_they_are=()).to_dict("list")
    {'age': [20.0, 31.0, nan], 'born': [2.0, 2.0, 2.0]}
    """
    columns: dict[str, Any] = {}
    dates: list[str] = []
    for name in frame.columns:
        series = frame[name]
        if name in as_they_are:
            continue
        if holds_dates(series):
            columns[name] = to_days(series)
            dates.append(f"`{name}`")
        elif holds_text(series):
            parsed, is_date = _parse_text(series)
            if parsed is not None:
                _warn_of_wrong_cells(series, parsed)
                columns[name] = parsed.values
                dates += [f"`{name}`"] * is_date
    if dates:
        warnings.warn(
            f"{', '.join(dates)} {'holds' if len(dates) == 1 else 'hold'} dates, read as days "
            "since 1970-01-01: leave a column out with `drop` if it says nothing about new rows",
            DataWarning,
            stacklevel=3,
        )
    # a new frame: the caller's is never modified
    return frame.assign(**columns) if columns else frame


def _parse_text(series: "pd.Series[Any]") -> tuple[ParsedColumn | None, bool]:
    """Return a column of text as numbers, if it is one, and whether they are days."""
    import pandas as pd

    # truth values with gaps are objects too, and are to stay categories
    if pd.api.types.infer_dtype(series, skipna=True) in ("boolean", "empty"):
        return None, False
    parsed = parse_numbers(series)
    if parsed.share >= NEARLY_ALL:
        cells = unique_cells(series)[1]
        is_code = any(isinstance(cell, str) and _LEADING_ZERO.fullmatch(cell) for cell in cells)
        return (None if is_code else parsed), False
    parsed = parse_dates(series)
    return (parsed, True) if parsed.share >= NEARLY_ALL else (None, False)
