"""LoRA mixed by the ray, against weights written out from the equation, in float64."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call

from paretocosmos import condition
from paretocosmos.errors import ConfigurationError
from paretocosmos.nn.conditioning import Lora

B, J = 6, 3
Make = Callable[..., tuple[nn.Module, Any]]
Rays = Callable[..., Tensor]


def _trained(model: Lora) -> Lora:
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.add_(0.3 * torch.randn_like(parameter))
    return model


def _literal(model: Lora, network: nn.Module, ray: Tensor, inputs: Any) -> Tensor:
    """The network with W + s·Σ_k c_k b_k a_k' in the place of each adapted weight."""
    weights: dict[str, Tensor] = dict(network.named_parameters())
    for place in model.places:
        layer: Any = model.backbone.get_submodule(place)
        for k in range(layer.writes.shape[1]):
            taken = sum(ray[j] * model.shares[j, k] for j in range(J))
            added = torch.einsum("o,...->o...", layer.writes[:, k], layer.reads.weight[k])
            weights[f"{place}.weight"] = weights[f"{place}.weight"] + model.scale * taken * added
    return functional_call(network, weights, (inputs,))


@pytest.mark.parametrize("name", ["perceptron", "tokens", "images"])
def test_every_adapted_weight_is_the_equations(name: str, make: Make, rays: Rays) -> None:
    network, inputs = make(name)
    model = _trained(Lora(network, J, adapter_rank=2, scale=1.5))
    ray = rays()
    torch.testing.assert_close(model(inputs, ray), _literal(model, network, ray, inputs))
    each = torch.stack([_literal(model, network, one, inputs) for one in torch.eye(J).double()])
    torch.testing.assert_close(model.each_ray(inputs, torch.eye(J).double()), each)
    per_sample = rays(len(inputs))
    alone = [
        _literal(model, network, one, x.unsqueeze(0))
        for one, x in zip(per_sample, inputs, strict=True)
    ]
    torch.testing.assert_close(model(inputs, per_sample), torch.cat(alone))


@pytest.mark.parametrize(("objectives", "rank"), [(2, 4), (3, 2), (5, 1)])
def test_a_component_serves_its_objective_or_all_alike(objectives: int, rank: int) -> None:
    found = Lora(nn.Linear(3, 2).double(), objectives, adapter_rank=rank).shares.detach()
    assert found.shape == (objectives, objectives * rank)
    ray = torch.rand(objectives).double()
    ray /= ray.sum()
    taken = (ray @ found).view(objectives, rank)
    for j in range(objectives):
        torch.testing.assert_close(taken[j, 0], objectives * ray[j])  # the first its own alone
        for k in range(1, rank):  # the others less and less
            assert abs(taken[j, k] - 1) < abs(taken[j, k - 1] - 1)
    centre = torch.full((objectives,), 1 / objectives).double()
    torch.testing.assert_close(centre @ found, torch.ones(objectives * rank).double())
    if (objectives, rank) == (2, 4):
        torch.testing.assert_close(
            found[0].sort().values, torch.linspace(0, 2, 8, dtype=torch.float64)
        )


def test_only_adapters_are_trained(make: Make, rays: Rays) -> None:
    network, inputs = make("tokens")
    model = Lora(network, J)
    torch.testing.assert_close(model(inputs, rays()), network(inputs))  # it starts as it was
    trained = {name for name, p in model.named_parameters() if p.requires_grad}
    assert trained == set(model.ray_parameters)
    assert not any(name.endswith("shifts") for name in trained)
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], 0.1)
    for _ in range(2):
        model(inputs, rays()).square().sum().backward()
        optimizer.step()
    own = dict(network.named_parameters())
    held = {name.removeprefix("backbone.").replace(".layer.", "."): p
            for name, p in model.named_parameters() if name not in trained}  # fmt: skip
    assert held.keys() == own.keys()
    assert all(torch.equal(held[name], own[name]) for name in own)
    assert all(p.requires_grad for p in network.parameters())  # the one handed over


def test_layers_inside_repeated_blocks_are_adapted_or_those_named(make: Make) -> None:
    network, _ = make("tokens")
    inner = ("grow", "shrink")
    every = tuple(f"blocks.{at}.{name}" for at in range(3) for name in inner)
    assert Lora(network, J).places == every
    assert Lora(network, J, layer="grow").places == every[::2]
    named = ("head", "blocks.1.grow")
    assert Lora(network, J, layer=named).places == ("blocks.1.grow", "head")
    assert condition(network, J, how="lora", layer="head").places == ("head",)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"adapter_rank": 0}, "`adapter_rank` must be at least 1, found 0"),
        ({"scale": 0.0}, "`scale` .* found 0"),
        ({"scale": float("nan")}, "`scale` .* found nan"),
        ({"layer": "nowhere"}, r"none called `nowhere`: .*\(enter, .*\.\.\.\)"),
        ({"layer": "norm"}, "none called `norm`"),
    ],
)
def test_what_cannot_be_adapted_is_refused(make: Make, settings: dict[str, Any], says: str) -> None:
    network, _ = make("tokens")
    with pytest.raises(ConfigurationError, match=says):
        Lora(network, J, **settings)


def test_layers_that_are_not_called_or_not_there_are_refused(make: Make) -> None:
    network, _ = make("transformer")
    with pytest.raises(ConfigurationError, match="TransformerEncoderLayer"):
        Lora(network, J, layer="linear1")
    with pytest.raises(ConfigurationError, match="found none in LayerNorm"):
        Lora(nn.LayerNorm(3), J)


class Mixer(nn.Module):
    """One layer is called, the other only read."""

    def __init__(self) -> None:
        super().__init__()
        self.called, self.read = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, inputs: Tensor) -> Tensor:
        inner = self.called(inputs).to(self.called.weight.dtype)
        return inner @ self.read.weight.T


def test_a_layer_that_is_read_and_not_called_is_left_out() -> None:
    assert Lora(Mixer(), J).places == ("called",)
    with pytest.raises(ConfigurationError, match="none called `read`"):
        Lora(Mixer(), J, layer="read")
