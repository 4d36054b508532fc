"""What is learnt of a table's columns: fills, categories, means and deviations."""

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from paretocosmos.errors import DataError
from paretocosmos.problems.tables.frames import labelled, numbers_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "MAX_CATEGORIES",
    "MISSING",
    "Moments",
    "Weights",
    "fit_categories",
    "fit_numbers",
    "share_moments",
]

MISSING = "(missing)"
"""The category of a missing value, and the name of the flag beside a filled number."""

# A text column with more values than this is a name, an address or a row number: one-hot it would
# be wider than the rest of the table together and say nothing about the next row.
MAX_CATEGORIES = 1000

Moments = tuple[float, float]
Weights = npt.NDArray[np.float64] | None


def share_moments(part: float) -> Moments:
    """Mean and deviation of a 0/1 feature that is 1 in a share of the rows."""
    return part, float(np.sqrt(part * (1 - part))) or 1.0


def _median(values: npt.NDArray[np.float64], weight: Weights) -> float:
    """The value with half of the weight on either side, or the middle of the two that have it."""
    if weight is None:
        return float(np.median(values))
    order = values.argsort(kind="stable")
    below = weight[order].cumsum()
    ends = (below.searchsorted(below[-1] / 2, side=side) for side in ("left", "right"))
    low, high = (float(values[order[min(int(end), len(values) - 1)]]) for end in ends)
    return (low + high) / 2


def fit_numbers(series: "pd.Series[Any]", weight: Weights) -> tuple[float, Moments, float]:
    """The median, the moments once filled with it, and the share that was missing."""
    values = numbers_of(series)
    missing = np.isnan(values)
    known = None if weight is None else weight[~missing]
    fill = 0.0 if missing.all() else _median(values[~missing], known)
    values = np.where(missing, fill, values)
    # compared, not computed: the deviation of a constant such as 0.1 rounds to 1e-17, not to 0
    constant = values.min() == values.max()
    with np.errstate(over="ignore", invalid="ignore"):
        mean = float(np.average(values, weights=weight))
        spread = float(np.average((values - mean) ** 2, weights=weight))
        scale = 1.0 if constant else float(np.sqrt(spread))
    if not np.isfinite([mean, scale]).all():
        raise DataError(
            f"the column `{series.name}` has numbers too large to standardise, up to "
            f"{np.abs(values).max():g}: divide it, take its logarithm, or drop it"
        )
    # a scale of 0: so close together that the square of their distance underflows
    moments = fill if constant else mean, scale or 1.0
    return fill, moments, float(np.average(missing, weights=weight))


def fit_categories(
    series: "pd.Series[Any]", weight: Weights
) -> tuple[tuple[str, ...], list[Moments]]:
    """The categories and their moments."""
    codes, labels = labelled(series)
    if MISSING not in labels and (codes < 0).any():
        labels.append(MISSING)
    if len(labels) > MAX_CATEGORIES:
        raise DataError(
            f"a column can have at most {MAX_CATEGORIES:,} categories, found {len(labels):,} "
            f"in `{series.name}`: leave it out with `drop`, or merge its values into fewer"
        )
    codes = np.where(codes < 0, labels.index(MISSING) if MISSING in labels else 0, codes)
    counts = np.bincount(codes, weight, minlength=len(labels))
    return tuple(labels), [share_moments(float(share)) for share in counts / counts.sum()]
