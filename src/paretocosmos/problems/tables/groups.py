"""Sensitive groups: those of one column, of cut numbers, or of several columns together."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, final, get_args

import numpy as np
import numpy.typing as npt

from paretocosmos.errors import ConfigurationError, DataError, DataWarning, check_choice
from paretocosmos.problems.tables.columns import encode_labels, to_numbers

if TYPE_CHECKING:
    import pandas as pd

# More groups than this is a number or a name, not a sensitive attribute.
MAX_GROUPS = 50
# Rows of a group to train on below which its rates are mostly noise.
SMALL = 30
# Joins names of columns and of groups, also in stored runs, so it must not change.
AND = " & "

Codes = npt.NDArray[np.int64]
SmallGroups = Literal["keep", "pool", "refuse"]
SMALL_GROUPS: tuple[SmallGroups, ...] = get_args(SmallGroups)
GroupUse = Literal["estimate", "input", "none"]
"""How answers may depend on a person's group: by an estimate from the other columns, by the group
itself, or only through what the network learned."""
GROUP_USES: tuple[GroupUse, ...] = get_args(GroupUse)


def check_group_use(use: str, *, has_groups: bool = True) -> GroupUse:
    """Return a use of the group; raise for one that does not exist, or where no group is known."""
    checked = check_choice("`group`", use, GROUP_USES)
    if checked != "estimate" and not has_groups:
        raise ConfigurationError(
            f'`group` is "{use}", but no groups are given: pass `sensitive`, or leave `group` out'
        )
    return checked


def split_cut(column: str, columns: Sequence[str]) -> tuple[str, str]:
    """Split a sensitive column into its name and its cut: `age:5` is `age` cut by `5`.

    >>> split_cut("age:5", ["age"]), split_cut("age:5", ["age:5"])
    (('age', '5'), ('age:5', ''))
    """
    if column in columns or ":" not in column:
        return column, ""
    # at the last colon: the name of a column may have some of its own
    name, _, cut = column.rpartition(":")
    return name, cut


@dataclass(frozen=True)
class Attribute:
    """One sensitive column.

    Attributes:
        name: of the column.
        labels: the names of its groups.
        edges: the values at which a number is cut; empty for categories.
    """

    name: str
    labels: tuple[str, ...]
    edges: tuple[float, ...] = ()

    @classmethod
    def fit(cls, series: "pd.Series[Any]", cut: str) -> "Attribute":
        """Return the groups of a column: its categories, or the ranges that `cut` makes."""
        if cut:
            edges = _find_edges(series, cut)
            ranges = [f"{low:g} to < {high:g}" for low, high in pairwise(edges)]
            labels = (f"< {edges[0]:g}", *ranges, f">= {edges[-1]:g}")
            return cls(str(series.name), labels, edges)
        # the order of pandas categories decides which group has the number 0
        _, categories = encode_labels(series, own_order=True)
        if len(categories) < 2:
            raise DataError(
                f"the sensitive column `{series.name}` must have at least two groups, found only "
                f"`{categories[0]}`: use another column"
            )
        if len(categories) > MAX_GROUPS:
            raise DataError(
                f"the sensitive column `{series.name}` can have at most {MAX_GROUPS} groups, found "
                f"{len(categories):,}: cut a number into groups of equal size, as "
                f"`{series.name}:4`, or at given values, as `{series.name}:30/60`"
            )
        return cls(str(series.name), tuple(categories))

    def codes(self, frame: "pd.DataFrame") -> Codes:
        """Return every row's group, -1 where it is none of those that were fitted."""
        if self.edges:
            values = to_numbers(frame[self.name])
            # without `where`, `digitize` would put NaN above the last edge
            return np.where(np.isnan(values), -1, np.digitize(values, self.edges))
        codes, labels = encode_labels(frame[self.name])
        positions = {label: index for index, label in enumerate(self.labels)}
        # the last entry answers the code -1 of a missing value
        lookup = np.array([*(positions.get(label, -1) for label in labels), -1], dtype=np.int64)
        return lookup[codes]


def _find_edges(series: "pd.Series[Any]", cut: str) -> tuple[float, ...]:
    """Return the values at which a column of numbers is cut, given a count or the values."""
    into_quantiles = "/" not in cut
    try:
        values = [float(text) for text in cut.split("/") if text.strip()]
        if not values or (into_quantiles and not (values[0] >= 2 and values[0].is_integer())):
            raise ValueError
    except ValueError as error:
        raise ConfigurationError(
            f"`{series.name}` must be cut into groups of equal size, as `{series.name}:4`, or at "
            f"given values, as `{series.name}:30/60`, found `{series.name}:{cut}`"
        ) from error
    edges: tuple[float, ...] = ()
    groups = values[0] if into_quantiles else len(values) + 1
    # a huge count is refused below, before so many quantiles are computed
    if groups <= MAX_GROUPS:
        numbers = to_numbers(series)
        if into_quantiles:
            # `higher` cuts at values that occur: whole numbers where a column has only those
            shares = np.arange(1, groups) / groups
            values = np.quantile(numbers, shares, method="higher").tolist()
        low, high = numbers.min(), numbers.max()
        # an edge outside the data would make an empty group; equal quantiles are one edge
        edges = tuple(sorted({value for value in values if low < value <= high}))
    if not edges:
        count = "more" if groups > MAX_GROUPS else "1"
        raise DataError(
            f"the sensitive column `{series.name}`, cut by `{cut[:40]}`, must have 2 to "
            f"{MAX_GROUPS} groups, found {count}: cut it elsewhere"
        )
    return edges


@final
@dataclass(frozen=True)
class Grouping:
    """Which group a row belongs to, by its sensitive columns.

    Attributes:
        attributes: the columns.
        names: the names of the groups.
        cells: the combinations of the columns' groups that occur, by their numbers.
        places: the group that each combination belongs to.

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
    def fit(cls, frame: "pd.DataFrame", columns: Sequence[str]) -> "Grouping":
        """Return the groups of a table.

        Args:
            frame: has the columns, known in every row.
            columns: the sensitive ones; numbers may be cut, into five groups of about equal size by
                ``age:5``, or at given values by ``age:30/60``; ``age:40/`` cuts at one value.
        """
        cuts = [split_cut(column, list(frame.columns)) for column in columns]
        attributes = tuple(Attribute.fit(frame[name], cut) for name, cut in cuts)
        # only combinations that occur: of many columns, most do not
        cells, _ = _find_cells(attributes, frame)
        if len(cells) > MAX_GROUPS:
            named = AND.join(f"`{attribute.name}`" for attribute in attributes)
            raise DataError(
                f"{named} can have at most {MAX_GROUPS} groups together, found {len(cells):,}: use "
                "fewer columns, or cut numbers into fewer groups"
            )
        names = tuple(
            AND.join(a.labels[code] for a, code in zip(attributes, cell, strict=True))
            for cell in cells
        )
        return cls(attributes, names, tuple(cells), tuple(range(len(cells))))

    @property
    def title(self) -> str:
        """The names of the columns, joined."""
        return AND.join(attribute.name for attribute in self.attributes)

    def codes(self, frame: "pd.DataFrame") -> Codes:
        """Return every row's group, -1 where it belongs to none."""
        cells, index = _find_cells(self.attributes, frame)
        group_of = dict(zip(self.cells, self.places, strict=True))
        # a combination that the training did not have belongs to no group
        return np.array([group_of.get(cell, -1) for cell in cells], dtype=np.int64)[index]

    def add_to(self, frame: "pd.DataFrame", codes: Codes) -> "pd.DataFrame":
        """Return rows with a column of their groups' names, missing where the number is -1."""
        names = np.array([*self.names, None], dtype=object)
        return frame.assign(**{self.title: names[codes]})

    def codes_by_attribute(self, frame: "pd.DataFrame") -> dict[str, Codes]:
        """Return every row's group by each column alone, as targets; empty if there is only one."""
        several = self.attributes if len(self.attributes) > 1 else ()
        return {f"sensitive_{attribute.name}": attribute.codes(frame) for attribute in several}

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists and text, ready for JSON."""
        return {
            "attributes": [
                {"name": a.name, "labels": list(a.labels), "edges": list(a.edges)}
                for a in self.attributes
            ],
            "names": list(self.names),
            "cells": [list(cell) for cell in self.cells],
            "places": list(self.places),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "Grouping":
        """Return the grouping that `to_dict` described."""
        attributes = tuple(
            Attribute(a["name"], tuple(a["labels"]), tuple(a["edges"]))
            for a in content["attributes"]
        )
        cells = tuple(map(tuple, content["cells"]))
        return cls(attributes, tuple(content["names"]), cells, tuple(content["places"]))


def _find_cells(
    attributes: Sequence[Attribute], frame: "pd.DataFrame"
) -> tuple[list[tuple[int, ...]], Codes]:
    """Return the combinations of groups that occur, sorted, and the index of every row's."""
    import pandas as pd

    # by hashing: sorting the rows, as `np.unique` does, takes ten times as long
    codes = pd.DataFrame({place: a.codes(frame) for place, a in enumerate(attributes)})
    combinations = codes.groupby([*codes])
    cells = codes.drop_duplicates().sort_values([*codes])
    return [*cells.itertuples(index=False, name=None)], combinations.ngroup().to_numpy().astype(
        np.int64
    )


def pool_small_groups(
    grouping: Grouping,
    codes: Codes,
    label: npt.NDArray[np.float32],
    rows: Mapping[str, Codes],
    *,
    how: SmallGroups,
    positives: bool,
) -> tuple[Grouping, Codes]:
    """Keep, pool or refuse groups that are too small, with a warning.

    Args:
        grouping: the groups.
        codes: every row's.
        label: every row's, 1 for the positive class.
        rows: those of every split.
        how: what to do with groups of fewer than 30 rows to train on.
        positives: whether a group also needs positive rows in every split.
    """
    check_choice("`small_groups`", how, SMALL_GROUPS)
    count = len(grouping.names)
    # by the train rows, from which a gap has to be learned
    sizes = np.bincount(codes[rows["train"]], minlength=count)
    counts = np.stack(
        [np.bincount(codes[split][label[split] > 0], minlength=count) for split in rows.values()]
    )
    # the fewest positive rows of a group in any split
    fewest = counts.min(axis=0) if positives else np.ones(count, dtype=np.int64)
    small = np.flatnonzero((sizes < SMALL) | (fewest == 0)).tolist()
    if not small:
        return grouping, codes
    described = _describe(grouping, small, sizes, fewest)
    warn = partial(warnings.warn, category=DataWarning, stacklevel=3)
    if how == "refuse":
        wanted = " and positive ones in every split" if positives else ""
        raise DataError(
            f"every group needs at least {SMALL} training rows{wanted}, found "
            f'{described}: pool them with `small_groups="pool"`, or make the groups larger'
        )
    if how == "keep":
        # a group without positives is refused later, where the objective needs some
        if (sizes[small] < SMALL).any():
            # of two groups, none is left to compare a pool with
            remedy = 'pool them with `small_groups="pool"`' if count > 2 else "give more rows"
            warn(f"groups are small, so gaps between them are mostly noise: {described}; {remedy}")
        return grouping, codes
    pool = _grow_pool(small, sizes, counts, positives)
    # with every group in the pool there is nothing to compare it with
    if count - len(pool) < 1:
        raise DataError(
            f"groups are too small to compare even when pooled, found {described}: add rows, or "
            "use another sensitive column"
        )
    rest = [group for group in range(count) if group not in pool]
    names = [grouping.names[group] for group in rest]
    renumbered = {group: index for index, group in enumerate(rest)}
    merged = replace(
        grouping,
        # the pool comes last; a table may have a group of this name
        names=(*names, "other" if "other" not in names else "(other)"),
        places=tuple(renumbered.get(group, len(rest)) for group in grouping.places),
    )
    described = _describe(grouping, pool, sizes, fewest)
    warn(f"small groups are pooled as `{merged.names[-1]}`: {described}")
    return merged, np.array(merged.places)[codes]


def _grow_pool(small: list[int], sizes: Codes, counts: Codes, positives: bool) -> list[int]:
    """Return the small groups, and the next larger ones until together they are large enough."""
    pool = list(small)
    # from the smallest up, so that the large groups keep their names
    for group in [group for group in sizes.argsort(kind="stable").tolist() if group not in small]:
        # a pool of one group would only take away its name
        enough = sizes[pool].sum() >= SMALL and len(pool) > 1
        if enough and (not positives or counts[:, pool].sum(axis=1).all()):
            break
        pool.append(group)
    return sorted(pool)


def _describe(grouping: Grouping, groups: list[int], sizes: Codes, fewest: Codes) -> str:
    """Name up to five groups, each with its size and whether it lacks positives."""
    described = [
        f"`{grouping.names[group]}` ({sizes[group]:,} rows"
        f"{', a split without positives' * int(fewest[group] == 0)})"
        for group in groups[:5]
    ]
    return ", ".join(described) + f" and {len(groups) - 5} more" * (len(groups) > 5)
