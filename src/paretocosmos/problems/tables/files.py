"""Tables in files: CSV and TSV, plain or packed, and Parquet."""

import gzip
import lzma
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import chain, repeat
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from paretocosmos.errors import ConfigurationError, DataError, require_extra
from paretocosmos.io.files import one_line, replace_file, user_path

if TYPE_CHECKING:
    import pandas as pd

TEXT_ENDINGS = (".csv", ".csv.gz", ".csv.xz", ".tsv", ".tsv.gz", ".tsv.xz")
PARQUET_ENDINGS = (".parquet", ".pq")
PARQUET_WAY_OUT = "write it again as Parquet"
TABLE_ENDINGS = (*TEXT_ENDINGS, *PARQUET_ENDINGS)

SEPARATORS = (",", ";", "\t", "|")
# Rows that are read at once where a table need not fit into memory.
CHUNK_ROWS = 65_536
# Cells of a Parquet file beyond which its columns are mapped from files: 256 MB of numbers.
MAPPED_CELLS = 2**25


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

    The columns of a large Parquet file are mapped from temporary files, so they need not fit into
    memory together.

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
    way_out, options = _find_format(path, separator, decimal, encoding)
    return read_csv(path, way_out, **options)


def read_chunks(
    path: Path,
    *,
    text: Iterable[str] = (),
    separator: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
) -> "Iterator[pd.DataFrame]":
    """Yield the rows of a table as `read_table` reads them, but not all at once.

    Args:
        path: the file.
        text: columns that are text, though some rows may hold nothing but numbers.
        separator: as in `read_table`.
        decimal: as in `read_table`.
        encoding: as in `read_table`.
    """
    path = user_path(path)
    check_file(path)
    if path.name.lower().endswith(PARQUET_ENDINGS):
        yield from _read_parquet_chunks(path)
        return
    way_out, options = _find_format(path, separator, decimal, encoding)
    types = dict.fromkeys(text, str)
    import pandas as pd

    with _explain(path, way_out):
        reader = pd.read_csv(
            path, index_col=False, low_memory=False, chunksize=CHUNK_ROWS, dtype=types, **options
        )
    with reader:
        while True:
            with _explain(path, way_out):
                frame = next(reader, None)
            if frame is None:
                return
            yield frame


def _find_format(
    path: Path, separator: str | None, decimal: str | None, encoding: str | None
) -> tuple[str, dict[str, Any]]:
    """Return what to do where a file of text cannot be read, and the options to read it with."""
    # a shell passes `\t` on as two characters
    separator = "\t" if separator in ("tab", r"\t") else separator
    if separator is not None and (len(separator) != 1 or separator in '\r\n"'):
        raise ConfigurationError(f"`separator` must be one character or `tab`, found {separator!r}")
    if decimal not in (None, ".", ",") or (decimal is not None and decimal == separator):
        raise ConfigurationError(
            f"`decimal` must be `.` or `,`, and not the separator, found {decimal!r}"
        )
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
    return way_out, {"sep": mark, "decimal": decimal, "encoding": encoding}


def read_csv(path: Path, way_out: str, **options: Any) -> "pd.DataFrame":
    """Read a CSV file, packed or plain; raise a DataError for anything wrong with it.

    Args:
        path: the file.
        way_out: what to do where it cannot be read.
        options: of pandas.
    """
    require_extra("pandas", "tabular", f"reading `{path}`")
    import pandas as pd

    with _explain(path, way_out):
        # without `index_col`, rows with more fields than the header would shift every name
        frame: pd.DataFrame = pd.read_csv(path, index_col=False, low_memory=False, **options)
    return frame


@contextmanager
def _explain(path: Path, way_out: str) -> Iterator[None]:
    """Raise a DataError for anything wrong with a file."""
    import pandas as pd

    try:
        with warnings.catch_warnings(action="error", category=pd.errors.ParserWarning):
            yield
    except pd.errors.ParserWarning as error:
        raise DataError(
            f"the rows of `{path}` have more fields than its header: name every column"
        ) from error
    except Exception as error:  # a damaged file can raise anything
        # one line: pandas ends some of its messages with a newline
        raise DataError(f"`{path}` cannot be read ({one_line(error)}); {way_out}") from error


def _read_parquet(path: Path) -> "pd.DataFrame":
    _require_parquet(path)
    with _explain(path, PARQUET_WAY_OUT):
        import pandas as pd
        from pyarrow import parquet

        with parquet.ParquetFile(path) as file:
            names = _list_columns(file.schema_arrow)
            # columns of the same name are refused later
            if file.metadata.num_rows * len(names) > MAPPED_CELLS and len({*names}) == len(names):
                return _map_columns(file, names)
        frame: pd.DataFrame = pd.read_parquet(path, engine="pyarrow")
    return _keep_index(frame)


def _require_parquet(path: Path) -> None:
    require_extra("pandas", "tabular", f"reading `{path}`")
    require_extra("pyarrow", "parquet", f"reading `{path}`")


def _list_columns(schema: Any) -> list[str]:
    """Return the columns of a file in the order of `_keep_index`."""
    stored = (schema.pandas_metadata or {}).get("index_columns", [])
    index = [name for name in stored if isinstance(name, str)]
    names = [name for name in schema.names if name not in index]
    has_name = len(index) == 1 and not index[0].startswith("__index_level_")
    return index * has_name + names


def _map_columns(file: Any, names: Iterable[str]) -> "pd.DataFrame":
    """Return columns of a Parquet file, read one at a time and mapped from temporary files."""
    import pandas as pd
    import pyarrow as pa
    from pyarrow import feather

    columns = {}
    # the system keeps mapped files until nothing uses them, except for Windows
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        for number, name in enumerate(names):
            # through pandas: a column is what it would be in memory
            series = file.read([name]).replace_schema_metadata().to_pandas()[name]
            # NaN as it is: where cells are marked as missing, the column would be copied
            values = pa.array(series.to_numpy() if series.dtype.kind in "iuf" else series)
            path = f"{folder}/{number}"
            feather.write_feather(
                pa.table({name: values}), path, compression="uncompressed", chunksize=len(series)
            )
            columns[name] = feather.read_table(path, memory_map=True)[name].to_pandas()
    return pd.DataFrame(columns, copy=False)


def _read_parquet_chunks(path: Path) -> "Iterator[pd.DataFrame]":
    _require_parquet(path)
    with _explain(path, PARQUET_WAY_OUT):
        from pyarrow import RecordBatch, Table, parquet

        # through a small buffer: by default, whole columns of a row group are read ahead
        file = parquet.ParquetFile(path, buffer_size=2**20, pre_buffer=False)
        batches = file.iter_batches(CHUNK_ROWS, use_threads=False)
        if not file.metadata.num_rows:  # one empty chunk, as of CSV
            batches = iter([RecordBatch.from_pylist([], schema=file.schema_arrow)])
    start = 0
    with file:
        while True:
            with _explain(path, PARQUET_WAY_OUT):
                batch = next(batches, None)
                if batch is None:
                    return
                # whole numbers with gaps as they are: as floats, large ones would be rounded
                frame = Table.from_batches([batch]).to_pandas(integer_object_nulls=True)
            frame = _keep_index(frame)
            # counts the rows of the file, as pandas has it for chunks of CSV
            frame.index += start
            start += len(frame)
            yield frame


def _keep_index(frame: "pd.DataFrame") -> "pd.DataFrame":
    # a named index was a column that pandas set aside when it wrote the file
    return frame if frame.index.name is None else frame.reset_index()


@contextmanager
def write_chunks(path: Path, *, rows: Path) -> "Iterator[Callable[[pd.DataFrame], None]]":
    """Yield a function that adds rows to a new table, CSV or Parquet by the ending of its name.

    Args:
        path: the new file, which is there only once all of it is written.
        rows: the table that the rows come from; columns keep their types where both are Parquet.
    """
    name, way_out = path.name.lower(), "choose another place for it"
    with replace_file(path, way_out=way_out) as temporary, ExitStack() as stack:
        if name.endswith(PARQUET_ENDINGS):
            require_extra("pyarrow", "parquet", f"writing `{path}`")
            yield _open_parquet(temporary, rows, stack)
            return
        opener: Any = {"gz": gzip.open, "xz": lzma.open}.get(name.rpartition(".")[2], open)
        stream = stack.enter_context(opener(temporary, "wt", encoding="utf-8", newline=""))
        separator = "\t" if ".tsv" in name else ","
        headers = chain([True], repeat(False))
        yield lambda frame: frame.to_csv(stream, index=False, sep=separator, header=next(headers))


def _open_parquet(path: Path, rows: Path, stack: ExitStack) -> "Callable[[pd.DataFrame], None]":
    """Return a function that adds rows to a new Parquet file, which the stack closes."""
    import pyarrow as pa
    from pyarrow import parquet

    is_parquet = rows.name.lower().endswith(PARQUET_ENDINGS)
    known = {field.name: field for field in parquet.read_schema(rows)} if is_parquet else {}
    writer: Any = None

    def write(frame: "pd.DataFrame") -> None:
        nonlocal writer
        if writer is None:
            inferred = pa.Schema.from_pandas(frame, preserve_index=False)
            schema = pa.schema([known.get(field.name, field) for field in inferred])
            writer = stack.enter_context(parquet.ParquetWriter(path, schema))
        try:
            table = pa.Table.from_pandas(frame, writer.schema, preserve_index=False)
        except pa.ArrowException as error:  # the first rows decide the types
            raise DataError(
                f"a column of `{rows}` changes its type between two rows ({one_line(error)}): "
                "write a CSV file"
            ) from error
        writer.write_table(table)

    return write
