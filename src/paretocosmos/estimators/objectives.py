"""Targets of the estimators, read from `y` and from outputs, and what is traded of them."""

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.utils.validation import check_array, column_or_1d
from torch import Tensor

from paretocosmos.config.plan import keeps_promise
from paretocosmos.errors import ConfigurationError, DataError
from paretocosmos.estimators.inputs import Column, Floats, translate_errors
from paretocosmos.objectives import Objective, decides, logits_of, weighted_mean
from paretocosmos.problems.tables import Answer, compute_moments, compute_shares, format_label
from paretocosmos.types import Metric, Outputs, Targets, map_tensors

OwnObjective = Callable[[Any, Any], Tensor] | Objective
"""An objective of the caller's: a function of outputs and targets that gives one number."""

GivenObjectives = Mapping[str, OwnObjective] | Sequence[Objective]
"""Several of them, by name; or objectives, which have names."""


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


class InUnit(Objective):
    """An objective of standardised numbers, whose score is in the unit of the target.

    Args:
        inner: the objective.
        scale: the target's deviation.
    """

    per_head = False  # it reads what another objective reads

    def __init__(self, inner: Objective, scale: float) -> None:
        super().__init__(name=inner.name, output=inner.output, target=inner.target)
        self.wrapped, self.traceable = inner, keeps_promise(inner)
        self.inner, self.factor = inner, inner.unit(scale)

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        return self.inner.loss(outputs, targets)

    def score(self, outputs: Outputs, targets: Targets) -> Tensor:
        return self.inner.score(outputs, targets) * self.factor

    def moments(self, outputs: Outputs, targets: Targets) -> Tensor | None:
        moments = self.inner.moments(outputs, targets)
        # of sums, of sums of squares, and of counts
        unit = torch.tensor([self.factor, self.factor**2, 1.0], dtype=torch.float64)
        return None if moments is None else moments * unit.to(moments.device)


class _WrappedObjective(Objective):
    """An objective of the caller's, which sees numbers in the targets' unit, ``[B]`` each."""

    per_head = False  # it reads what another objective reads

    def __init__(self, name: str, own: OwnObjective, numbers: Sequence[Numbers]) -> None:
        super().__init__(name=name)
        # it may branch on values in Python, which tracing would freeze
        self.wrapped, self.traceable = own, keeps_promise(own)
        loss, score = (own.loss, own.score) if isinstance(own, Objective) else (own, own)
        self.decides = decides(score)
        self._loss, self._score = (_wrap_metric(f, name, numbers) for f in (loss, score))

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        return self._loss(outputs, targets)

    def score(self, outputs: Outputs, targets: Targets) -> Tensor:
        return self._score(outputs, targets)


def wrap_objectives(
    objectives: GivenObjectives, numbers: Sequence[Numbers]
) -> tuple[Objective, ...]:
    """Return the caller's objectives as a training takes them.

    Args:
        objectives: the estimator's argument.
        numbers: the targets of a regressor; none for a classifier.
    """
    by_name: Mapping[str, OwnObjective] = {}
    if isinstance(objectives, Mapping):
        by_name = objectives
    elif isinstance(objectives, Sequence):
        by_name = {getattr(own, "name", str(own)): own for own in objectives}
    if not by_name or not all(callable(o) or isinstance(o, Objective) for o in by_name.values()):
        raise ConfigurationError(
            "`objectives` must be functions of outputs and targets by name, or objectives, found "
            f"{objectives!r}: try {{'cost': lambda outputs, targets: ...}}"
        )
    if len(by_name) < 2:
        raise ConfigurationError(
            f"`objectives` must be at least two, found {len(by_name)}: give another"
        )
    return tuple(_WrappedObjective(n, copy.copy(own), numbers) for n, own in by_name.items())


def _wrap_metric(metric: Metric, name: str, numbers: Sequence[Numbers]) -> Metric:
    """Return a metric that is given what its author expects, and checked.

    One number per sample comes as ``[B]``, since ``[B]`` minus ``[B, 1]`` is ``[B, B]``; numbers
    come in their unit; the result must be one number.
    """
    by_name = {target.name: target for target in numbers}

    def squeeze(values: Tensor) -> Tensor:
        return values.squeeze(-1) if values.ndim > 1 and values.shape[-1] == 1 else values

    def restore_unit(key: str, values: Tensor) -> Tensor:
        target = by_name.get(key)
        return values if target is None else values * target.scale + target.mean

    def compute(outputs: Outputs, targets: Targets) -> Tensor:
        heads = {LABEL: outputs} if isinstance(outputs, Tensor) else outputs
        if by_name:
            heads = {key: restore_unit(key, head) for key, head in heads.items()}
        plain = heads[LABEL] if isinstance(outputs, Tensor) else heads
        truth = {key: restore_unit(key, values) for key, values in targets.items()}
        result = metric(map_tensors(squeeze, plain), truth)
        if not isinstance(result, Tensor) or result.ndim:
            shape = f"shape {tuple(result.shape)}" if isinstance(result, Tensor) else repr(result)
            raise ConfigurationError(
                f"the objective `{name}` must return one number for all rows, as a tensor, "
                f"found {shape}: take the mean"
            )
        return result

    return compute


def compute_root(outputs: Outputs, targets: Targets, *, objective: Objective) -> Tensor:
    """Compute the square root of a score: RMSE from the mean squared error."""
    return objective.score(outputs, targets).sqrt()


def compute_bias(
    outputs: Outputs, targets: Targets, *, output: str | None, target: str, scale: float
) -> Tensor:
    """Compute how far predictions lie above the targets, in the mean."""
    predicted = logits_of(outputs, output)
    return weighted_mean(predicted - targets[target].reshape(predicted.shape), targets) * scale


def compute_over_rate(
    outputs: Outputs, targets: Targets, *, output: str | None, target: str
) -> Tensor:
    """Compute the share of samples predicted above their target."""
    predicted = logits_of(outputs, output)
    over = predicted > targets[target].reshape(predicted.shape)
    return weighted_mean(over.to(predicted.dtype), targets)
