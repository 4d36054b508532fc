"""Problems whose rows are people, firms or loans: a table's columns, as a network reads them."""

from paretocosmos.problems.tables.columns import (
    as_pandas,
    encode_labels,
    format_label,
    is_categorical,
    read_columns,
    to_frame,
    to_numbers,
)
from paretocosmos.problems.tables.files import (
    TABLE_ENDINGS,
    read_chunks,
    read_csv,
    read_table,
    write_chunks,
)
from paretocosmos.problems.tables.groups import Codes, Grouping, GroupUse, check_group_use
from paretocosmos.problems.tables.problem import TabularProblem, label_rows
from paretocosmos.problems.tables.public import (
    TableName,
    adult,
    compas,
    default_credit,
    read_embedded,
    table,
)
from paretocosmos.problems.tables.rows import (
    add_group,
    check_compared_rows,
    drop_identifiers,
    find_identifiers,
    group_targets,
    split_rows,
    split_strata,
)
from paretocosmos.problems.tables.table import (
    BASE_SCORE,
    MAX_CATEGORIES,
    MISSING,
    Table,
    compute_moments,
)
from paretocosmos.problems.tables.targets import (
    DECISION,
    Answer,
    build_decision_metrics,
    build_gap,
    build_loss,
    build_objectives,
    compute_shares,
)
