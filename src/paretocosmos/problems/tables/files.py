"""Tables in files: CSV and TSV, plain or packed, and Parquet."""

import warnings
import zlib
from lzma import LZMAError
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paretocosmos.errors import ConfigurationError, DataError, require_extra
from paretocosmos.io.files import one_line, user_path

if TYPE_CHECKING:
    import pandas as pd

TEXT_ENDINGS = (".csv", ".csv.gz", ".csv.xz", ".tsv", ".tsv.gz", ".tsv.xz")
PARQUET_ENDINGS = (".parquet", ".pq")
TABLE_ENDINGS = (*TEXT_ENDINGS, *PARQUET_ENDINGS)

SEPARATORS = (",", ";", "\t", "|")


def check_file(path: Path) -> None:
    """Raise if a path cannot be a table: it has another ending, or is no file."""
    if not path.name.lower().endswith(TABLE_ENDINGS):
        raise DataError(f"a table must be a {', '.join(TABLE_ENDINGS)} file, found `{path}`")
    if not path.is_file():
        why = "is not a file" if path.exists() else "does not exist"
        raise DataError(f"`{path}` {why}: give the path of a table")


def read_table(
    path: Path,
    *,
    separator: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
) -> "pd.DataFrame":
    """Read a table: ``.csv`` or ``.tsv``, also ``.gz`` or ``.xz`` of them, or ``.parquet``.

    Args:
        path: the file.
        separator: between two columns, ``"tab"`` for a tab; if `None`, the one of ``, ; tab |``
            that makes most columns of the header.
        decimal: ``"."`` or ``","``; if `None`, a comma where semicolons separate the columns.
        encoding: a name that Python knows; UTF-8 if `None`.
    """
    path = user_path(path)
    check_file(path)
    if path.name.lower().endswith(PARQUET_ENDINGS):
        return _read_parquet(path)
    # a shell passes `\t` on as two characters
    separator = "\t" if separator in ("tab", r"\t") else separator
    _check_format(separator, decimal, encoding)
    encoding = encoding or "utf-8"
    way_out = (
        f"it was taken for text in {encoding} with a header: set `separator`, `decimal` and "
        "`encoding`, such as `cp1252`, if that is wrong"
    )
    # the first of those with as many columns: the comma
    candidates = SEPARATORS if separator is None else (separator,)
    options = {"encoding": encoding, "header": None, "nrows": 1, "dtype": str}
    headers = {mark: read_csv(path, way_out, sep=mark, **options) for mark in candidates}
    mark, header = max(headers.items(), key=lambda item: item[1].shape[1])
    names = header.iloc[0].dropna()
    if not names.is_unique:  # pandas would number them without a word
        raise DataError(
            f"column names must be unique, found `{names[names.duplicated()].iloc[0][:60]}` twice "
            f"in the header of `{path}`: rename one of them"
        )
    # as spreadsheets write it where the comma is the decimal mark
    decimal = decimal or ("," if mark == ";" else ".")
    return read_csv(path, way_out, sep=mark, decimal=decimal, encoding=encoding)


def read_csv(path: Path, way_out: str, **options: Any) -> "pd.DataFrame":
    """Read a CSV file, packed or plain; raise a DataError for anything wrong with it.

    Args:
        path: the file.
        way_out: what to do where it cannot be read.
        options: of pandas.
    """
    require_extra("pandas", "tabular", f"reading `{path}`")
    import pandas as pd

    try:
        with warnings.catch_warnings(action="error", category=pd.errors.ParserWarning):
            # without `index_col`, rows with more fields than the header would shift every name
            frame: pd.DataFrame = pd.read_csv(path, index_col=False, low_memory=False, **options)
    except pd.errors.ParserWarning as error:
        raise DataError(
            f"the rows of `{path}` have more fields than its header: name every column"
        ) from error
    except (OSError, EOFError, ValueError, LZMAError, zlib.error) as error:
        raise _unreadable(path, error, way_out) from error
    return frame


def _unreadable(path: Path, error: Exception, way_out: str) -> DataError:
    # one line: pandas ends some of its messages with a newline
    return DataError(f"`{path}` cannot be read ({one_line(error)}); {way_out}")


def _check_format(separator: str | None, decimal: str | None, encoding: str | None) -> None:
    if separator is not None and (len(separator) != 1 or separator in '\r\n"'):
        raise ConfigurationError(f"`separator` must be one character or `tab`, found {separator!r}")
    if decimal not in (None, ".", ",") or (decimal is not None and decimal == separator):
        raise ConfigurationError(
            f"`decimal` must be `.` or `,`, and not the separator, found {decimal!r}"
        )
    try:
        "a".encode(encoding or "utf-8")  # refuses what is not text, such as hex
    except (LookupError, ValueError) as error:
        raise ConfigurationError(
            "`encoding` must be a text encoding known to Python, such as utf-8 or cp1252, "
            f"found {str(encoding)[:40]!r}"
        ) from error


def _read_parquet(path: Path) -> "pd.DataFrame":
    require_extra("pandas", "tabular", f"reading `{path}`")
    require_extra("pyarrow", "parquet", f"reading `{path}`")
    import pandas as pd

    try:
        frame: pd.DataFrame = pd.read_parquet(path, engine="pyarrow")
    except Exception as error:  # a damaged file can raise anything
        raise _unreadable(path, error, "write it again as Parquet") from error
    # a named index was a column that pandas set aside when it wrote the file
    return frame if frame.index.name is None else frame.reset_index()
