"""Rows of a request: what they are in JSON, and what a network takes for them."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, final

import numpy as np
import numpy.typing as npt
from pydantic import ConfigDict, Field, create_model

from paretocosmos.io.schema.kinds import Finite
from paretocosmos.problems.tables import MISSING, Table, format_label

__all__ = ["NumberRows", "Numbers", "Rows", "TableRows"]

Numbers = npt.NDArray[np.float64]
# In the columns of a table; true counts as 1.
NUMBER: Any = Finite | bool | None
CATEGORY: Any = str | int | float | bool | None
# Categories of a column that are listed; further ones would make the description unreadable.
LISTED = 20


class Rows(ABC):
    """What rows are in JSON, and how they become rows ``[N, ...]`` and what a network takes.

    Attributes:
        row: the type of one, for pydantic.
        rule: what `inputs` is, in words.
        example: one row.
        columns: of a table.
        categories: of those columns that have some.
    """

    row: Any
    rule: str
    example: object
    columns: tuple[str, ...] = ()
    categories: Mapping[str, Sequence[str]] = MappingProxyType({})

    @abstractmethod
    def is_one(self, inputs: object) -> bool:
        """Whether the inputs of a request are a single row, not a list of them."""

    @abstractmethod
    def numbers(self, rows: Sequence[Any]) -> tuple[Numbers, list[str]]:
        """Rows ``[N, ...]`` of what pydantic has read, and warnings."""

    @abstractmethod
    def features(self, rows: Numbers) -> npt.NDArray[np.float32]:
        """What the network takes for rows of several requests."""


@final
class NumberRows(Rows):
    """Nested lists of numbers: what the network takes.

    Args:
        shape: of one row.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        row: Any = Finite
        example: object = 0.0
        for size in reversed(shape):
            row = Annotated[list[row], Field(min_length=size, max_length=size, fail_fast=True)]
            example = [example] * size
        self.row, self.example, self._axes = row, example, len(shape)
        wanted = "x".join(map(str, shape))
        self.rule = f"{wanted} finite numbers in nested lists, or a list of such rows"

    def is_one(self, inputs: object) -> bool:
        for _ in range(self._axes):
            if not isinstance(inputs, list) or not inputs:
                return False
            inputs = inputs[0]
        return not isinstance(inputs, list)

    def numbers(self, rows: Sequence[Any]) -> tuple[Numbers, list[str]]:
        return np.array(rows, dtype=np.float64), []

    def features(self, rows: Numbers) -> npt.NDArray[np.float32]:
        with np.errstate(over="ignore"):
            return rows.astype(np.float32)


@final
class TableRows(Rows):
    """Objects, column by column, as the rows of a frame: without pandas, slow for a single row.

    A row is one number per column: numbers as they are, NaN where missing; categories by their
    place, -1 where they are none of the known.

    Args:
        table: the fitted preprocessing.
    """

    rule = "an object with the table's columns, or a list of such objects"

    def __init__(self, table: Table) -> None:
        self.columns, self.categories, self._table = table.columns, table.categorical, table
        self._places = {
            name: {label: float(place) for place, label in enumerate(labels)}
            for name, labels in table.categorical.items()
        }
        fields: dict[str, Any] = {}
        for at, name in enumerate(table.columns):  # by their places: one may have any name
            kind, about = NUMBER, None
            if name in table.categorical:
                labels = table.categorical[name]
                known = ", ".join(labels[:LISTED]) + ", ..." * (len(labels) > LISTED)
                kind, about = CATEGORY, f"Known: {known}."
            fields[f"column_{at}"] = (kind, Field(alias=name, description=about))
        self.row = create_model("Row", __config__=ConfigDict(strict=True), **fields)
        some = {name: round(fill, 6) for name, fill in table.numeric.items()}
        self.example = some | {name: labels[0] for name, labels in table.categorical.items()}

    def is_one(self, inputs: object) -> bool:
        return isinstance(inputs, dict)

    def numbers(self, rows: Sequence[Any]) -> tuple[Numbers, list[str]]:
        unseen: dict[str, set[str]] = {}
        first = len(self._table.numeric)
        found: list[list[float | None]] = []
        for row in rows:
            values = list(vars(row).values())
            for at, (name, places) in enumerate(self._places.items(), first):
                value = values[at]
                label = MISSING if value is None else format_label(value)
                values[at] = places.get(label, -1.0)
                if label not in places:
                    unseen.setdefault(name, set()).add(label)
            found.append(values)
        # of which numpy makes NaN where there is None
        return np.array(found, dtype=np.float64), [_warning(*one) for one in unseen.items()]

    def features(self, rows: Numbers) -> npt.NDArray[np.float32]:
        return self._table.standardise(rows)


def _warning(name: str, labels: set[str]) -> str:
    few = ", ".join(f"`{label[:40]}`" for label in sorted(labels)[:3]) + ", ..." * (len(labels) > 3)
    return (
        f"the column `{name}` has values that were not in the training rows: {few}; they are "
        "treated as none of the known ones"
    )
