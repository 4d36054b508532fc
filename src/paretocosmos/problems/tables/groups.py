"""Sensitive groups: those of one column, of cut numbers, or of several columns together."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np
import numpy.typing as npt

from paretocosmos.errors import ConfigurationError, DataError, DataWarning, unknown
from paretocosmos.problems.tables.cells import encode_labels, to_numbers

if TYPE_CHECKING:
    import pandas as pd

# More groups than this is a number or a name, not a sensitive attribute.
MAX_GROUPS = 50
AND = " & "

Codes = npt.NDArray[np.int64]


def split_cut(asked: str, known: Sequence[str]) -> tuple[str, str]:
    """The column that is asked for, and how it is to be cut: `age:5` is `age` cut by `5`.

    >>> split_cut("age:5", ["age"]), split_cut("age:5", ["age:5"])
    (('age', '5'), ('age:5', ''))
    """
    if asked in known or ":" not in asked:
        return asked, ""
    name, _, cut = asked.rpartition(":")
    return name, cut


@dataclass(frozen=True)
class Attribute:
    """One sensitive column.

    Attributes:
        name: of the column.
        labels: what its groups are called.
        edges: where a number is cut; empty for categories.
    """

    name: str
    labels: tuple[str, ...]
    edges: tuple[float, ...] = ()

    def codes(self, series: "pd.Series[Any]") -> Codes:
        """Every row's group, -1 where it is none of the known."""
        if self.edges:
            values = to_numbers(series)
            return np.where(np.isnan(values), -1, np.digitize(values, self.edges))
        codes, labels = encode_labels(series)
        places = {label: place for place, label in enumerate(self.labels)}
        lookup = np.array([*(places.get(label, -1) for label in labels), -1], dtype=np.int64)
        return lookup[codes]


@final
@dataclass(frozen=True)
class Grouping:
    """Which group a row belongs to, by its sensitive columns.

    Attributes:
        attributes: the columns.
        names: what the groups are called.
        cells: the combinations of the columns' groups that there are, by their numbers.
        places: of each combination, the group it belongs to.

    >>> import pandas as pd
    >>> people = pd.DataFrame({"sex": ["f", "m", "f"], "age": [20, 30, 70]})
    >>> Grouping.fit(people, ["sex", "age:40/"]).names
    ('f & < 40', 'f & >= 40', 'm & < 40')
    """

    attributes: tuple[Attribute, ...]
    names: tuple[str, ...]
    cells: tuple[tuple[int, ...], ...]
    places: tuple[int, ...]

    @classmethod
    def fit(cls, frame: "pd.DataFrame", asked: Sequence[str]) -> "Grouping":
        """The groups of a table.

        Args:
            frame: has the columns, known in every row.
            asked: the columns; one of numbers may be cut, into five groups of about equal size by
                ``age:5``, or at given values by ``age:30/60``; ``age:40/`` cuts at one value.
        """
        attributes = []
        for one in asked:
            name, cut = split_cut(one, list(frame.columns))
            attributes.append(_cut(frame[name], cut) if cut else _categories(frame[name]))
        codes = np.stack([one.codes(frame[one.name]) for one in attributes], axis=1)
        cells = [tuple(cell) for cell in np.unique(codes, axis=0).tolist()]
        if len(cells) > MAX_GROUPS:
            every = AND.join(f"`{one.name}`" for one in attributes)
            raise DataError(
                f"{every} can have at most {MAX_GROUPS} groups together, found {len(cells):,}: use "
                "fewer columns, or cut numbers into fewer groups"
            )
        called = (
            AND.join(one.labels[at] for one, at in zip(attributes, cell, strict=True))
            for cell in cells
        )
        return cls(tuple(attributes), tuple(called), tuple(cells), tuple(range(len(cells))))

    @property
    def called(self) -> str:
        """The columns' names."""
        return AND.join(one.name for one in self.attributes)

    def codes(self, frame: "pd.DataFrame") -> Codes:
        """Every row's group, -1 where it belongs to none."""
        every = np.stack([one.codes(frame[one.name]) for one in self.attributes], axis=1)
        found = dict(zip(self.cells, self.places, strict=True))
        cells, which = np.unique(every, axis=0, return_inverse=True)
        places = [found.get(tuple(cell), -1) for cell in cells.tolist()]
        return np.array(places, dtype=np.int64)[which.reshape(-1)]

    def codes_by_attribute(self, frame: "pd.DataFrame") -> dict[str, Codes]:
        """Return every row's group by each column alone, as targets; empty if there is only one."""
        several = self.attributes if len(self.attributes) > 1 else ()
        return {f"sensitive_{one.name}": one.codes(frame[one.name]) for one in several}

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and text, ready for JSON."""
        return {
            "attributes": [
                {"name": one.name, "labels": list(one.labels), "edges": list(one.edges)}
                for one in self.attributes
            ],
            "names": list(self.names),
            "cells": [list(cell) for cell in self.cells],
            "places": list(self.places),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "Grouping":
        """The inverse of `to_dict`."""
        try:
            attributes = tuple(
                Attribute(str(one["name"]), tuple(one["labels"]), tuple(map(float, one["edges"])))
                for one in content["attributes"]
            )
            cells = tuple(tuple(map(int, cell)) for cell in content["cells"])
            names, places = tuple(map(str, content["names"])), tuple(map(int, content["places"]))
            found = cls(attributes, names, cells, places)
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"the run's record of its groups is damaged ({error!r})") from error
        if len(cells) != len(places) or not {*places} <= {*range(len(names))}:
            raise DataError("the run's record of its groups is damaged (cells without a place)")
        return found


def _categories(series: "pd.Series[Any]") -> Attribute:
    _, labels = encode_labels(series, own_order=True)
    if len(labels) < 2:
        raise DataError(
            f"the sensitive column `{series.name}` must have at least two groups, found only "
            f"`{labels[0]}`: use another column"
        )
    if len(labels) > MAX_GROUPS:
        raise DataError(
            f"the sensitive column `{series.name}` can have at most {MAX_GROUPS} groups, found "
            f"{len(labels):,}: cut a number into groups of equal size, as `{series.name}:4`, or at "
            f"given values, as `{series.name}:30/60`"
        )
    return Attribute(str(series.name), tuple(labels))


def _cut(series: "pd.Series[Any]", cut: str) -> Attribute:
    """A column of numbers, cut."""
    counted = "/" not in cut
    try:
        parts = [float(part) for part in cut.split("/") if part.strip()]
        if not parts or (counted and not (parts[0] >= 2 and parts[0].is_integer())):
            raise ValueError
    except ValueError as error:
        raise ConfigurationError(
            f"`{series.name}` must be cut into groups of equal size, as `{series.name}:4`, or at "
            f"given values, as `{series.name}:30/60`, found `{series.name}:{cut}`"
        ) from error
    edges: tuple[float, ...] = ()
    asked = parts[0] if counted else len(parts) + 1
    if asked <= MAX_GROUPS:
        values = to_numbers(series)
        if counted:
            shares = np.arange(1, asked) / asked
            parts = np.quantile(values, shares, method="higher").tolist()
        low, high = values.min(), values.max()
        edges = tuple(sorted({part for part in parts if low < part <= high}))
    if not edges:
        found = "more" if asked > MAX_GROUPS else "1"
        raise DataError(
            f"the sensitive column `{series.name}`, cut by `{cut[:40]}`, must have 2 to "
            f"{MAX_GROUPS} groups, found {found}: cut it elsewhere"
        )
    middle = [f"{low:g} to < {high:g}" for low, high in pairwise(edges)]
    labels = (f"< {edges[0]:g}", *middle, f">= {edges[-1]:g}")
    return Attribute(str(series.name), labels, edges)


SmallGroups = Literal["keep", "pool", "refuse"]
SMALL_GROUPS: tuple[SmallGroups, ...] = ("keep", "pool", "refuse")
# Rows of a group to train on below which its rates are mostly noise.
SMALL = 30


def pool_small_groups(
    grouping: Grouping,
    codes: Codes,
    label: npt.NDArray[np.float32],
    rows: Mapping[str, Codes],
    *,
    how: SmallGroups,
    positives: bool,
) -> tuple[Grouping, Codes]:
    """Keep, pool or refuse groups that are too small; warn of what is done.

    Args:
        grouping: the groups.
        codes: every row's.
        label: every row's, 1 for the positive class.
        rows: those of every split.
        how: what to do with groups of fewer than 30 rows to train on.
        positives: whether a group also needs positive rows in every split.
    """
    if how not in SMALL_GROUPS:
        raise unknown("`small_groups`", str(how), SMALL_GROUPS)
    count = len(grouping.names)
    train = np.bincount(codes[rows["train"]], minlength=count)
    found = np.stack(
        [np.bincount(codes[at][label[at] > 0], minlength=count) for at in rows.values()]
    )
    fewest = found.min(axis=0) if positives else np.ones(count, dtype=np.int64)
    small = [at for at in range(count) if train[at] < SMALL or fewest[at] == 0]
    if not small:
        return grouping, codes
    described = _describe(grouping, small, train, fewest)
    if how == "refuse":
        wanted = " and positive ones in every split" if positives else ""
        raise DataError(
            f"every group needs at least {SMALL} training rows{wanted}, found "
            f'{described}: pool them with `small_groups="pool"`, or make the groups larger'
        ).with_hint({"small_groups": "pool"})
    if how == "keep":
        if any(train[at] < SMALL for at in small):
            warnings.warn(
                f"groups are small, so gaps between them are mostly noise: {described}; pool them "
                'with `small_groups="pool"`',
                DataWarning,
                stacklevel=3,
            )
        return grouping, codes
    pool = _grow_pool(small, train, found, positives)
    if count - len(pool) < 1:
        raise DataError(
            f"groups are too small to compare even when pooled, found {described}: add rows, or "
            "use another sensitive column"
        )
    merged = _merge(grouping, pool)
    warnings.warn(
        f"small groups are pooled as `{merged.names[-1]}`: "
        f"{_describe(grouping, pool, train, fewest)}",
        DataWarning,
        stacklevel=3,
    )
    return merged, np.array(merged.places)[codes]


def _grow_pool(small: list[int], train: Codes, found: Codes, positives: bool) -> list[int]:
    """The small groups, and the next larger ones until together they are large enough."""
    pool = list(small)
    for at in [int(at) for at in train.argsort(kind="stable") if at not in small]:
        enough = train[pool].sum() >= SMALL and len(pool) > 1
        if enough and (not positives or found[:, pool].sum(axis=1).all()):
            break
        pool.append(at)
    return sorted(pool)


def _merge(grouping: Grouping, pool: list[int]) -> Grouping:
    kept = [at for at in range(len(grouping.names)) if at not in pool]
    names = [grouping.names[at] for at in kept]
    other = "other" if "other" not in names else "(other)"
    places = {at: place for place, at in enumerate(kept)}
    return replace(
        grouping,
        names=(*names, other),
        places=tuple(places.get(at, len(kept)) for at in grouping.places),
    )


def _describe(grouping: Grouping, some: list[int], train: Codes, fewest: Codes) -> str:
    lacking = ("", ", a split without positives")
    few = [
        f"`{grouping.names[at]}` ({train[at]:,} rows{lacking[int(fewest[at] == 0)]})"
        for at in some[:5]
    ]
    return ", ".join(few) + f" and {len(some) - 5} more" * (len(some) > 5)
