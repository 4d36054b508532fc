"""The exam of networks of the caller's own, on two that are quick."""

import pytest
import torch
from benchmarks.own_networks import FAR, NEAR, NETWORKS, measure_network


@pytest.mark.system
@pytest.mark.parametrize("name", ["one linear layer", "tied weights"])
def test_nearly_the_whole_front_is_reached(name: str) -> None:
    build, make_data = NETWORKS[name]
    torch.manual_seed(1)
    row = measure_network(build(), make_data())
    assert row["from"] <= NEAR < FAR <= row["to"]
    assert row["above"] < 0.01
    assert row["order"] > 0.97
