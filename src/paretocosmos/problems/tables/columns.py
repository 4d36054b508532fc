"""What a table's columns hold, whatever they arrive as; what is assumed of them is said."""

import re
import warnings
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np

from paretocosmos.errors import DataError, DataWarning
from paretocosmos.problems.tables.cells import (
    Parsed,
    find_ambiguous_date,
    holds_dates,
    parse_dates,
    parse_numbers,
    some_of,
    to_days,
)

if TYPE_CHECKING:
    import pandas as pd


# Text of which this share is numbers is a column of numbers with some mistakes in it.
NEARLY_ALL = 0.95
# Fewer rows than this may all differ by chance.
ROWS = 50
# Text that differs in this share of the rows is a name, an address or a remark.
DIFFERENT = 0.5
_NAMES = re.compile(r"(^|[^a-z])(id|uuid|guid|key|nr|no|index|row|rowid)$|^unnamed", re.IGNORECASE)


def holds_text(series: "pd.Series[Any]") -> bool:
    """Whether a column is text or anything: not numbers, truth values, categories or dates."""
    from pandas.api import types

    return types.is_object_dtype(series.dtype) or (
        types.is_string_dtype(series.dtype) and series.dtype.name != "category"
    )


def read_columns(frame: "pd.DataFrame", *, as_they_are: Collection[str]) -> "pd.DataFrame":
    """The frame with text that is numbers as numbers, and dates as days since 1970-01-01.

    A column of text is numbers if at least 95 % of its cells are. The other cells count as missing
    and are named in a warning. Text with leading zeros is a code, and stays text.

    Args:
        frame: the features; never modified.
        as_they_are: columns to leave alone, since they are to be categories.

    >>> import pandas as pd
    >>> people = pd.DataFrame({"age": ["20", "31", None], "born": ["1970-01-03"] * 3})
    >>> with warnings.catch_warnings(action="ignore"):
    ...     read_columns(people, as_they_are=()).to_dict("list")
    {'age': [20.0, 31.0, nan], 'born': [2.0, 2.0, 2.0]}
    """
    found: dict[str, Any] = {}
    dates: list[str] = []
    for name in frame.columns:
        series = frame[name]
        if name in as_they_are:
            continue
        if holds_dates(series):
            found[name] = to_days(series)
            dates.append(name)
        elif holds_text(series):
            parsed, is_date = _parsed(series)
            if parsed is not None:
                found[name] = parsed.values
                dates += [name] * is_date
                _say(series, parsed, what="dates" if is_date else "numbers")
    if dates:
        warnings.warn(
            f"{_listed(dates)} {'holds' if len(dates) == 1 else 'hold'} dates, read as days since "
            "1970-01-01: leave a column out with `drop` if it says nothing about new rows",
            DataWarning,
            stacklevel=3,
        )
    return frame.assign(**found) if found else frame


def _parsed(series: "pd.Series[Any]") -> tuple[Parsed | None, bool]:
    """A column of text as numbers, if it is one, and whether they are days."""
    import pandas as pd

    if pd.api.types.infer_dtype(series, skipna=True) in ("boolean", "empty"):
        return None, False
    numbers = parse_numbers(series)
    if numbers.share >= NEARLY_ALL:
        return (None if numbers.leading_zeros else numbers), False
    dates = parse_dates(series)
    if dates.share >= NEARLY_ALL:
        return dates, True
    unclear = find_ambiguous_date(series)
    if unclear is not None:
        raise DataError(
            f"the column `{series.name}` holds dates such as {unclear}, in which the order of day "
            "and month is unclear: write them as 2024-12-31, or leave the column out with `drop`"
        ).with_hint({"drop": series.name})
    return None, False


def _say(series: "pd.Series[Any]", parsed: Parsed, what: str) -> None:
    said = []
    if parsed.commas:
        said.append(f"its commas before {parsed.commas}")
    told = parsed.bad
    if told.any():
        told = told & (series.astype(object).map(str).str.strip() != "").to_numpy()
    if told.any():
        count = int(told.sum())
        said.append(
            f"{count:,} of its {len(series):,} cells as missing ({some_of(series, told)}"
            f"{', ...' if count > 3 else ''})"
        )
    if said:
        warnings.warn(
            f"the column `{series.name}` is read as {what}, {' and '.join(said)}: fix it, or read "
            "it as categories with `categorical`",
            DataWarning,
            stacklevel=4,
        )


def find_identifiers(frame: "pd.DataFrame") -> dict[str, str]:
    """Columns that name a row instead of describing it, each with what gives it away.

    Whole numbers that all differ and count the rows, go up with them, or are called an identifier;
    text that differs in most rows.

    >>> import pandas as pd
    >>> people = pd.DataFrame({"id": range(100, 200), "age": [20, 30, 40, 50] * 25})
    >>> find_identifiers(people)
    {'id': 'a whole number of its own in every row'}
    """
    from pandas.api import types

    found = {}
    for name in frame.columns:
        series = frame[name]
        if len(series) < ROWS:
            continue
        if types.is_integer_dtype(series.dtype):
            if _counts(str(name), series):
                found[name] = "a whole number of its own in every row"
        elif holds_text(series):
            known = series.dropna()
            if types.is_object_dtype(known.dtype):  # 1 and "1" are one text
                known = known.map(str)
            different = known.nunique()
            if len(known) >= ROWS and different >= DIFFERENT * len(known):
                found[name] = f"{different:,} different texts in {len(known):,} rows"
    return found


def drop_identifiers(frame: "pd.DataFrame", *, keep: Collection[str]) -> "pd.DataFrame":
    """The frame without them, which is said; those of `keep` stay."""
    found = {name: why for name, why in find_identifiers(frame).items() if name not in keep}
    if not found:
        return frame
    every = ", ".join(f"`{name}` ({why})" for name, why in found.items())
    says = "names rows rather than describing them, and is"
    if len(found) > 1:
        says = "name rows rather than describing them, and are"
    warnings.warn(
        f"{every} {says} left out: list a column in `keep` to use it, or in `drop` to leave it out "
        "without this note",
        DataWarning,
        stacklevel=3,
    )
    return frame.drop(columns=list(found))


def _counts(name: str, series: "pd.Series[Any]") -> bool:
    if series.isna().any() or not series.is_unique:
        return False
    values = series.to_numpy(np.float64)
    if _NAMES.search(name) or values.max() - values.min() == len(values) - 1:
        return True
    steps = np.diff(values)
    return bool((steps > 0).all() or (steps < 0).all())


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
