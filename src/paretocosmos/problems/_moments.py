"""What a table learns of a column: what a missing value becomes, its categories, its moments."""

from typing import TYPE_CHECKING, Any

import numpy as np

from paretocosmos.errors import DataError
from paretocosmos.problems._frames import labelled, numbers_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["MAX_CATEGORIES", "MISSING", "Moments", "fit_categories", "fit_numbers", "share"]

MISSING = "(missing)"
"""The category of a missing value, and the name of the flag beside a filled number."""

# A text column with more values than this is a name, an address or a row number: one-hot it would
# be wider than the rest of the table together and say nothing about the next row.
MAX_CATEGORIES = 1000

Moments = tuple[float, float]
"""A mean and a deviation, which is never 0."""


def share(part: float) -> Moments:
    """Mean and deviation of a 0/1 feature that is 1 in a share of the rows."""
    return part, float(np.sqrt(part * (1 - part))) or 1.0


def fit_numbers(series: "pd.Series[Any]") -> tuple[float, Moments, float]:
    """The median, the moments once filled with it, and the share that was missing."""
    values = numbers_of(series)
    missing = np.isnan(values)
    fill = 0.0 if missing.all() else float(np.median(values[~missing]))
    values = np.where(missing, fill, values)
    # compared, not computed: the deviation of a constant such as 0.1 rounds to 1e-17, not to 0
    constant = values.min() == values.max()
    with np.errstate(over="ignore", invalid="ignore"):
        mean, scale = float(values.mean()), 1.0 if constant else float(values.std())
    if not np.isfinite([mean, scale]).all():
        raise DataError(
            f"the column `{series.name}` has numbers too large to standardise, up to "
            f"{np.abs(values).max():g}: divide it, take its logarithm, or drop it"
        )
    # so close together that the square of their distance underflows
    return fill, (fill if constant else mean, scale or 1.0), float(missing.mean())


def fit_categories(series: "pd.Series[Any]") -> tuple[tuple[str, ...], list[Moments]]:
    """The categories and their moments."""
    codes, labels = labelled(series)
    if MISSING not in labels and (codes < 0).any():
        labels.append(MISSING)
    if len(labels) > MAX_CATEGORIES:
        raise DataError(
            f"a column of categories has at most {MAX_CATEGORIES:,} of them, found {len(labels):,} "
            f"in `{series.name}`: leave it out with `drop`, or put its values into groups"
        )
    codes = np.where(codes < 0, labels.index(MISSING) if MISSING in labels else 0, codes)
    counts = np.bincount(codes, minlength=len(labels))
    return tuple(labels), [share(float(part)) for part in counts / len(series)]
