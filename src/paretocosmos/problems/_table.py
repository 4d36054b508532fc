"""The fitted preprocessing of a table: one-hot, fill, standardise."""

import warnings
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
import numpy.typing as npt

from paretocosmos.errors import DataError, unknown
from paretocosmos.problems._frames import is_categorical, labelled, named, numbers_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["MISSING", "Table"]

MISSING = "(missing)"
"""The category of a missing value, and the name of the flag beside a filled number."""

# A text column with more values than this is a name, an address or a row number: one-hot it would
# be wider than the rest of the table together and say nothing about the next row.
MAX_CATEGORIES = 1000

Moments = tuple[float, float]


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
    def fit(cls, frame: "pd.DataFrame", *, categorical: Collection[str] | None = None) -> "Table":
        """Learn fills, categories, means and deviations.

        Args:
            frame: the fitting rows, features only.
            categorical: columns to read as categories although they hold numbers.

        Returns:
            The fitted table; the frame is not kept.
        """
        frame = named(frame)
        for name in categorical or ():
            if name not in frame.columns:
                raise unknown("categorical column", name, frame.columns)
        if not frame.shape[0] or not frame.shape[1]:
            raise DataError(
                "a table is fitted on at least one row and one column, found "
                f"{frame.shape[0]} and {frame.shape[1]}"
            )
        fills: dict[str, float] = {}
        values: list[Moments] = []
        flags: dict[str, Moments] = {}
        groups: dict[str, tuple[str, ...]] = {}
        shares: list[Moments] = []
        for name in frame.columns:
            if name in (categorical or ()) or is_categorical(frame[name]):
                groups[name], moments = _fit_categories(frame[name])
                shares += moments
            else:
                fills[name], moment, missing = _fit_numbers(frame[name])
                values.append(moment)
                if missing:
                    flags[name] = _share(missing)
        every = [*values, *flags.values(), *shares]
        return cls(
            numeric=fills,
            flagged=tuple(flags),
            categorical=groups,
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
        frame = named(frame)
        absent = [name for name in self.columns if name not in frame.columns]
        if absent:
            raise DataError(
                "the table lacks columns it was fitted with: "
                + ", ".join(f"`{name}`" for name in absent)
            )
        mean, scale = np.array(self.mean), np.array(self.scale)
        out = np.empty((len(frame), len(mean)), dtype=np.float32)
        flag = len(self.numeric)
        for at, (name, fill) in enumerate(self.numeric.items()):
            values = numbers_of(frame[name])
            missing = np.isnan(values)
            out[:, at] = (np.where(missing, fill, values) - mean[at]) / scale[at]
            if name in self.flagged:
                out[:, flag] = (missing - mean[flag]) / scale[flag]
                flag += 1
        start, rows = flag, np.arange(len(frame))
        for name, categories in self.categorical.items():
            stop = start + len(categories)
            out[:, start:stop] = -mean[start:stop] / scale[start:stop]
            codes = _known(frame[name], categories)
            hit = codes >= 0
            at_one = (1 - mean[start:stop]) / scale[start:stop]
            out[rows[hit], start + codes[hit]] = at_one[codes[hit]]
            start = stop
        return out

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, numbers and text, ready for JSON."""
        return {
            "numeric": dict(self.numeric),
            "flagged": list(self.flagged),
            "categorical": {name: list(every) for name, every in self.categorical.items()},
            "mean": list(self.mean),
            "scale": list(self.scale),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "Table":
        """The inverse of `to_dict`; the numbers come back bit for bit."""
        try:
            table = cls(
                numeric={str(name): float(fill) for name, fill in content["numeric"].items()},
                flagged=tuple(map(str, content["flagged"])),
                categorical={
                    str(name): tuple(map(str, every))
                    for name, every in content["categorical"].items()
                },
                mean=tuple(map(float, content["mean"])),
                scale=tuple(map(float, content["scale"])),
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise DataError(
                f"this is not a table ({error!r}); a table has the keys numeric, flagged, "
                "categorical, mean and scale"
            ) from error
        wide = len(table.features)
        if not len(table.mean) == len(table.scale) == wide or 0 in table.scale:
            raise DataError(
                f"a table has a `mean` and a `scale` other than 0 for each of its {wide} features, "
                f"found {len(table.mean)} and {len(table.scale)}: the file is damaged"
            )
        return table


def _share(part: float) -> Moments:
    """Mean and deviation of a 0/1 feature that is 1 in a share of the rows."""
    return part, float(np.sqrt(part * (1 - part))) or 1.0


def _fit_numbers(series: "pd.Series[Any]") -> tuple[float, Moments, float]:
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


def _fit_categories(series: "pd.Series[Any]") -> tuple[tuple[str, ...], list[Moments]]:
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
    return tuple(labels), [_share(float(share)) for share in counts / len(series)]


def _known(series: "pd.Series[Any]", categories: Iterable[str]) -> npt.NDArray[np.int64]:
    """Positions in `categories`, -1 for a value that is not among them."""
    codes, labels = labelled(series)
    labels.append(MISSING)  # which the code -1 stands for
    position = {label: index for index, label in enumerate(categories)}
    at = np.array([position.get(label, -1) for label in labels], dtype=np.int64)[codes]
    if (at < 0).any():
        lost = sorted({labels[code] for code in np.unique(codes[at < 0])})
        few = ", ".join(f"`{label}`" for label in lost[:3]) + ", ..." * (len(lost) > 3)
        warnings.warn(
            f"the column `{series.name}` has values that the fitting rows did not have: {few}; "
            "they count as none of the known ones",
            UserWarning,
            stacklevel=3,
        )
    return at
