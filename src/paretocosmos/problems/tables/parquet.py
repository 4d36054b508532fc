"""Tables in Parquet files, whose size in memory is computed before they are read.

A few megabytes of Parquet can hold a billion equal values, or one long text in every row.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from paretocosmos.errors import DataError, ParetoCosmosError, need
from paretocosmos.io.compression import TABLE_WAY_OUT, check_size, largest_table
from paretocosmos.io.formatting import format_bytes

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["read_parquet"]

# Bytes of a value in memory: of a number or a pointer, and of a Python object.
NUMBER, OBJECT = 8, 128


def read_parquet(path: Path) -> "pd.DataFrame":
    """Return the table of a file; one that needs too much memory is refused before it is read."""
    need("pandas", "tabular", f"reading `{path}`")
    need("pyarrow", "parquet", f"reading `{path}`")
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
