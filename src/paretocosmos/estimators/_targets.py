"""What an estimator predicts: classes or numbers, one of them or several."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import assert_all_finite, check_array, column_or_1d
from torch import Tensor

from paretocosmos.errors import DataError
from paretocosmos.estimators._inputs import Floats, ours
from paretocosmos.problems.tables import Answer, format_label

__all__ = [
    "LABEL",
    "Classes",
    "Column",
    "Numbers",
    "classes_of",
    "columns_of",
    "name_of",
    "numbers_in",
    "standardised",
]

LABEL = "label"
RESERVED = ("sensitive", "weight")
Column = npt.NDArray[Any]


@dataclass(frozen=True)
class Classes:
    """A target that is one of some classes.

    Attributes:
        name: of the target; of the head, where there are several.
        classes: what the numbers 0 to K - 1 stand for.
        shares: of the rows that train, which are of each class; empty until they are known.
    """

    name: str
    classes: Column
    shares: tuple[float, ...] = ()

    def among(self, codes: Column, weight: Floats | None) -> "Classes":
        """The same, with the shares of these rows."""
        found = np.bincount(codes, weight, minlength=len(self.classes))
        return replace(self, shares=tuple((found / found.sum()).tolist()))

    @property
    def answer(self) -> Answer:
        """The same, as a run says it."""
        names = tuple(format_label(one) for one in self.classes.tolist())
        return Answer("binary" if len(names) == 2 else "classes", names)

    @property
    def width(self) -> int:
        """Numbers a network gives for it: one logit for two classes, else one for each."""
        return 1 if len(self.classes) == 2 else len(self.classes)

    def probabilities(self, logits: Tensor) -> Floats:
        """``[n, width]`` to ``[n, K]``."""
        if self.width > 1:
            return logits.softmax(dim=1).numpy()
        positive = torch.sigmoid(logits)
        return torch.cat([torch.sigmoid(-logits), positive], dim=1).numpy()

    def predicted(self, logits: Tensor, threshold: float = 0.5) -> Column:
        """``[n, width]`` to the classes ``[n]``; of two, the second above a probability."""
        offset = math.log(threshold / (1 - threshold))
        codes = logits.argmax(dim=1) if self.width > 1 else (logits[:, 0] > offset).long()
        chosen: Column = self.classes[codes.numpy()]
        return chosen


@dataclass(frozen=True)
class Numbers:
    """A target that is a number, standardised for the network.

    Attributes:
        name: of the target; of the head, where there are several.
        mean: of the rows of `fit`.
        scale: likewise, never 0.
    """

    name: str
    mean: float
    scale: float
    width: int = field(default=1, init=False)

    @property
    def answer(self) -> Answer:
        """The same, as a run says it."""
        return Answer("number", mean=self.mean, scale=self.scale)

    def predicted(self, outputs: Tensor) -> Floats:
        """``[n, 1]`` to numbers ``[n]`` in the target's unit."""
        return outputs[:, 0].numpy() * self.scale + self.mean


def name_of(y: Any) -> str:
    """What a single target is called: as its column, or `label`."""
    columns = getattr(y, "columns", None)
    found = getattr(y, "name", None) if columns is None else columns[0]
    return LABEL if found is None or found == "" else str(found)


def plain_of(y: Any) -> Any:
    """A nullable column in which nothing is missing as numpy has it, so that 1 stays 1."""
    if isinstance(y, pd.DataFrame):
        return y.assign(**{name: plain_of(y[name]) for name in y.columns})
    kind = getattr(getattr(y, "dtype", None), "numpy_dtype", None)
    if not isinstance(y, pd.Series) or kind is None or y.hasnans:
        return y
    return pd.Series(y.to_numpy(dtype=kind), y.index, name=y.name)


def columns_of(y: Any) -> tuple[list[str], list[Column]]:
    """The targets' names and values, column by column; a single one is called `label`."""
    if y is None:
        raise DataError(
            "requires y to be passed, but the target y is None: pass the values to predict"
        )
    y = plain_of(y)
    with ours():
        whole = check_array(
            y, ensure_2d=False, allow_nd=False, dtype=None, ensure_all_finite=False, input_name="y"
        )
        if whole.ndim < 2 or whole.shape[1] == 1:
            return [LABEL], [column_or_1d(whole, warn=True)]
    count = whole.shape[1]
    columns = [whole[:, k] for k in range(count)]
    called = [f"target_{k}" for k in range(count)]
    if isinstance(y, pd.DataFrame):  # whose columns may be of several types
        called = [str(name) for name in y.columns]
        columns = [y.iloc[:, k].to_numpy() for k in range(count)]
    wrong = [name for name in called if name in RESERVED or called.count(name) > 1]
    if wrong:
        raise DataError(
            f"target names must be unique and not {' or '.join(RESERVED)}, found "
            f"`{wrong[0]}`: rename that column of `y`"
        )
    return called, columns


def classes_of(names: Sequence[str], columns: Sequence[Column]) -> tuple[list[Classes], list[Any]]:
    """Targets that are classes, and every row's class, numbered."""
    targets, codes = [], []
    for name, column in zip(names, columns, strict=True):
        unknown = pd.isna(column)
        if column.dtype.kind == "f":
            unknown |= np.isinf(column)
        missing = int(unknown.sum())
        if missing:
            raise DataError(
                f"the target must be known in every row, found {missing:,} missing or infinite of "
                f"{len(column):,}: leave those rows out"
            )
        try:
            check_classification_targets(column)
        except ValueError as error:
            raise DataError(
                "Unknown label type: a classifier predicts classes, found "
                f"{type_of_target(column)} values such as {column[0]!r}: use ParetoRegressor for a "
                "number"
            ) from error
        with ours("the classes of a target are all text or all numbers"):
            classes, numbered = np.unique(column, return_inverse=True)
        if len(classes) < 2:
            raise DataError(
                f"a classifier needs at least two classes, found one class, "
                f"{classes[0]!r}: there is nothing to learn"
            )
        targets.append(Classes(name, classes))
        codes.append(numbered)
    return targets, codes


def numbers_in(columns: Sequence[Column]) -> list[Floats]:
    """Targets that are numbers, checked."""
    found = []
    for column in columns:
        try:
            numbers = np.asarray(column, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise DataError(
                f"a regressor predicts numbers, found values such as {column[0]!r}: use "
                "ParetoClassifier for classes"
            ) from error
        with ours("leave such rows out"):
            assert_all_finite(numbers, input_name="y")
        found.append(numbers)
    return found


def standardised(name: str, numbers: Column, weight: Floats | None) -> Numbers:
    """A target that is a number, with the moments of the rows that train."""
    with np.errstate(over="ignore", invalid="ignore"):
        mean = float(np.average(numbers, weights=weight))
        scale = float(np.sqrt(np.average((numbers - mean) ** 2, weights=weight)))
    if not np.isfinite(scale):
        raise DataError("the target has numbers too large to standardise: divide them first")
    return Numbers(name, mean, scale if numbers.min() < numbers.max() and scale > 0 else 1.0)
