"""The rows of a table, as objects in JSON."""

import math
from collections.abc import Mapping
from typing import Any, final

import numpy as np
import numpy.typing as npt

from paretocosmos.problems.tables.frames import label_of
from paretocosmos.problems.tables.moments import MISSING
from paretocosmos.problems.tables.table import Table
from paretocosmos.serving._refusal import refuse, shown
from paretocosmos.serving._rows import Numbers, Rows, check_count

__all__ = ["TableRows"]

NAN = math.nan


@final
class TableRows(Rows):
    """Objects, column by column, as the rows of a frame: without pandas, slow for a single row.

    A row is one number per column: numbers as they are, NaN where missing; categories by their
    place, -1 where they are none of the known.

    Args:
        table: the fitted preprocessing.
    """

    def __init__(self, table: Table) -> None:
        self.numeric = tuple(table.numeric)
        self.categorical = {
            name: {label: float(place) for place, label in enumerate(labels)}
            for name, labels in table.categorical.items()
        }
        self.columns = table.columns
        self._table = table

    def read(self, inputs: object, *, most: int) -> tuple[Numbers, list[str]]:
        every = [inputs] if isinstance(inputs, Mapping) else inputs
        if not isinstance(every, list) or not every:
            refuse(
                "`inputs` is an object with the table's columns, or a list of such objects, "
                f"found {shown(inputs)}"
            )
        check_count(len(every), most)
        unseen: dict[str, set[str]] = {}
        found = [self._row(row, at, unseen) for at, row in enumerate(every)]
        try:
            rows = np.array(found, dtype=np.float64)
        except OverflowError:  # whole numbers have no end in JSON
            refuse("the numbers of a row fit into float64, found a larger one")
        if np.isinf(rows).any():  # 1e999 is JSON, too
            at, column = (int(place[0]) for place in np.nonzero(np.isinf(rows)))
            refuse(f"row {at} has no finite number in the column `{self.columns[column]}`")
        return rows, [_warning(name, labels) for name, labels in unseen.items()]

    def _row(self, row: object, at: int, unseen: dict[str, set[str]]) -> list[float]:
        if not isinstance(row, Mapping):
            refuse(f"row {at} is an object with the table's columns, found {shown(row)}")
        out: list[float] = []
        try:
            for name in self.numeric:
                value = row[name]
                kind = type(value)
                if kind is float or kind is int:
                    out.append(value)
                elif value is None:
                    out.append(NAN)
                elif kind is bool:
                    out.append(float(value))
                else:
                    refuse(
                        f"row {at} has a number or null in the column `{name}`, found "
                        f"{shown(value)}"
                    )
            for name, places in self.categorical.items():
                value = row[name]
                place = places.get(value) if type(value) is str else None
                if place is None:
                    place = _place(value, at, name, places, unseen)
                out.append(place)
        except KeyError:
            self._lacking(row, at)
        return out

    def _lacking(self, row: Mapping[str, Any], at: int) -> None:
        lacking = [f"`{name}`" for name in self.columns if name not in row]
        others = [shown(name) for name in row if name not in self.columns]
        also = f"; not known here: {', '.join(others[:10])}" if others else ""
        refuse(
            f"row {at} lacks {', '.join(lacking[:20])}{', ...' * (len(lacking) > 20)}: name every "
            f"column, with null where a value is missing{also}"
        )

    def features(self, rows: Numbers) -> npt.NDArray[np.float32]:
        return self._table.standardise(rows)


def _place(
    value: object, at: int, name: str, places: Mapping[str, float], unseen: dict[str, set[str]]
) -> float:
    """The place of a value that is no text known at once."""
    if not isinstance(value, str | int | float | None):
        refuse(f"row {at} has one category or null in the column `{name}`, found {shown(value)}")
    label = MISSING if value is None else label_of(value)
    if label not in places:
        unseen.setdefault(name, set()).add(label)
    return places.get(label, -1.0)


def _warning(name: str, labels: set[str]) -> str:
    few = ", ".join(f"`{label[:40]}`" for label in sorted(labels)[:3]) + ", ..." * (len(labels) > 3)
    return (
        f"the column `{name}` has values that the fitting rows did not have: {few}; they count as "
        "none of the known ones"
    )
