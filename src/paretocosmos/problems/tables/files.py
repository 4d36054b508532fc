"""Tables in files: text of any usual kind, or Parquet; what had to be guessed is reported."""

import codecs
import csv
import re
import warnings
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from lzma import LZMAError
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paretocosmos.errors import (
    ConfigurationError,
    DataError,
    DataWarning,
    ParetoCosmosError,
    require_extra,
)
from paretocosmos.io.compression import (
    TABLE_WAY_OUT,
    check_lines,
    check_size,
    in_pieces,
    largest_table,
)
from paretocosmos.io.files import user_path
from paretocosmos.io.formatting import format_bytes

if TYPE_CHECKING:
    import pandas as pd

TEXT_ENDINGS = (".csv", ".csv.gz", ".csv.xz", ".tsv", ".tsv.gz", ".tsv.xz")
PARQUET_ENDINGS = (".parquet", ".pq")
TABLE_ENDINGS = (*TEXT_ENDINGS, *PARQUET_ENDINGS)

SEPARATORS = (",", ";", "\t", "|")
DECIMALS = (".", ",")
# What the separator and the decimal mark are judged by: letters, and lines at most.
SAMPLE, LINES = 1 << 16, 200
_WITH_COMMA, _WITH_POINT = (re.compile(rf"\s*[+-]?\d+{mark}\d+\s*") for mark in (",", r"\."))


@dataclass(frozen=True)
class Format:
    """How a table is written as text.

    Attributes:
        separator: between two columns.
        decimal: the mark before the decimals of a number.
        encoding: what bytes mean.
    """

    separator: str
    decimal: str
    encoding: str


def check_file(path: Path) -> None:
    """Refuse what cannot be a table: another ending, or no file."""
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
    """A table from a file: ``.csv`` or ``.tsv``, also ``.gz`` or ``.xz`` of them, or ``.parquet``.

    Args:
        path: the file.
        separator: between two columns, ``"tab"`` for a tab; found out if `None`.
        decimal: ``"."`` or ``","``; found out if `None`.
        encoding: as Python calls it; found out if `None`: UTF-8, UTF-16 with its mark, else cp1252.
    """
    path = user_path(path)
    check_file(path)
    if path.name.lower().endswith(PARQUET_ENDINGS):
        return read_parquet(path)
    separator = "\t" if separator in ("tab", r"\t") else separator
    _check(separator, decimal, encoding)
    try:
        check_lines(path)
        known = encoding or _encoding(path)
        sample = _sample(path, known)
    except (OSError, EOFError, LZMAError, zlib.error, UnicodeError) as error:
        raise _unreadable(path, error) from error
    chosen = separator or _separator(sample)
    rows = _rows(sample, chosen)
    found = Format(chosen, decimal or _decimal(rows, chosen), known)
    _check_header(path, rows)
    _say(path, found, given=Format(separator or "", decimal or "", encoding or ""))
    return read_csv(
        path,
        _way_out(found),
        sep=found.separator,
        decimal=found.decimal,
        encoding=found.encoding,
    )


def read_csv(path: Path, way_out: str, *, own: bool = False, **options: Any) -> "pd.DataFrame":
    """Read a CSV file, packed or plain; whatever is wrong with it is one sentence.

    Args:
        path: the file.
        way_out: what to do where it cannot be read.
        own: whether it came with this package, so that its size is known.
        options: of pandas.
    """
    require_extra("pandas", "tabular", f"reading `{path}`")
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
        raise _unreadable(path, error, way_out) from error
    return frame


def _unreadable(path: Path, error: Exception, way_out: str = "") -> DataError:
    what = " ".join(str(error).split())  # pandas ends some of its messages with a newline
    way_out = way_out or "a table is text with a header, plain or packed as its name says"
    return DataError(f"`{path}` cannot be read ({what}); {way_out}")


def _check(separator: str | None, decimal: str | None, encoding: str | None) -> None:
    if separator is not None and (len(separator) != 1 or separator in '\r\n"'):
        raise ConfigurationError(f"`separator` must be one character or `tab`, found {separator!r}")
    if decimal is not None and decimal not in DECIMALS:
        raise ConfigurationError(f"`decimal` must be `.` or `,`, found {decimal!r}")
    if decimal is not None and decimal == separator:
        raise ConfigurationError(
            f"`separator` and `decimal` must differ, found {decimal!r} for both"
        )
    if encoding is not None:
        try:
            "a".encode(encoding)  # refuses what is not text, such as hex
        except (LookupError, ValueError) as error:
            raise ConfigurationError(
                "`encoding` must be a text encoding known to Python, such as utf-8 or cp1252, "
                f"found {encoding[:40]!r}"
            ) from error


def _encoding(path: Path) -> str:
    """UTF-8 if all of the file is, UTF-16 if it begins with that mark, else what Windows writes."""
    decode = codecs.getincrementaldecoder("utf-8")()
    single, first = "cp1252", True
    plain = True
    for part in in_pieces(path, most=None):
        if first and part.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return "utf-16"
        if first and part.startswith(codecs.BOM_UTF8):
            return "utf-8-sig"
        if b"\0" in part:
            raise DataError(
                f"`{path}` cannot be read (it contains null bytes, which text does not); a table "
                "is text with a header, or Parquet"
            )
        first = False
        if plain:
            try:
                decode.decode(part)
            except UnicodeDecodeError:
                plain = False
        if not plain and single == "cp1252":
            try:
                part.decode("cp1252")
            except UnicodeDecodeError:
                single = "latin-1"
    return "utf-8" if plain else single


def _sample(path: Path, encoding: str) -> str:
    """The beginning of a file: whole lines, if it has more than one."""
    part = next(iter(in_pieces(path, most=None)), b"")[: 2 * SAMPLE]
    text = codecs.getincrementaldecoder(encoding)().decode(part)[:SAMPLE]
    whole, end, _ = text.rpartition("\n")
    return whole if end else text


def _rows(sample: str, separator: str) -> list[list[str]]:
    lines = csv.reader(StringIO(sample, newline=""), delimiter=separator)
    rows: list[list[str]] = []
    try:
        for row in lines:
            if row:
                rows.append(row)
            if len(rows) == LINES:
                break
    except csv.Error:  # an endless field; pandas will say what it thinks of it
        pass
    return rows


def _separator(sample: str) -> str:
    """The one by which most lines have as many fields as the header, and that has several."""

    def fit(separator: str) -> tuple[float, int]:
        rows = _rows(sample, separator)
        fields = len(rows[0]) if rows else 0
        if fields < 2:
            return 0.0, 0
        return sum(len(row) == fields for row in rows) / len(rows), fields

    return max(SEPARATORS, key=fit)  # the first of those that fit alike: the comma


def _decimal(rows: Sequence[Sequence[str]], separator: str) -> str:
    if separator == ",":
        return "."
    cells = [cell for row in rows[1:] for cell in row]
    commas, points = (sum(map(bool, map(p.fullmatch, cells))) for p in (_WITH_COMMA, _WITH_POINT))
    return "," if commas > points else "."


def _check_header(path: Path, rows: Sequence[Sequence[str]]) -> None:
    """Refuse names that occur twice, which pandas would number without a word."""
    header = rows[0] if rows else []
    twice = [name for at, name in enumerate(header) if name and name in header[:at]]
    if twice:
        raise DataError(
            f"column names must be unique, found `{twice[0][:60]}` twice in the header of "
            f"`{path}`: rename one of them"
        )


def _say(path: Path, found: Format, given: Format) -> None:
    """One line of what was assumed, where it is not commas and UTF-8."""
    usual = "\t" if ".tsv" in path.name.lower() else ","
    parts = []
    if found.encoding not in ("utf-8", "utf-8-sig") and not given.encoding:
        parts.append(f"text in {found.encoding}")
    if found.separator != usual and not given.separator:
        parts.append(f"{_shown(found.separator)} between columns")
    if found.decimal != "." and not given.decimal:
        parts.append("`,` before decimals")
    if parts:
        warnings.warn(
            f"`{path.name}` is read with {', '.join(parts)}: if that is wrong, set `separator`, "
            "`decimal` and `encoding`",
            DataWarning,
            stacklevel=3,
        )


def _shown(separator: str) -> str:
    return "tabs" if separator == "\t" else f"`{separator}`"


def _way_out(found: Format) -> str:
    return (
        f"it was taken for text in {found.encoding} with a header and {_shown(found.separator)} "
        "between columns: say it with `separator`, `decimal` and `encoding` if that is wrong"
    )


# Bytes of a value in memory: of a number or a pointer, and of a Python object.
NUMBER, OBJECT = 8, 128


def read_parquet(path: Path) -> "pd.DataFrame":
    """Return the table of a file; one that needs too much memory is refused before it is read."""
    require_extra("pandas", "tabular", f"reading `{path}`")
    require_extra("pyarrow", "parquet", f"reading `{path}`")
    import pandas as pd

    try:
        check_size(path, None)
        _check_memory(path)
        frame: pd.DataFrame = pd.read_parquet(path, engine="pyarrow")
    except ParetoCosmosError:
        raise
    except Exception as error:  # a damaged file can raise anything
        reason = " ".join(str(error).split())
        raise DataError(f"`{path}` cannot be read ({reason}); write it again as Parquet") from error
    return frame if frame.index.name is None else frame.reset_index()


def _check_memory(path: Path) -> None:
    import pyarrow.parquet as pq

    limit = largest_table()
    with pq.ParquetFile(path) as file:
        metadata, schema = file.metadata, file.schema
    columns = [schema.column(index) for index in range(len(schema))]
    groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
    # a file says twice how many rows it has; a column's bytes are unpacked before they are values
    rows = max(metadata.num_rows, sum(group.num_rows for group in groups))
    values = rows * sum(_value_size(path, column) for column in columns)
    size = max(values, sum(group.total_byte_size for group in groups))
    if size <= limit:
        texts = [column.name for column in columns if column.physical_type == "BYTE_ARRAY"]
        size += _text_size(path, texts, limit - size)
    if size > limit:
        raise DataError(
            f"`{path}` takes {format_bytes(size)} of memory or more ({rows:,} rows of "
            f"{len(columns):,} columns), but at most {format_bytes(limit)} are read: "
            f"{TABLE_WAY_OUT}"
        )


def _value_size(path: Path, column: Any) -> int:
    if column.path != column.name:
        raise DataError(
            f"a table has one value in each cell, but `{path}` has lists or records in the column "
            f"`{column.path.partition('.')[0]}`: write the file without it"
        )
    if column.physical_type == "FIXED_LEN_BYTE_ARRAY":
        return OBJECT + int(column.length)
    return OBJECT if column.logical_type.type == "DECIMAL" else NUMBER


def _text_size(path: Path, names: list[str], limit: int) -> int:
    """Return how many bytes the texts have in all, counted only until they exceed the limit.

    Read as dictionaries, equal texts are held once, however often they occur.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    size = 0
    if not names:
        return size
    with pq.ParquetFile(path, read_dictionary=names) as file:
        for batch in file.iter_batches(columns=names):
            texts = (one for one in batch.columns if isinstance(one, pa.DictionaryArray))
            for column in texts:
                lengths = pc.cast(pc.binary_length(column.dictionary), pa.int64())
                size += pc.sum(pc.take(lengths, column.indices)).as_py() or 0
            if size > limit:
                break
    return size
