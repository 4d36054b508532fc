"""Batches of other people's loaders become inputs and targets."""

from collections import UserDict
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from paretocosmos.errors import DataError
from paretocosmos.integrations.fronts import to_batch
from paretocosmos.integrations.weighting import LossWeighting
from paretocosmos.nn.conditioning import Unconditioned
from paretocosmos.objectives import Deo, MeanSquaredError
from paretocosmos.types import Batch

X, A, B = torch.rand(4, 3), torch.rand(4), torch.rand(4)
NAMES = ("a", "b")


@pytest.mark.parametrize(
    "given",
    [Batch(X, {"a": A, "b": B}), (X, {"a": A, "b": B}), [X, A, B], (X, A, B)],
    ids=["batch", "mapping", "list", "tuple"],
)
def test_inputs_and_targets(given: Any) -> None:
    batch = to_batch(given, NAMES)
    assert batch.inputs is X
    assert batch.targets["a"] is A
    assert batch.targets["b"] is B


@pytest.mark.parametrize("kind", [dict, UserDict])
def test_columns_called_as_a_target_are_targets(kind: type) -> None:
    columns = {"x": X, "a": A, "mask": X > 0, "b": B, "weight": A}
    batch = to_batch(kind(columns), NAMES)
    assert set(batch.inputs) == {"x", "mask"}
    assert set(batch.targets) == {"a", "b", "weight"}
    assert set(columns) == {"x", "a", "mask", "b", "weight"}  # untouched


@pytest.mark.parametrize(
    ("columns", "names", "inputs"),
    [
        ({"x": X, "labels": A}, ["label"], {"x"}),
        ({"x": X, "labels": B, "label": A}, ["label"], {"x", "labels"}),
        ({"x": X, "labels": A}, ["labels"], {"x"}),
    ],
    ids=["renamed", "both", "by name"],
)
def test_labels_is_label(columns: dict[str, Tensor], names: list[str], inputs: set[str]) -> None:
    batch = to_batch(columns, names)
    assert batch.targets[names[0]] is A
    assert set(batch.inputs) == inputs


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"x": X, "a": A}, "target `b`, found `a`"),
        ((X, {"b": B}), "target `a`, found `b`"),
        (Batch(X, {}), "target `a`, found none"),
        ((X, A), "a, b, found 1: .*mapping"),
        ({"a": A, "b": B}, "found only `a`, `b`"),
        (X, "found Tensor: .*`collate_fn`"),
        ((X,), "found tuple"),
    ],
    ids=["column", "mapping", "batch", "tuple", "no inputs", "tensor", "inputs alone"],
)
def test_a_batch_that_lacks_something_is_refused(given: Any, says: str) -> None:
    with pytest.raises(DataError, match=says):
        to_batch(given, NAMES)


def test_the_targets_are_those_the_objectives_read() -> None:
    fair = Deo(target="income", sensitive="sex")
    error = MeanSquaredError(target="income")
    model = Unconditioned(nn.Linear(3, 1), 2)
    weighting = LossWeighting(model, [error, fair], targets=["cost"])
    assert weighting.targets == ("income", "sex", "cost")
