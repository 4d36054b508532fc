"""Targets of the estimators: classes or numbers, read from `y` and from a network's outputs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import assert_all_finite, check_array, column_or_1d
from torch import Tensor

from paretocosmos.errors import DataError
from paretocosmos.estimators.inputs import Column, Floats, translate_errors
from paretocosmos.problems.tables import Answer, compute_moments, compute_shares, format_label

LABEL = "label"
# Names of other columns among a problem's targets.
RESERVED = ("sensitive", "weight")


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

    def with_shares(self, codes: Column, weight: Floats | None) -> "Classes":
        """Return the target with the shares of these rows."""
        return replace(self, shares=compute_shares(codes, len(self.classes), weight))

    @property
    def answer(self) -> Answer:
        """The target as a run describes it."""
        names = tuple(format_label(label) for label in self.classes.tolist())
        return Answer("binary" if len(names) == 2 else "classes", names)

    @property
    def width(self) -> int:
        """Numbers a network gives for it: one logit for two classes, else one for each."""
        return 1 if len(self.classes) == 2 else len(self.classes)

    def compute_probabilities(self, logits: Tensor) -> Floats:
        """Turn logits ``[n, width]`` into probabilities ``[n, K]``."""
        if self.width > 1:
            return logits.softmax(dim=1).numpy()
        # sigmoid(-x), unlike 1 - sigmoid(x), keeps its digits where it is close to 0
        return torch.cat([torch.sigmoid(-logits), torch.sigmoid(logits)], dim=1).numpy()

    def predict(self, logits: Tensor, threshold: float = 0.5) -> Column:
        """Turn logits ``[n, width]`` into classes ``[n]``; of two, by a threshold."""
        # compared as logits: a sigmoid rounds those beyond 37 to 1
        offset = math.log(threshold / (1 - threshold))
        codes = logits.argmax(dim=1) if self.width > 1 else (logits[:, 0] > offset).long()
        classes: Column = self.classes[codes.numpy()]
        return classes


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

    @classmethod
    def fit(cls, name: str, numbers: Column, weight: Floats | None) -> "Numbers":
        """Return a target with the moments of the rows that train."""
        mean, scale = compute_moments(numbers, weight)
        if not np.isfinite(scale):
            raise DataError("the target has numbers too large to standardise: divide them first")
        # equal numbers may have a deviation by rounding alone
        return cls(name, mean, scale if numbers.min() < numbers.max() and scale > 0 else 1.0)

    @property
    def answer(self) -> Answer:
        """The target as a run describes it."""
        return Answer("number", mean=self.mean, scale=self.scale)

    def predict(self, outputs: Tensor) -> Floats:
        """Turn outputs ``[n, 1]`` into numbers ``[n]`` in the target's unit."""
        return outputs[:, 0].numpy() * self.scale + self.mean


Target = Classes | Numbers


def get_target_name(y: Any) -> str:
    """Return the name of a single target: that of its column, or `label`."""
    columns = getattr(y, "columns", None)
    name = getattr(y, "name", None) if columns is None else columns[0]
    return LABEL if name is None or name == "" else str(name)


def _convert_nullable(y: Any) -> Any:
    """Convert nullable columns in which nothing is missing to numpy's types, so that 1 stays 1."""
    if isinstance(y, pd.DataFrame):
        return y.assign(**{name: _convert_nullable(y[name]) for name in y.columns})
    dtype = getattr(getattr(y, "dtype", None), "numpy_dtype", None)
    if not isinstance(y, pd.Series) or dtype is None or y.hasnans:
        return y
    return pd.Series(y.to_numpy(dtype=dtype), y.index, name=y.name)


def split_targets(y: Any) -> tuple[list[str], list[Column]]:
    """Return the targets' names and values, column by column; a single one is called `label`."""
    if y is None:
        # the words that scikit-learn's own checks look for
        raise DataError(
            "requires y to be passed, but the target y is None: pass the values to predict"
        )
    y = _convert_nullable(y)
    with translate_errors():
        array = check_array(
            y, ensure_2d=False, allow_nd=False, dtype=None, ensure_all_finite=False, input_name="y"
        )
        if array.ndim < 2 or array.shape[1] == 1:
            return [LABEL], [column_or_1d(array, warn=True)]
    if isinstance(y, pd.DataFrame):  # whose columns may be of several types
        names = [str(name) for name in y.columns]
        columns = [y.iloc[:, k].to_numpy() for k in range(len(names))]
    else:
        columns = list(array.T)
        names = [f"target_{k}" for k in range(len(columns))]
    wrong = [name for name in names if name in RESERVED or names.count(name) > 1]
    if wrong:
        raise DataError(
            f"target names must be unique and not {' or '.join(RESERVED)}, found "
            f"`{wrong[0]}`: rename that column of `y`"
        )
    return names, columns


def encode_classes(
    names: Sequence[str], columns: Sequence[Column]
) -> tuple[list[Classes], list[Any]]:
    """Return targets that are classes, and every row's class, numbered."""
    targets, codes = [], []
    for name, column in zip(names, columns, strict=True):
        # also `None` and `pd.NA` among objects
        unknown = pd.isna(column)
        if column.dtype.kind == "f":
            unknown |= np.isinf(column)
        if missing := int(unknown.sum()):
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
        with translate_errors("the classes of a target are all text or all numbers"):
            classes, column_codes = np.unique(column, return_inverse=True)
        if len(classes) < 2:
            raise DataError(
                f"a classifier needs at least two classes, found one class, "
                f"{classes[0]!r}: there is nothing to learn"
            )
        targets.append(Classes(name, classes))
        codes.append(column_codes)
    return targets, codes


def check_numbers(column: Column) -> Floats:
    """Return a target as finite numbers."""
    try:
        numbers = np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"a regressor predicts numbers, found values such as {column[0]!r}: use "
            "ParetoClassifier for classes"
        ) from error
    with translate_errors("leave such rows out"):
        assert_all_finite(numbers, input_name="y")
    return numbers


def stack_predictions(columns: list[Column]) -> Column:
    """Return one prediction ``[n]``, or several ``[n, targets]``."""
    return columns[0] if len(columns) == 1 else np.stack(columns, axis=1)
