"""The list itself: sixty networks that run as they are, on inputs of their own."""

from collections.abc import Mapping

import pytest
import torch
from tests.networks.listed import KINDS, NEEDS_EXTRAS, NETWORKS


def test_there_are_sixty_and_five_of_each_kind() -> None:
    assert len(NETWORKS) == 60
    assert {len(kind) for kind in KINDS.values()} == {5}


@pytest.mark.parametrize(
    "name", [name for kind, made in KINDS.items() if kind != NEEDS_EXTRAS for name in made]
)
def test_it_runs_as_it_is(name: str) -> None:
    torch.manual_seed(0)
    network, inputs = NETWORKS[name]()
    if not isinstance(inputs, Mapping) or name in KINDS["one mapping as argument"]:
        network(inputs)
    else:
        network(**inputs)
