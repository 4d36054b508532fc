"""What a client sends becomes rows: checked one by one, before they meet those of others."""

from abc import ABC, abstractmethod
from typing import final

import numpy as np
import numpy.typing as npt

from paretocosmos.serving._refusal import refuse

__all__ = ["NumberRows", "Numbers", "Rows", "check_count"]

Numbers = npt.NDArray[np.float64]


class Rows(ABC):
    """How the `inputs` of a request become rows ``[N, ...]``, and rows what a network takes."""

    @abstractmethod
    def read(self, inputs: object, *, most: int) -> tuple[Numbers, list[str]]:
        """Rows and warnings; whatever is wrong with the inputs is refused.

        Args:
            inputs: of the request's JSON.
            most: rows that are allowed.
        """

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
        self.shape = shape

    def read(self, inputs: object, *, most: int) -> tuple[Numbers, list[str]]:
        wanted = "x".join(map(str, self.shape))
        try:
            # objects first: numpy would read text and truth values as numbers
            kept = np.array(inputs, dtype=object)
            plain = {type(value) for value in kept.ravel()} <= {int, float}
            rows = kept.astype(np.float64) if plain else None
        except (OverflowError, ValueError):
            rows = None
        if rows is None or not np.isfinite(rows).all():
            refuse(f"`inputs` are nested lists of finite numbers, {wanted} for a row")
        if rows.shape == self.shape:
            rows = rows[None]
        if rows.shape[1:] != self.shape or not len(rows):
            found = "x".join(map(str, rows.shape[1:])) or ("no row" if rows.ndim else "a number")
            refuse(f"a row of `inputs` has the shape {wanted}, found {found}")
        check_count(len(rows), most)
        return rows, []

    def features(self, rows: Numbers) -> npt.NDArray[np.float32]:
        with np.errstate(over="ignore"):
            return rows.astype(np.float32)


def check_count(rows: int, most: int) -> None:
    """Refuse more rows than a request may have."""
    if rows > most:
        refuse(f"a request has at most {most:,} rows, found {rows:,}: send several", status=413)
