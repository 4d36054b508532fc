"""Groups with too few rows: kept, pooled or refused, and said."""

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from paretocosmos.errors import DataError, DataWarning, unknown
from paretocosmos.problems.tables.groups import Codes, Grouping

__all__ = ["SmallGroups", "pooled"]

SmallGroups = Literal["keep", "pool", "refuse"]
SMALL_GROUPS: tuple[SmallGroups, ...] = ("keep", "pool", "refuse")
# Rows of a group to train on below which its rates are mostly noise.
SMALL = 30


def pooled(
    grouping: Grouping,
    codes: Codes,
    label: npt.NDArray[np.float32],
    rows: Mapping[str, Codes],
    *,
    how: SmallGroups,
    positives: bool,
) -> tuple[Grouping, Codes]:
    """The groups with those that are too small kept, pooled or refused; whichever it is, said.

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
    said = _said(grouping, small, train, fewest)
    if how == "refuse":
        raise DataError(
            f"every group needs at least {SMALL} training rows{_and_positives(positives)}, found "
            f'{said}: pool them with `small_groups="pool"`, or make the groups larger'
        ).by({"small_groups": "pool"})
    if how == "keep":
        if any(train[at] < SMALL for at in small):
            warnings.warn(
                f"groups are small, so gaps between them are mostly noise: {said}; pool them "
                'with `small_groups="pool"`',
                DataWarning,
                stacklevel=3,
            )
        return grouping, codes
    pool = _grown(small, train, found, positives)
    if count - len(pool) < 1:
        raise DataError(
            f"groups are too small to compare even when pooled, found {said}: add rows, or use "
            "another sensitive column"
        )
    merged = _merged(grouping, pool)
    warnings.warn(
        f"small groups are pooled as `{merged.names[-1]}`: {_said(grouping, pool, train, fewest)}",
        DataWarning,
        stacklevel=3,
    )
    return merged, np.array(merged.places)[codes]


def _grown(small: list[int], train: Codes, found: Codes, positives: bool) -> list[int]:
    """The small groups, and the next larger ones until together they are large enough."""
    pool = list(small)
    for at in [int(at) for at in train.argsort(kind="stable") if at not in small]:
        enough = train[pool].sum() >= SMALL and len(pool) > 1
        if enough and (not positives or found[:, pool].sum(axis=1).all()):
            break
        pool.append(at)
    return sorted(pool)


def _merged(grouping: Grouping, pool: list[int]) -> Grouping:
    kept = [at for at in range(len(grouping.names)) if at not in pool]
    names = [grouping.names[at] for at in kept]
    other = "other" if "other" not in names else "(other)"
    places = {at: place for place, at in enumerate(kept)}
    return replace(
        grouping,
        names=(*names, other),
        places=tuple(places.get(at, len(kept)) for at in grouping.places),
    )


def _said(grouping: Grouping, some: list[int], train: Codes, fewest: Codes) -> str:
    lacking = ("", ", a split without positives")
    few = [
        f"`{grouping.names[at]}` ({train[at]:,} rows{lacking[int(fewest[at] == 0)]})"
        for at in some[:5]
    ]
    return ", ".join(few) + f" and {len(some) - 5} more" * (len(some) > 5)


def _and_positives(needed: bool) -> str:
    return " and positive ones in every split" if needed else ""
