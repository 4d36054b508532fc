"""Problems whose rows are people, firms or loans: a table's columns, as a network reads them."""

from paretocosmos.problems.tables.cells import (
    as_pandas,
    encode_labels,
    format_label,
    is_categorical,
    to_frame,
    to_numbers,
)
from paretocosmos.problems.tables.files import TABLE_ENDINGS, check_file, read_csv, read_table
from paretocosmos.problems.tables.groups import Codes, Grouping, SmallGroups
from paretocosmos.problems.tables.problem import (
    TableProblem,
    TabularProblem,
    build_table,
    label_rows,
)
from paretocosmos.problems.tables.public import (
    TABLES,
    TableName,
    load_frame,
    read_embedded,
    read_raw,
)
from paretocosmos.problems.tables.table import MAX_CATEGORIES, MISSING, Table
from paretocosmos.problems.tables.targets import DECISION, Answer, Task

__all__ = [
    "DECISION",
    "MAX_CATEGORIES",
    "MISSING",
    "TABLES",
    "TABLE_ENDINGS",
    "Answer",
    "Codes",
    "Grouping",
    "SmallGroups",
    "Table",
    "TableName",
    "TableProblem",
    "TabularProblem",
    "Task",
    "as_pandas",
    "build_table",
    "check_file",
    "encode_labels",
    "format_label",
    "is_categorical",
    "label_rows",
    "load_frame",
    "read_csv",
    "read_embedded",
    "read_raw",
    "read_table",
    "to_frame",
    "to_numbers",
]
