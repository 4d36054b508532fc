"""Where the pieces of a piecewise-linear encoding meet, found from the rows that train."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from paretocosmos.errors import need
from paretocosmos.types import Targets

__all__ = ["Knots", "find_knots"]

Knots = tuple[tuple[float, ...], ...]
Numbers = npt.NDArray[np.float64]

# Knots of a column at most, those of all columns together, and rows for each.
MOST, TOGETHER, ROWS = 128, 1536, 40
# Rows a tree is grown on: more would move its thresholds by little.
SEEN = 50_000
# A split of the tree must explain this many times what it would of noise, and leave so many rows.
EXPLAINS, LEAF = 10.0, 16
# A value that this share of the rows has is told apart from its neighbours.
HEAVY = 0.01
QUANTILES = 8
# Knots are so many standard deviations apart at least: closer ones would magnify the rounding of
# float32, of which there are 1e-7.
APART = 1e-3
# Whole numbers with more values than this are no classes.
CLASSES = 50


def find_knots(inputs: Tensor, targets: Targets) -> Knots:
    """The knots of every column ``[B, columns]``; none for one of two values, such as 0 and 1.

    A column of few values has a knot at each: so every value may mean something of its own. Else
    a decision tree of the targets says where the column matters, and there is a knot on either side
    of its splits, so that the encoding can jump there; values that many rows have are set apart
    from their neighbours; and quantiles fill what is left.

    Args:
        inputs: the rows that train.
        targets: theirs; groups of people and weights are left out.

    Returns:
        Increasing numbers for each column, those of the last columns left out where empty.

    >>> import torch
    >>> find_knots(torch.arange(400.0)[:, None] // 100, {})
    ((0.0, 1.0, 2.0, 3.0),)
    """
    whole = inputs.flatten(1).numpy()
    period = _period(whole)  # small tables may be repeated in what counts as an epoch
    some = slice(0, period, -(-period // SEEN))
    rows = whole[some].astype(np.float64)
    wanted = _matrix({name: target[some] for name, target in targets.items()}, len(rows))
    varied = [_varies(column) for column in rows.T]
    most = min(MOST, TOGETHER // max(1, sum(varied)), len(rows) // ROWS)
    found = [
        _column(column, wanted, most) if more and most > 2 else ()
        for column, more in zip(rows.T, varied, strict=True)
    ]
    while found and not found[-1]:
        found.pop()
    return tuple(found)


def _period(rows: npt.NDArray[Any]) -> int:
    """After how many rows a table begins again: as many as there are, if it is not repeated."""
    count = len(rows)
    for period in range(1, count // 2 + 1):
        if count % period or (rows[period] != rows[0]).any():
            continue
        if (rows[period:] == rows[:-period]).all():
            return period
    return count


def _varies(column: Numbers) -> bool:
    """Whether a column has more than two values."""
    other = column[column != column[0]]
    return bool((other != other[:1]).any())


def _column(column: Numbers, wanted: Numbers, most: int) -> tuple[float, ...]:
    kept = np.isfinite(column)
    column, wanted = column[kept], wanted[kept]
    values, counts = np.unique(column, return_counts=True)
    if len(values) < 2:
        return ()
    chosen = values if len(values) <= most else _chosen(column, wanted, values, counts, most)
    apart, last = APART * column.std(), -np.inf
    spaced = []
    for knot in chosen.tolist():
        if knot - last > apart:
            spaced.append(knot)
            last = knot
    return tuple(spaced) if len(spaced) > 1 else ()


def _chosen(
    column: Numbers, wanted: Numbers, values: Numbers, counts: npt.NDArray[np.int64], most: int
) -> Numbers:
    """Some of a column's values, what matters most first until there are enough."""
    last = len(values) - 1
    heavy = np.flatnonzero(counts >= HEAVY * len(column))
    heavy = heavy[np.argsort(-counts[heavy], kind="stable")]
    above = np.searchsorted(values, _splits(column, wanted, most // 2))
    quantiles = np.quantile(column, np.linspace(0, 1, QUANTILES + 1), method="nearest")
    places = [
        np.array([0, last]),
        *(np.array([at - 1, at, at + 1]) for at in heavy),
        *(np.array([at - 1, at]) for at in above),
        np.searchsorted(values, quantiles),
    ]
    every = dict.fromkeys(np.clip(np.concatenate(places), 0, last).tolist())
    return values[sorted(list(every)[:most])]


def _splits(column: Numbers, wanted: Numbers, leaves: int) -> Numbers:
    """The thresholds of a decision tree of the targets, the first split first."""
    if not wanted.shape[1] or leaves < 2:
        return np.empty(0)
    need("sklearn", "tabular", "fitting `tabular` to rows")
    from sklearn.tree import DecisionTreeRegressor

    spread = wanted.var(axis=0).mean()
    tree = DecisionTreeRegressor(
        max_leaf_nodes=leaves,
        min_samples_leaf=LEAF,
        min_impurity_decrease=EXPLAINS * spread / len(column),
        random_state=0,
    )
    grown = tree.fit(column[:, None], wanted).tree_
    thresholds: Numbers = grown.threshold[grown.feature >= 0]
    return thresholds


def _matrix(targets: Mapping[str, Tensor], rows: int) -> Numbers:
    """What the trees predict: numbers standardised, classes one column each."""
    parts = [np.empty((rows, 0))]
    for name, target in targets.items():
        if name in ("sensitive", "weight") or target.shape[:1] != (rows,):
            continue
        values = target.reshape(rows, -1).double().numpy()
        if not target.is_floating_point() and values.shape[1] == 1:
            classes = np.unique(values)
            if 2 < len(classes) <= CLASSES:
                values = (values == classes).astype(np.float64)
        spread = values.std(axis=0)
        parts.append((values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0))
    return np.concatenate(parts, axis=1)
