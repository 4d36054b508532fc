"""What loaders yield as inputs and targets."""

from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from paretocosmos.errors import ConfigurationError, DataError
from paretocosmos.problems.streams import Fields, Keys
from paretocosmos.types import Batch

X, Y, Z = torch.zeros(2, 3), torch.ones(2), torch.full((2,), 2.0)


@dataclass
class Pair:
    x: Tensor
    label: Tensor


Named = namedtuple("Named", ["x", "label"])


def _fields(
    inputs: Keys | None = None,
    targets: Keys | None = None,
    wanted: tuple[str, ...] = ("label", "weight"),
    tasks: int = 1,
) -> Fields:
    return Fields("`train`", inputs, targets, wanted, tasks)


@pytest.mark.parametrize(
    "found",
    [
        (X, Y),
        [X, Y],
        (X, {"label": Y}),
        {"x": X, "label": Y},
        Pair(X, Y),
        Named(X, Y),
        (X.numpy(), Y.numpy()),
        Batch(X, {"label": Y}),
    ],
)
def test_whatever_is_yielded_becomes_a_batch(found: object) -> None:
    batch = _fields().batch(found)
    assert isinstance(batch.inputs, Tensor)
    assert torch.equal(batch.inputs, X)
    assert torch.equal(batch.targets["label"], Y)
    assert list(batch.targets) == ["label"]


def test_keys_name_inputs_and_targets() -> None:
    found = {"a": X, "b": X + 1, "y": Y, "z": Z, "id": np.arange(2)}
    batch = _fields(("a", "b"), {"label": "y", "depth": "z"}).batch(found)
    assert {name: float(part.sum()) for name, part in batch.inputs.items()} == {"a": 0, "b": 6}
    assert {name: float(part[0]) for name, part in batch.targets.items()} == {
        "label": 1,
        "depth": 2,
    }
    batch = _fields("a", "y").batch(found)
    assert list(batch.targets) == ["y"]
    batch = _fields(0, 2).batch((X, Y, Z))
    assert float(batch.targets["label"][0]) == 2


def test_the_rest_of_a_tuple_is_the_objectives_targets_in_their_order() -> None:
    batch = _fields(wanted=("depth", "normals", "weight"), tasks=2).batch((X, Y, Z))
    assert {name: float(part[0]) for name, part in batch.targets.items()} == {
        "depth": 1,
        "normals": 2,
    }


@pytest.mark.parametrize(
    ("fields", "found", "words"),
    [
        (_fields(targets="lable"), {"x": X, "label": Y}, "lable.*did you mean `label`"),
        (_fields(inputs="imagee"), {"image": X, "label": Y}, "imagee.*did you mean `image`"),
        (_fields(), {"a": X, "b": X, "label": Y}, "`inputs`"),
        (_fields(), {"a": X, "y": Y}, "`targets`"),
        (_fields(), (X, Y, Z), "`targets`"),
    ],
)
def test_keys_that_are_not_there_are_refused(fields: Fields, found: Any, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        fields.batch(found)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (3, "found int"),
        ((X, Y[:1]), r"inputs \(2, 3\), target label \(1,\)"),
        ((torch.tensor(1.0), Y), "the same first axis"),
        ((object(), Y), "found object in `0`"),
    ],
)
def test_what_is_no_batch_is_refused(found: Any, words: str) -> None:
    with pytest.raises(DataError, match=words):
        _fields().batch(found)
