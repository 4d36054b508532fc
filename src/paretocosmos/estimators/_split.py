"""Which rows train and which validate."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from paretocosmos.errors import ConfigurationError, DataError
from paretocosmos.estimators._inputs import Floats
from paretocosmos.objectives import GroupObjective
from paretocosmos.problems.tables import Codes, encode_labels, is_categorical, to_numbers

__all__ = ["SMALL", "alike", "check_parts", "check_rates", "split_rows"]

# Fewer rows than this are not split: the few that could be spared would say little of a front.
SMALL = 100


def split_rows(strata: Codes, share: float, seed: int) -> tuple[Codes, Codes]:
    """Rows to train on and rows to validate on, each stratum in both where it has two rows.

    Args:
        strata: each row's, such as its class and group.
        share: of the rows that validate.
        seed: of the draw.
    """
    if not 0 < share < 1:
        raise ConfigurationError(
            f"`validation_fraction` must lie between 0 and 1, found {share}: 0.15 is usual"
        )
    draw = np.random.default_rng(seed)
    if len(strata) < SMALL:
        every = np.arange(len(strata))
        return every, every
    if np.unique(strata).size > len(strata) // 2:  # hardly any has two rows
        strata = np.zeros_like(strata)
    train, val = [], []
    for stratum in np.unique(strata):
        rows = draw.permutation(np.flatnonzero(strata == stratum))
        count = int(np.clip(round(share * len(rows)), len(rows) > 1, max(len(rows) - 1, 0)))
        val.append(rows[:count])
        train.append(rows[count:])
    return np.sort(np.concatenate(train)), np.sort(np.concatenate(val))


def alike(
    frame: pd.DataFrame, targets: list[npt.NDArray[Any]], weight: Floats | None
) -> tuple[Codes, Floats]:
    """One row of each kind, in an order of their own, and how much all of its kind count together.

    So a weight of 2 is the same as a row given twice, and the order of rows does not matter.

    Args:
        frame: the features.
        targets: everything else by which rows differ.
        weight: how much each row counts.
    """
    columns = [
        encode_labels(frame[name])[0]
        if is_categorical(frame[name])
        else np.unique(to_numbers(frame[name]), return_inverse=True)[1]
        for name in frame.columns
    ]
    columns += [np.unique(target, return_inverse=True)[1] for target in targets]
    _, rows, kind = np.unique(
        np.stack(columns, axis=1), axis=0, return_index=True, return_inverse=True
    )
    return rows, np.bincount(kind.ravel(), weight, minlength=len(rows)).astype(np.float64)


def check_parts(
    codes: Codes, called: Sequence[object], parts: tuple[Codes, Codes], what: str
) -> None:
    """Refuse a class or group of which only one of the parts has rows.

    Args:
        codes: each row's, numbered from 0.
        called: what the numbers stand for.
        parts: the rows that train and those that validate.
        what: they are, in a word.
    """
    for rows in parts:
        found = np.bincount(codes[rows], minlength=len(called))
        if not found.all():
            raise DataError(
                f"every {what} needs rows for training and for validation, found too few of "
                f"`{called[int(found.argmin())]}`: add some, leave it out, or merge it with another"
            )


def check_rates(
    classes: Codes,
    groups: Codes,
    called: Sequence[str],
    parts: tuple[Codes, Codes],
    gap: GroupObjective,
) -> None:
    """Refuse groups that have none of the rows which an objective compares.

    Args:
        classes: each row's; of two the second is positive, of several each once.
        groups: each row's.
        called: what the groups are called.
        parts: the rows that train and those that validate.
        gap: the objective that compares them.
    """
    count = int(classes.max()) + 1
    others = ~np.eye(count, dtype=bool)
    for rows, kind in itertools.product(parts, [one for one in gap.over if one != "all"]):
        there = np.zeros((len(called), count), dtype=bool)
        there[groups[rows], classes[rows]] = True
        there = there @ others if kind == "negatives" else there
        enough = there[:, 1:] if count == 2 else there
        if not enough.all(axis=0).any():
            what = f"{kind.removesuffix('s')} rows"
            if count > 2:
                what = "rows of a class that the others have, too"
            raise DataError(
                f"`{gap.name}` needs {what} in every group, for training and for validation, found "
                f"too few of `{called[int(enough.sum(axis=1).argmin())]}`: merge small "
                'groups, add rows, or use fairness="demographic_parity"'
            )
