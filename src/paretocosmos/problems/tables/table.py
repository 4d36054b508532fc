"""The fitted preprocessing of a table: fill, one-hot encode, standardise."""

import warnings
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
import numpy.typing as npt

from paretocosmos.errors import DataError, DataWarning, check_choice
from paretocosmos.io.files import to_json_value
from paretocosmos.problems.tables.columns import (
    encode_labels,
    format_label,
    is_categorical,
    to_frame,
    to_numbers,
)

if TYPE_CHECKING:
    import pandas as pd

MISSING = "(missing)"
"""The category of a missing value, and the name of the flag beside a filled number."""
BASE_SCORE = "score of base"
"""The column, or the beginning of the names of those, with the scores of an estimator's `base`."""

# A text column with more values than this is a name, an address or a row number: one-hot it would
# be wider than the rest of the table together and say nothing about the next row.
MAX_CATEGORIES = 1000

# A number that float32 moves by more than this share of its column's deviation is warned about: a
# prediction may move as far.
MAX_ROUNDING = 1e-4

# Rows that become features at once: a block of them stays in the processor's cache.
CHUNK = 8192

Moments = tuple[float, float]
"""A mean and a deviation."""
Weights = npt.NDArray[np.float64] | None
"""How much each row counts; all the same if `None`."""


def compute_moments(values: npt.NDArray[np.float64], weight: Weights = None) -> Moments:
    """Return the mean and the deviation of a column; infinite if the numbers are too large."""
    with np.errstate(over="ignore", invalid="ignore"):
        # the population deviation, divided by n, as scikit-learn's StandardScaler has it
        mean = float(np.average(values, weights=weight))
        return mean, float(np.sqrt(np.average((values - mean) ** 2, weights=weight)))


def _flag_moments(share: float) -> Moments:
    """Return the mean and the deviation of a 0/1 feature that is 1 in a share of the rows."""
    # a constant feature has no deviation; 1 leaves it 0 after standardising
    return share, float(np.sqrt(share * (1 - share))) or 1.0


def _compute_median(values: npt.NDArray[np.float64], weight: Weights) -> float:
    """Return the value with half of the weight on either side, or the middle of two such."""
    if weight is None:
        return float(np.median(values))
    order = values.argsort(kind="stable")
    below = weight[order].cumsum()
    # from both sides: where half of the weight ends between two values, their middle counts
    ends = (below.searchsorted(below[-1] / 2, side=side) for side in ("left", "right"))
    low, high = (float(values[order[min(int(end), len(values) - 1)]]) for end in ends)
    return (low + high) / 2


def _fit_numbers(series: "pd.Series[Any]", weight: Weights) -> tuple[float, Moments, float]:
    """Return the median, the moments once filled with it, and the share that was missing."""
    values = to_numbers(series)
    missing = np.isnan(values)
    present_weight = None if weight is None else weight[~missing]
    # an empty column has no median; `fit` warned of it
    fill = 0.0 if missing.all() else _compute_median(values[~missing], present_weight)
    # moments of the filled column, since `transform` fills it too
    values = np.where(missing, fill, values)
    # compared, not computed: the deviation of a constant such as 0.1 rounds to 1e-17, not to 0
    constant = values.min() == values.max()
    mean, deviation = compute_moments(values, weight)
    if not np.isfinite([mean, 1.0 if constant else deviation]).all():
        raise DataError(
            f"the column `{series.name}` has numbers too large to standardise, up to "
            f"{np.abs(values).max():g}: divide it, take its logarithm, or drop it"
        )
    # a deviation of 0: so close together that the square of their distance underflows
    moments = (fill, 1.0) if constant else (mean, deviation or 1.0)
    return fill, moments, float(np.average(missing, weights=weight))


def _fit_categories(
    series: "pd.Series[Any]", weight: Weights
) -> tuple[tuple[str, ...], list[Moments]]:
    """Return the categories and the moments of their 0/1 features."""
    codes, labels = encode_labels(series)
    # the table may have this very text as a category
    if MISSING not in labels and (codes < 0).any():
        labels.append(MISSING)
    if len(labels) > MAX_CATEGORIES:
        raise DataError(
            f"a column can have at most {MAX_CATEGORIES:,} categories, found {len(labels):,} "
            f"in `{series.name}`: leave it out with `drop`, or merge its values into fewer"
        )
    codes = np.where(codes < 0, labels.index(MISSING) if MISSING in labels else 0, codes)
    counts = np.bincount(codes, weight, minlength=len(labels))
    return tuple(labels), [_flag_moments(float(share)) for share in counts / counts.sum()]


@final
@dataclass(frozen=True)
class Table:
    """The fitted preprocessing of a table, in plain numbers and text so that it fits into JSON.

    Numeric columns: missing and infinite values become the median of the fitting rows, with a 0/1
    feature beside it where the fitting rows had any. Categorical columns (text, categories, truth
    values): one 0/1 feature per category, none left out. Then every feature is standardised with
    the mean and the population standard deviation of the fitting rows.

    Attributes:
        numeric: the numeric columns and the value that fills a gap.
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
        rows: npt.NDArray[np.int64] | None = None,
        categorical: Collection[str] | None = None,
        weight: Weights = None,
    ) -> "Table":
        """Learn fills, categories, means and deviations.

        Args:
            frame: the features of all rows.
            rows: the positions of the fitting rows; all rows if `None`.
            categorical: columns to read as categories although they hold numbers.
            weight: how much each row counts, above 0; all the same if `None`.

        Returns:
            The fitted table; the frame is not kept.
        """
        frame = to_frame(frame)
        for name in categorical or ():
            check_choice("categorical column", name, frame.columns)
        if not frame.shape[0] or not frame.shape[1]:
            raise DataError(
                "a table needs at least one row and one column, found "
                f"{frame.shape[0]} and {frame.shape[1]}"
            )
        # features come as numbers, flags, categories, whatever the order of the columns
        fills: dict[str, float] = {}
        values: list[Moments] = []
        flags: dict[str, Moments] = {}
        categories: dict[str, tuple[str, ...]] = {}
        shares: list[Moments] = []
        empty: list[str] = []
        for name in frame.columns:
            # column by column: the rows of all of them may not fit into memory
            series = frame[name] if rows is None else frame[name].iloc[rows]
            if series.isna().all():
                empty.append(f"`{name}`")
            if name in (categorical or ()) or is_categorical(series):
                categories[name], moments = _fit_categories(series, weight)
                shares += moments
            else:
                fills[name], moment, missing = _fit_numbers(series, weight)
                values.append(moment)
                # that a number was missing may say something by itself
                if missing:
                    flags[name] = _flag_moments(missing)
        if empty:
            more = f" and {len(empty) - 5:,} more columns" if len(empty) > 5 else ""
            warnings.warn(
                f"{', '.join(empty[:5])}{more} must have a value in some row to learn from, found "
                "none in the rows to train on: fill them in, or leave them out with `drop`",
                DataWarning,
                stacklevel=2,
            )
        means, scales = zip(*values, *flags.values(), *shares, strict=True)
        return cls(fills, tuple(flags), categories, means, scales)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns a frame must have."""
        return (*self.numeric, *self.categorical)

    @property
    def text(self) -> list[str]:
        """The columns whose categories are neither numbers nor truth values."""
        return [name for name, labels in self.categorical.items() if not all(map(_is_bare, labels))]

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the features: numbers, "was missing" flags, categories."""
        return (
            *self.numeric,
            *(f"{name}={MISSING}" for name in self.flagged),
            *(f"{name}={label}" for name, labels in self.categorical.items() for label in labels),
        )

    def transform(self, frame: "pd.DataFrame") -> npt.NDArray[np.float32]:
        """Return the features of a frame's rows.

        Args:
            frame: has at least `columns`; further ones are ignored. A category that the fitting
                rows did not have belongs to none of the known ones, and is warned about.

        Returns:
            Float32 ``[rows, features]``.
        """
        return self.standardise(self._read_numbers(frame))

    def standardise(self, numbers: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
        """Return the features of rows that are numbers already, ``[rows, columns]``.

        Args:
            numbers: a number per column, NaN where missing; categories by their index in
                `categorical`, below 0 where they are unknown.

        Returns:
            Float32 ``[rows, features]``.
        """
        # float64 until here: in float32, large numbers close to each other would become the same
        out = np.empty((len(numbers), len(self.mean)), dtype=np.float32)
        for start in range(0, len(numbers), CHUNK):
            rows = slice(start, start + CHUNK)
            self._write_features(out[rows], numbers[rows])
        return out

    def _write_features(
        self, out: npt.NDArray[np.float32], numbers: npt.NDArray[np.float64]
    ) -> None:
        mean, scale, count = np.array(self.mean), np.array(self.scale), len(self.numeric)
        # the standardised values of a 0/1 feature: most are 0, so they are written first
        ones, zeros = ((bit - mean) / scale for bit in (1, 0))
        out[:] = zeros
        missing = np.isnan(numbers[:, :count])
        with np.errstate(over="ignore"):  # beyond float32 is infinite
            filled = np.where(missing, list(self.numeric.values()), numbers[:, :count])
            out[:, :count] = (filled - mean[:count]) / scale[:count]
        names = list(self.numeric)
        for flag, name in enumerate(self.flagged, count):
            out[missing[:, names.index(name)], flag] = ones[flag]
        start = count + len(self.flagged)
        for column, categories in enumerate(self.categorical.values(), count):
            # an unknown category has a code below 0: all features of its column stay those of a 0
            codes = numbers[:, column].astype(np.int64)
            rows = np.flatnonzero(codes >= 0)
            out[rows, start + codes[rows]] = ones[start + codes[rows]]
            start += len(categories)

    def _read_numbers(self, frame: "pd.DataFrame") -> npt.NDArray[np.float64]:
        """Return a frame's rows as numbers, in the order of `columns`."""
        frame = to_frame(frame)
        absent = [f"`{name}`" for name in self.columns if name not in frame.columns]
        if absent:
            raise DataError(f"the table lacks columns that it was fitted with: {', '.join(absent)}")
        out = np.empty((len(frame), len(self.columns)))
        for index, name in enumerate(self.numeric):
            out[:, index] = to_numbers(frame[name])
        for index, (name, categories) in enumerate(self.categorical.items(), len(self.numeric)):
            out[:, index] = _index_categories(frame[name], categories)
        return out

    def encode(self, frame: "pd.DataFrame") -> npt.NDArray[np.float32]:
        """Return the inputs of an exported model: one number per column, nothing filled.

        Args:
            frame: has at least `columns`; further ones are ignored. Numbers that float32 does not
                hold closely, and categories that the fitting rows did not have, are warned about.

        Returns:
            Float32 ``[rows, columns]``: numbers as they are, NaN where missing; categories by
            their index in `categorical`, -1 where they are unknown.

        >>> import pandas as pd
        >>> table = Table.fit(pd.DataFrame({"age": [20, 40], "work": ["State", "Private"]}))
        >>> table.encode(pd.DataFrame({"work": ["State", "Private"], "age": [30, None]}))
        array([[30.,  1.],
               [nan,  0.]], dtype=float32)
        """
        numbers = self._read_numbers(frame)
        largest = float(np.finfo(np.float32).max)
        # those too large for float32 become its largest, not missing
        out = np.clip(numbers, -largest, largest).astype(np.float32)
        count = len(self.numeric)
        with np.errstate(over="ignore"):
            moved = np.abs(out - numbers)[:, :count] / self.scale[:count]
        most_moved = np.nan_to_num(moved).max(axis=0, initial=0)
        for name, most in zip(self.numeric, most_moved, strict=True):
            if most > MAX_ROUNDING:
                warnings.warn(
                    f"the column `{name}` has numbers that float32 rounds by up to {most:.2g} of "
                    "their standard deviation: subtract a constant from it before training",
                    UserWarning,
                    stacklevel=2,
                )
        return out

    def agrees_with(self, other: "Table | None") -> bool:
        """Return True if another table was fitted on the same columns of the same rows.

        Means and deviations may differ in their last digits, as two machines round them.

        Args:
            other: a table, or `None`, which agrees with none.
        """
        if other is None:
            return False
        same_columns = (list(self.numeric), self.flagged, dict(self.categorical)) == (
            list(other.numeric),
            other.flagged,
            dict(other.categorical),
        )
        ours, theirs = ((*t.numeric.values(), *t.mean, *t.scale) for t in (self, other))
        return same_columns and bool(np.allclose(ours, theirs, rtol=1e-9, atol=1e-12))

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists, numbers and text, ready for JSON."""
        content: dict[str, Any] = to_json_value(vars(self), repr)
        return content

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "Table":
        """Return the table that `to_dict` described, bit for bit."""
        from paretocosmos.io.schema.models import TableFile, check_part

        check_part(TableFile, content, "table")
        return cls(
            numeric={name: float(fill) for name, fill in content["numeric"].items()},
            flagged=tuple(content["flagged"]),
            categorical={name: tuple(labels) for name, labels in content["categorical"].items()},
            mean=tuple(map(float, content["mean"])),
            scale=tuple(map(float, content["scale"])),
        )


def _is_bare(label: str) -> bool:
    """Return True for a category that pandas may read as a number or a truth value."""
    try:
        return label in ("True", "False", MISSING) or format_label(float(label)) == label
    except ValueError:
        return False


def _index_categories(series: "pd.Series[Any]", categories: Iterable[str]) -> npt.NDArray[np.int64]:
    """Return every row's index in `categories`, -1 with a warning for a value not among them."""
    codes, labels = encode_labels(series)
    labels.append(MISSING)  # the label of the code -1
    position = {label: index for index, label in enumerate(categories)}
    lookup = np.array([position.get(label, -1) for label in labels], dtype=np.int64)
    indices = lookup[codes]
    if (indices < 0).any():
        unseen = sorted({labels[code] for code in np.unique(codes[indices < 0])})
        quoted = ", ".join(f"`{label}`" for label in unseen[:3]) + ", ..." * (len(unseen) > 3)
        warnings.warn(
            f"the column `{series.name}` has values that were not in the training rows: {quoted}; "
            "they are treated as none of the known ones",
            UserWarning,
            stacklevel=4,
        )
    return indices
