"""The fitted preprocessing of a table: one-hot, fill, standardise."""

import warnings
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
import numpy.typing as npt

from paretocosmos.errors import DataError, DataWarning, unknown
from paretocosmos.io.files import json_value
from paretocosmos.problems.tables.cells import (
    encode_labels,
    is_categorical,
    to_float32,
    to_frame,
    to_numbers,
)

if TYPE_CHECKING:
    import pandas as pd

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
    values = to_numbers(series)
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
    codes, labels = encode_labels(series)
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


# Rows that become features at once.
CHUNK = 8192


@final
@dataclass(frozen=True)
class Table:
    """How the columns of a table become features; plain numbers and text, so JSON in and out.

    Numeric columns: missing and infinite values become the median of the fitting rows, with a 0/1
    feature beside it where the fitting rows had any. Categorical columns (text, categories, truth
    values): one 0/1 feature per category, none left out. Then every feature is standardised with
    the mean and the population standard deviation of the fitting rows.

    Attributes:
        numeric: the numeric columns and what a missing value becomes.
        flagged: the numeric columns with a feature that says "was missing".
        categorical: the categorical columns and their categories.
        mean: one per feature.
        scale: one per feature, never 0.

    >>> import pandas as pd
    >>> table = Table.fit(pd.DataFrame({"age": [20, 40], "work": ["State", "Private"]}))
    >>> table.features
    ('age', 'work=Private', 'work=State')
    >>> table.transform(pd.DataFrame({"age": [30], "work": ["State"]}))
    array([[ 0., -1.,  1.]], dtype=float32)
    """

    numeric: Mapping[str, float]
    flagged: tuple[str, ...]
    categorical: Mapping[str, tuple[str, ...]]
    mean: tuple[float, ...]
    scale: tuple[float, ...]

    @classmethod
    def fit(
        cls,
        frame: "pd.DataFrame",
        *,
        categorical: Collection[str] | None = None,
        weight: Weights = None,
    ) -> "Table":
        """Learn fills, categories, means and deviations.

        Args:
            frame: the fitting rows, features only.
            categorical: columns to read as categories although they hold numbers.
            weight: how much each row counts, above 0; all the same if `None`.

        Returns:
            The fitted table; the frame is not kept.
        """
        frame = to_frame(frame)
        for name in categorical or ():
            if name not in frame.columns:
                raise unknown("categorical column", name, frame.columns)
        if not frame.shape[0] or not frame.shape[1]:
            raise DataError(
                "a table needs at least one row and one column, found "
                f"{frame.shape[0]} and {frame.shape[1]}"
            )
        _warn_of_empty_columns(frame)
        fills: dict[str, float] = {}
        values: list[Moments] = []
        flags: dict[str, Moments] = {}
        categories: dict[str, tuple[str, ...]] = {}
        shares: list[Moments] = []
        for name in frame.columns:
            if name in (categorical or ()) or is_categorical(frame[name]):
                categories[name], moments = fit_categories(frame[name], weight)
                shares += moments
            else:
                fills[name], moment, missing = fit_numbers(frame[name], weight)
                values.append(moment)
                if missing:
                    flags[name] = share_moments(missing)
        every = [*values, *flags.values(), *shares]
        return cls(
            numeric=fills,
            flagged=tuple(flags),
            categorical=categories,
            mean=tuple(mean for mean, _ in every),
            scale=tuple(scale for _, scale in every),
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns a frame must have."""
        return (*self.numeric, *self.categorical)

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the features: numbers, "was missing" flags, categories."""
        return (
            *self.numeric,
            *(f"{name}={MISSING}" for name in self.flagged),
            *(f"{name}={value}" for name, every in self.categorical.items() for value in every),
        )

    def transform(self, frame: "pd.DataFrame") -> npt.NDArray[np.float32]:
        """The features of a frame's rows.

        Args:
            frame: has at least `columns`; further ones are ignored. A category that the fitting
                rows did not have belongs to none of the known ones, and is warned about.

        Returns:
            Float32 ``[rows, features]``.
        """
        return self.standardise(self._numbers(frame))

    def standardise(self, numbers: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
        """The features of rows that are numbers already, ``[rows, columns]``.

        Args:
            numbers: a number per column, NaN where missing; categories by their place in
                `categorical`, below 0 where they are none of them.

        Returns:
            Float32 ``[rows, features]``.
        """
        out = np.empty((len(numbers), len(self.mean)), dtype=np.float32)
        for start in range(0, len(numbers), CHUNK):  # what is computed with stays small
            part = slice(start, start + CHUNK)
            self._fill(out[part], numbers[part])
        return out

    def _fill(self, out: npt.NDArray[np.float32], numbers: npt.NDArray[np.float64]) -> None:
        mean, scale, count = np.array(self.mean), np.array(self.scale), len(self.numeric)
        hit, miss = ((bit - mean) / scale for bit in (1, 0))
        out[:] = miss
        given, missing = numbers[:, :count], np.isnan(numbers[:, :count])
        with np.errstate(over="ignore"):  # beyond float32 is infinite
            filled = np.where(missing, list(self.numeric.values()), given)
            out[:, :count] = (filled - mean[:count]) / scale[:count]
        names = list(self.numeric)
        for flag, name in enumerate(self.flagged, count):
            out[missing[:, names.index(name)], flag] = hit[flag]
        start = count + len(self.flagged)
        for column, categories in enumerate(self.categorical.values(), count):
            codes = numbers[:, column].astype(np.int64)
            rows = np.flatnonzero(codes >= 0)
            out[rows, start + codes[rows]] = hit[start + codes[rows]]
            start += len(categories)

    def _numbers(self, frame: "pd.DataFrame") -> npt.NDArray[np.float64]:
        """A frame's rows as numbers, in the order of `columns`."""
        frame = self._with_columns(frame)
        out = np.empty((len(frame), len(self.columns)))
        for at, name in enumerate(self.numeric):
            out[:, at] = to_numbers(frame[name])
        for at, (name, categories) in enumerate(self.categorical.items(), len(self.numeric)):
            out[:, at] = _known(frame[name], categories)
        return out

    def encode(self, frame: "pd.DataFrame") -> npt.NDArray[np.float32]:
        """What an exported model reads of a frame's rows: one number per column, nothing filled.

        Args:
            frame: has at least `columns`; further ones are ignored. Numbers that float32 does not
                hold closely, and categories that the fitting rows did not have, are warned about.

        Returns:
            Float32 ``[rows, columns]``: numbers as they are, NaN where missing; categories by
            their place in `categorical`, -1 where they are none of them.

        >>> import pandas as pd
        >>> table = Table.fit(pd.DataFrame({"age": [20, 40], "work": ["State", "Private"]}))
        >>> table.encode(pd.DataFrame({"work": ["State", "Private"], "age": [30, None]}))
        array([[30.,  1.],
               [nan,  0.]], dtype=float32)
        """
        numbers = self._numbers(frame)
        out = np.empty(numbers.shape, dtype=np.float32)
        for at, name in enumerate(self.numeric):
            out[:, at] = to_float32(name, numbers[:, at], self.scale[at])
        out[:, len(self.numeric) :] = numbers[:, len(self.numeric) :]
        return out

    def _with_columns(self, frame: "pd.DataFrame") -> "pd.DataFrame":
        """The frame with its column names as text; one that lacks a column is refused."""
        frame = to_frame(frame)
        absent = [name for name in self.columns if name not in frame.columns]
        if absent:
            raise DataError(
                "the table lacks columns that it was fitted with: "
                + ", ".join(f"`{name}`" for name in absent)
            )
        return frame

    def agrees_with(self, other: "Table | None") -> bool:
        """Whether another table was fitted on the same columns of the same rows.

        Means and deviations may differ in their last digits, as two machines round them.

        Args:
            other: a table, or `None`, which agrees with none.
        """
        if other is None:
            return False
        same = (list(self.numeric), self.flagged, dict(self.categorical)) == (
            list(other.numeric),
            other.flagged,
            dict(other.categorical),
        )
        one, two = ((*t.numeric.values(), *t.mean, *t.scale) for t in (self, other))
        return same and bool(np.allclose(one, two, rtol=1e-9, atol=1e-12))

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, numbers and text, ready for JSON."""
        content: dict[str, Any] = json_value(vars(self), repr)
        return content

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "Table":
        """The inverse of `to_dict`; the numbers come back bit for bit."""
        from paretocosmos.io.schema.models import check_table

        check_table(content)
        return cls(
            numeric={name: float(fill) for name, fill in content["numeric"].items()},
            flagged=tuple(content["flagged"]),
            categorical={name: tuple(every) for name, every in content["categorical"].items()},
            mean=tuple(map(float, content["mean"])),
            scale=tuple(map(float, content["scale"])),
        )


def _warn_of_empty_columns(frame: "pd.DataFrame") -> None:
    empty = [f"`{name}`" for name in frame.columns if frame[name].isna().all()]
    if empty:
        more = f" and {len(empty) - 5:,} more columns" if len(empty) > 5 else ""
        warnings.warn(
            f"{', '.join(empty[:5])}{more} must have a value in some row to learn from, found none "
            "in the rows to train on: fill them in, or leave them out with `drop`",
            DataWarning,
            stacklevel=3,
        )


def _known(series: "pd.Series[Any]", categories: Iterable[str]) -> npt.NDArray[np.int64]:
    """Positions in `categories`, -1 for a value that is not among them."""
    codes, labels = encode_labels(series)
    labels.append(MISSING)  # the label of the code -1
    position = {label: index for index, label in enumerate(categories)}
    at = np.array([position.get(label, -1) for label in labels], dtype=np.int64)[codes]
    if (at < 0).any():
        lost = sorted({labels[code] for code in np.unique(codes[at < 0])})
        few = ", ".join(f"`{label}`" for label in lost[:3]) + ", ..." * (len(lost) > 3)
        warnings.warn(
            f"the column `{series.name}` has values that were not in the training rows: {few}; "
            "they are treated as none of the known ones",
            UserWarning,
            stacklevel=4,
        )
    return at
