"""Problems whose samples are read while they are used."""

from paretocosmos.problems.streams.fields import (
    BatchChecks,
    Fields,
    Keys,
    LabelRange,
    check_labels,
    get_label_range,
)
from paretocosmos.problems.streams.reading import (
    explain_loader_error,
    join_batches,
    reports_dead_worker,
)
