import copy
from collections.abc import Mapping

import pytest
import torch
from torch import Tensor, nn

from paretocosmos.errors import ConfigurationError
from paretocosmos.nn.conditioning import Unconditioned


def _rays(*shape: int) -> Tensor:
    return torch.rand(*shape, 2).softmax(dim=-1)


@pytest.mark.parametrize("shape", [(), (1,), (3,), (6,)])
def test_the_ray_changes_nothing(shape: tuple[int, ...]) -> None:
    network = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    model, inputs = Unconditioned(network, 2), torch.randn(6, 3)
    assert torch.equal(model(inputs, _rays(*shape)), network(inputs))
    swept = model.each_ray(inputs, _rays(5))
    assert isinstance(swept, Tensor)
    assert swept.shape == (5, 6, 1)
    assert all(torch.equal(out, network(inputs)) for out in swept)


class Heads(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(3, 1), nn.Linear(3, 2)

    def forward(self, *, x: Tensor) -> Mapping[str, Tensor]:
        return {"left": self.left(x), "right": self.right(x)}


def test_mappings_come_in_as_keywords_and_go_out_by_name() -> None:
    network, inputs = Heads(), torch.randn(6, 3)
    model = Unconditioned(network, 2)
    assert torch.equal(model({"x": inputs}, _rays())["right"], network.right(inputs))
    swept = model.each_ray({"x": inputs}, _rays(5))
    assert isinstance(swept, Mapping)
    assert torch.equal(swept["left"], network.left(inputs).expand(5, -1, -1))
    assert swept["right"].shape == (5, 6, 2)


def test_the_network_is_copied_with_its_parameters_and_no_more() -> None:
    network = nn.Linear(3, 1)
    model = Unconditioned(network, 2)
    assert sum(p.numel() for p in model.parameters()) == 4
    expected = copy.deepcopy(network.state_dict())
    with torch.no_grad():
        model.get_parameter("backbone.weight").add_(1.0)
    assert torch.equal(network.weight, expected["weight"])
    other = Unconditioned(nn.Linear(3, 1), 2)
    other.load_state_dict(copy.deepcopy(model).state_dict())
    inputs = torch.randn(6, 3)
    assert torch.equal(other(inputs, _rays()), model(inputs, _rays()))


@pytest.mark.parametrize("shape", [(3,), (5, 3), (2, 2, 2)])
def test_a_ray_of_the_wrong_shape_is_refused(shape: tuple[int, ...]) -> None:
    model = Unconditioned(nn.Linear(3, 1), 2)
    for call in (model, model.each_ray):
        with pytest.raises(ConfigurationError, match=r"shape \[2\].* found"):
            call(torch.zeros(6, 3), torch.ones(shape))
