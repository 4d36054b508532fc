"""Tables in files: text of any usual kind, or Parquet; detected formats are reported."""

import codecs
import csv
import math
import os
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
from paretocosmos.io.external import CHUNK, check_size, read_chunks
from paretocosmos.io.files import one_line, user_path
from paretocosmos.io.formatting import format_bytes

if TYPE_CHECKING:
    import pandas as pd

# Packings that Python unpacks in chunks, so that the size can be limited on the way.
TEXT_ENDINGS = (".csv", ".csv.gz", ".csv.xz", ".tsv", ".tsv.gz", ".tsv.xz")
PARQUET_ENDINGS = (".parquet", ".pq")
TABLE_ENDINGS = (*TEXT_ENDINGS, *PARQUET_ENDINGS)

SEPARATORS = (",", ";", "\t", "|")
DECIMALS = (".", ",")
# The sample by which the separator and the decimal mark are detected: characters, and lines.
SAMPLE, LINES = 1 << 16, 200
# GB that a packed table may take when it is unpacked; 1 by default.
SIZE_VARIABLE = "PARETOCOSMOS_TABLE_GB"
SIZE_HINT = f"keep a part of its rows or columns, or set ${SIZE_VARIABLE} to more GB"
# Bytes of a value in memory: of a number or a pointer, and of a Python object.
NUMBER, OBJECT = 8, 128
# Digits on both sides: a mark at the end of a number is punctuation.
_WITH_COMMA, _WITH_POINT = (re.compile(rf"\s*[+-]?\d+{mark}\d+\s*") for mark in (",", r"\."))


@dataclass(frozen=True)
class Format:
    """The format of a table as text.

    Attributes:
        separator: between two columns.
        decimal: the mark before the decimals of a number.
        encoding: of the text.
    """

    separator: str
    decimal: str
    encoding: str

    @property
    def hint(self) -> str:
        """The way out where a file cannot be read in this format."""
        return (
            f"it was taken for text in {self.encoding} with a header and "
            f"{_quote(self.separator)} between columns: set `separator`, `decimal` and `encoding` "
            "if that is wrong"
        )


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
        separator: between two columns, ``"tab"`` for a tab; detected if `None`.
        decimal: ``"."`` or ``","``; detected if `None`.
        encoding: a name that Python knows; detected if `None`: UTF-8, UTF-16 with its mark, else
            cp1252.
    """
    path = user_path(path)
    check_file(path)
    if path.name.lower().endswith(PARQUET_ENDINGS):
        return _read_parquet(path)
    # a shell passes `\t` on as two characters
    separator = "\t" if separator in ("tab", r"\t") else separator
    _check_format(separator, decimal, encoding)
    try:
        # first of all: an endless line would fill the memory of whatever reads it
        check_lines(path)
        text_encoding = encoding or _detect_encoding(path)
        sample = _read_sample(path, text_encoding)
    except (OSError, EOFError, LZMAError, zlib.error, UnicodeError) as error:
        raise _unreadable(path, error) from error
    mark = separator or _detect_separator(sample)
    rows = _split_sample(sample, mark)
    format_ = Format(mark, decimal or _detect_decimal(rows, mark), text_encoding)
    _check_header(path, rows)
    _warn_of_format(path, format_, chosen=Format(separator or "", decimal or "", encoding or ""))
    return read_csv(
        path,
        format_.hint,
        sep=format_.separator,
        decimal=format_.decimal,
        encoding=format_.encoding,
    )


def read_csv(path: Path, way_out: str, *, limited: bool = True, **options: Any) -> "pd.DataFrame":
    """Read a CSV file, packed or plain; raise a DataError for anything wrong with it.

    Args:
        path: the file.
        way_out: what to do where it cannot be read.
        limited: whether its size is checked first; not of files that come with this package.
        options: of pandas.
    """
    require_extra("pandas", "tabular", f"reading `{path}`")
    import pandas as pd

    try:
        if limited:
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


def _unreadable(
    path: Path,
    error: Exception,
    way_out: str = "a table is text with a header, plain or packed as its name says",
) -> DataError:
    # one line: pandas ends some of its messages with a newline
    return DataError(f"`{path}` cannot be read ({one_line(error)}); {way_out}")


def check_lines(path: Path) -> None:
    """Raise for a table that would take all memory: an endless line, or a huge packed file."""
    # a plain file is as large as the disk says; a packed one may unpack to anything
    limit = _get_size_limit() if path.suffix.lower() in (".gz", ".xz") else None
    for chunk in read_chunks(path, most=limit, way_out=SIZE_HINT):
        if len(chunk) == CHUNK and b"\n" not in chunk and b"\r" not in chunk:
            raise DataError(
                f"`{path}` has a line of more than {CHUNK:,} bytes, which cannot be a row: "
                "a table is text with a header and commas"
            )


def _get_size_limit() -> int:
    """Return the number of bytes that a table may take when it is unpacked."""
    text = os.environ.get(SIZE_VARIABLE) or "1"
    try:
        size = float(text) * 1e9
        if not 0 < size < math.inf:
            raise ValueError
    except ValueError as error:
        raise ConfigurationError(
            f"${SIZE_VARIABLE} must be a number of GB above 0, found {text[:40]!r}"
        ) from error
    return int(size)


def _check_format(separator: str | None, decimal: str | None, encoding: str | None) -> None:
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


def _detect_encoding(path: Path) -> str:
    """Return UTF-8 if all of the file is, UTF-16 if it has that mark, else a Windows encoding."""
    # incremental: a character may lie on the border of two chunks
    decoder = codecs.getincrementaldecoder("utf-8")()
    is_utf8, single_byte = True, "cp1252"
    for index, chunk in enumerate(read_chunks(path, most=None)):
        if index == 0 and chunk.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return "utf-16"
        if index == 0 and chunk.startswith(codecs.BOM_UTF8):
            return "utf-8-sig"
        if b"\0" in chunk:
            raise DataError(
                f"`{path}` cannot be read (it contains null bytes, which text does not); a table "
                "is text with a header, or Parquet"
            )
        if is_utf8:
            try:
                decoder.decode(chunk)
            except UnicodeDecodeError:
                is_utf8 = False
        if not is_utf8 and single_byte == "cp1252":
            try:
                chunk.decode("cp1252")
            except UnicodeDecodeError:  # five bytes mean nothing in cp1252; latin-1 has all
                single_byte = "latin-1"
    return "utf-8" if is_utf8 else single_byte


def _read_sample(path: Path, encoding: str) -> str:
    """Return the beginning of a file: complete lines, if it has more than one."""
    # twice the sample: UTF-16 has two bytes or more for a character
    start = next(iter(read_chunks(path, most=None)), b"")[: 2 * SAMPLE]
    text = codecs.getincrementaldecoder(encoding)().decode(start)[:SAMPLE]
    # the last line may be cut off, and would look like one with fewer fields
    lines, end, _ = text.rpartition("\n")
    return lines if end else text


def _split_sample(sample: str, separator: str) -> list[list[str]]:
    rows: list[list[str]] = []
    try:
        for row in csv.reader(StringIO(sample, newline=""), delimiter=separator):
            if row:
                rows.append(row)
            if len(rows) == LINES:
                break
    except csv.Error:  # an endless field; pandas will complain of it
        pass
    return rows


def _detect_separator(sample: str) -> str:
    """Return the separator by which most lines have as many fields as the header, and several."""

    def rate(separator: str) -> tuple[float, int]:
        rows = _split_sample(sample, separator)
        fields = len(rows[0]) if rows else 0
        # any text has one field in each line if the separator does not occur
        if fields < 2:
            return 0.0, 0
        return sum(len(row) == fields for row in rows) / len(rows), fields

    return max(SEPARATORS, key=rate)  # the first of those that fit alike: the comma


def _detect_decimal(rows: Sequence[Sequence[str]], separator: str) -> str:
    # a comma cannot be both; quoted numbers such as "1,5" are parsed later, cell by cell
    if separator == ",":
        return "."
    cells = [cell for row in rows[1:] for cell in row]
    commas, points = (sum(map(bool, map(p.fullmatch, cells))) for p in (_WITH_COMMA, _WITH_POINT))
    return "," if commas > points else "."


def _check_header(path: Path, rows: Sequence[Sequence[str]]) -> None:
    """Raise for names that occur twice, which pandas would number without a word."""
    header = rows[0] if rows else []
    twice = [name for index, name in enumerate(header) if name and name in header[:index]]
    if twice:
        raise DataError(
            f"column names must be unique, found `{twice[0][:60]}` twice in the header of "
            f"`{path}`: rename one of them"
        )


def _warn_of_format(path: Path, format_: Format, chosen: Format) -> None:
    """Name what was detected in one line, unless it is commas, points and UTF-8."""
    usual = "\t" if ".tsv" in path.name.lower() else ","
    detected = []
    if format_.encoding not in ("utf-8", "utf-8-sig") and not chosen.encoding:
        detected.append(f"text in {format_.encoding}")
    if format_.separator != usual and not chosen.separator:
        detected.append(f"{_quote(format_.separator)} between columns")
    if format_.decimal != "." and not chosen.decimal:
        detected.append("`,` before decimals")
    if detected:
        warnings.warn(
            f"`{path.name}` is read with {', '.join(detected)}: if that is wrong, set `separator`, "
            "`decimal` and `encoding`",
            DataWarning,
            stacklevel=3,
        )


def _quote(separator: str) -> str:
    return "tabs" if separator == "\t" else f"`{separator}`"


def _read_parquet(path: Path) -> "pd.DataFrame":
    """Return the table of a file; one that needs too much memory is refused before it is read."""
    require_extra("pandas", "tabular", f"reading `{path}`")
    require_extra("pyarrow", "parquet", f"reading `{path}`")
    import pandas as pd

    try:
        # refuses a pipe, which cannot be read from its end, where Parquet has its metadata
        check_size(path, None)
        _check_memory(path)
        frame: pd.DataFrame = pd.read_parquet(path, engine="pyarrow")
    except ParetoCosmosError:
        raise
    except Exception as error:  # a damaged file can raise anything
        raise _unreadable(path, error, "write it again as Parquet") from error
    # a named index was a column that pandas set aside when it wrote the file
    return frame if frame.index.name is None else frame.reset_index()


def _check_memory(path: Path) -> None:
    """Raise if a Parquet file would need too much memory, by what its metadata say."""
    import pyarrow.parquet as pq

    limit = _get_size_limit()
    with pq.ParquetFile(path) as file:
        metadata, schema = file.metadata, file.schema
    columns = [schema.column(index) for index in range(len(schema))]
    groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
    # a file says twice how many rows it has; a column's bytes are unpacked before they are values
    rows = max(metadata.num_rows, sum(group.num_rows for group in groups))
    values = rows * sum(_get_value_size(path, column) for column in columns)
    size = max(values, sum(group.total_byte_size for group in groups))
    # texts last: to measure them the file must be read
    if size <= limit:
        texts = [column.name for column in columns if column.physical_type == "BYTE_ARRAY"]
        size += _count_text_bytes(path, texts, limit - size)
    if size > limit:
        raise DataError(
            f"`{path}` takes {format_bytes(size)} of memory or more ({rows:,} rows of "
            f"{len(columns):,} columns), but at most {format_bytes(limit)} are read: "
            f"{SIZE_HINT}"
        )


def _get_value_size(path: Path, column: Any) -> int:
    """Return the bytes of a value in memory, without its text."""
    # the path has one more name for each level of nesting
    if column.path != column.name:
        raise DataError(
            f"a table has one value in each cell, but `{path}` has lists or records in the column "
            f"`{column.path.partition('.')[0]}`: write the file without it"
        )
    if column.physical_type == "FIXED_LEN_BYTE_ARRAY":
        return OBJECT + int(column.length)
    # pandas holds decimals as Python objects
    return OBJECT if column.logical_type.type == "DECIMAL" else NUMBER


def _count_text_bytes(path: Path, names: list[str], limit: int) -> int:
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
            texts = (array for array in batch.columns if isinstance(array, pa.DictionaryArray))
            for column in texts:
                lengths = pc.cast(pc.binary_length(column.dictionary), pa.int64())
                size += pc.sum(pc.take(lengths, column.indices)).as_py() or 0
            if size > limit:
                break
    return size
