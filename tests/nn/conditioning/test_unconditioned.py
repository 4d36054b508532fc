from collections.abc import Mapping

import pytest
import torch
from torch import Tensor, nn

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
