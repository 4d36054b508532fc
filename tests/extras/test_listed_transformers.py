"""The networks of the list that need an extra run as they are."""

import pytest
import torch
from tests.networks.foreign import TRANSFORMERS


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_it_runs_as_it_is(name: str) -> None:
    torch.manual_seed(0)
    network, inputs = TRANSFORMERS[name]()
    network(**inputs)
