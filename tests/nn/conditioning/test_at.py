"""A conditioned network at one ray: an ordinary module, and, merged, one of its own class."""

import copy
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm

from paretocosmos import registry
from paretocosmos.errors import ConfigurationError
from paretocosmos.fairness import AdjustedNetwork
from paretocosmos.nn.backbones import LeNet
from paretocosmos.nn.conditioning import (
    Concat,
    Conditioning,
    Film,
    Hypernet,
    Lora,
    PerRayEnsemble,
    TransposedConv,
    Unconditioned,
)

J = 3
Make = Callable[..., tuple[nn.Module, Any]]
Rays = Callable[..., Tensor]
Nudge = Callable[[nn.Module], None]


def _sequence(*layers: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Linear(4, 6), *layers, nn.Tanh(), nn.Linear(6, 2))


class Affine(nn.Module):
    """Two inputs by position, a method of its own that calls it, and an attribute."""

    size = 7

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(4, 5), nn.Linear(5, 2)

    def forward(self, left: Tensor, right: Tensor | None = None) -> Tensor:
        inputs = left if right is None else left + right
        return self.two(self.one(inputs).tanh())

    def doubled(self, inputs: Tensor) -> Tensor:
        return 2 * self.forward(inputs)


def test_its_forward_has_the_signature_of_the_network(rays: Rays) -> None:
    network = Affine()
    model: Any = Film(network, J).at(rays())
    expected = inspect.signature(network.forward)
    assert inspect.signature(model.forward) == expected
    for copied in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert inspect.signature(copied.forward) == expected
        with torch.no_grad():  # the copy calls its own weights
            copied.one.layer.weight.zero_()
        left = torch.randn(6, 4)
        assert not torch.equal(copied(left), model(left))


@pytest.mark.parametrize("name", ["concat", "film", "hypernet", "lora", "none"])
def test_it_is_called_as_the_network_was(name: str, rays: Rays, nudge: Nudge) -> None:
    model: Conditioning = registry.find("conditioning", name)(Affine().double(), J).eval()
    nudge(model)
    left, right, ray = torch.randn(6, 4).double(), torch.randn(6, 4).double(), rays()
    one: Any = model.at(ray)
    wanted = model({"left": left, "right": right}, ray)
    for found in (one(left, right), one(left, right=right), one(left=left, right=right)):
        torch.testing.assert_close(found, wanted)
    torch.testing.assert_close(one(left), model(left, ray))
    torch.testing.assert_close(one.doubled(left), 2 * model(left, ray))
    torch.testing.assert_close(copy.deepcopy(one).doubled(left), 2 * model(left, ray))
    assert one.size == 7
    assert not one.training
    with pytest.raises(AttributeError, match="tripled"):
        one.tripled(left)
    with pytest.raises(ConfigurationError, match=r"positional.*here 2; found 3"):
        one(left, right, right)


def test_it_shares_the_models_weights_and_trains_them(rays: Rays) -> None:
    model = Film(Affine().double(), J, rank=1)
    ray, inputs = rays(), torch.randn(6, 4).double()
    one = model.at(ray)
    assert set(one.parameters()) == set(model.parameters())
    one(inputs).square().sum().backward()
    found = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()
    model(inputs, ray).square().sum().backward()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(found.get(name), parameter.grad)


MERGED: dict[str, tuple[Callable[[nn.Module], Conditioning], Callable[[], nn.Module]]] = {
    "lora": (lambda n: Lora(n, J), _sequence),
    "concat": (lambda n: Concat(n, J), _sequence),
    "concat without a bias": (
        lambda n: Concat(n, J),
        lambda: nn.Sequential(nn.Linear(4, 3, bias=False), nn.Tanh()),
    ),
    "hypernet": (lambda n: Hypernet(n, J), _sequence),
    "hypernet in chunks": (lambda n: Hypernet(n, J, chunk=20), _sequence),
    "none": (lambda n: Unconditioned(n, J), _sequence),
    "film after a linear layer": (lambda n: Film(n, J), _sequence),
    "film that moves weights": (lambda n: Film(n, J, rank=2), _sequence),
    "film after normalisation": (lambda n: Film(n, J, rank=1), lambda: _sequence(nn.LayerNorm(6))),
    "film after batch normalisation": (lambda n: Film(n, J), lambda: _sequence(nn.BatchNorm1d(6))),
    "film after a sequence": (
        lambda n: Film(n, J, layer="0"),
        lambda: nn.Sequential(nn.Sequential(nn.Tanh(), nn.Linear(4, 5)), nn.Tanh()),
    ),
    "one layer": (lambda n: Film(n, J, layer="", rank=1), lambda: nn.Linear(4, 2)),
}


@pytest.mark.parametrize("name", MERGED)
def test_merged_it_is_the_networks_own_class_and_equal(name: str, rays: Rays, nudge: Nudge) -> None:
    how, build = MERGED[name]
    network = build().double()
    model = how(network).eval()
    nudge(model)
    model.calibrate(0.8 * torch.eye(J).double() + 0.2 / J)  # useful ends count, too
    ray, inputs = rays(), torch.randn(6, 4).double()
    before = model(inputs, ray)
    merged = model.at(ray, merge=True)
    assert type(merged) is type(network)
    assert [type(part) for part in merged.modules()] == [type(part) for part in network.modules()]
    torch.testing.assert_close(merged(inputs), before, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(model(inputs, ray), before)  # which is left as it was
    assert set(merged.parameters()).isdisjoint(set(model.parameters()))


def test_merged_convolutions(rays: Rays, nudge: Nudge) -> None:
    network = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 3, 3, stride=2, bias=False)
    ).double()
    inputs, ray = torch.randn(6, 1, 9, 9).double(), rays()
    for model in (Lora(network, J), Film(network, J, layer=("0", "2"), rank=1)):
        nudge(model)
        torch.testing.assert_close(model.at(ray, merge=True)(inputs), model(inputs, ray))


class Tied(nn.Module):
    """Words read and written with one matrix."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.out = nn.Embedding(9, 4), nn.Linear(4, 9, bias=False)
        self.out.weight = self.words.weight

    def forward(self, ids: Tensor) -> Tensor:
        return self.out(self.words(ids))


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (Lora(Tied(), J), "`out` is shared with another layer"),
        (Film(LeNet((1, 20, 20), 2), J), "at `second` come after"),
        (
            Film(_sequence(nn.RMSNorm(6)), J),
            "at `1` come after RMSNorm, which does not .* with a bias",
        ),
        (TransposedConv(LeNet((1, 20, 20), 2), J), "at `first.conv` is no weight of Conv2d"),
        (AdjustedNetwork(nn.Linear(3, 5), 2), "does not enter the network by its weights"),
        (
            Film(nn.Sequential(weight_norm(nn.Linear(4, 4)), nn.Tanh()), J, layer="0"),
            "`0` is computed by a parametrisation",
        ),
    ],
)  # fmt: skip
def test_what_is_not_exact_is_not_merged(model: Conditioning, says: str) -> None:
    ray = torch.full((model.objectives,), 1 / model.objectives)
    with pytest.raises(ConfigurationError, match=f"the weights exactly, but .*{says}"):
        model.at(ray, merge=True)
    assert model.at(ray).training


def test_the_network_nearest_to_the_ray(rays: Rays) -> None:
    networks = [Unconditioned(nn.Linear(4, 2).double(), J) for _ in range(J)]
    several = PerRayEnsemble(networks, torch.eye(J).double())
    inputs, ray = torch.randn(6, 4).double(), torch.tensor([0.2, 0.7, 0.1])
    wanted = networks[1].backbone(inputs)
    torch.testing.assert_close(several.at(ray)(inputs), wanted)
    merged = several.at(ray, merge=True)
    assert type(merged) is nn.Linear
    torch.testing.assert_close(merged(inputs), wanted)


@pytest.mark.parametrize(
    ("ray", "says"),
    [
        ([0.5, 0.5], "here 3"),
        ([0.5, 0.5, 0.5], "found a sum of 1.5"),
        ([[1, 0, 0], [0, 1, 0]], "one ray, found 2"),
        ([1.5, -0.5, 0.0], "finite entries >= 0"),
    ],
)
def test_what_is_no_ray_is_refused(ray: Any, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        Film(_sequence(), J).at(ray)


class Words(nn.Module):
    """A language model in small, which keeps what no tensor is unless it is told not to."""

    def __init__(self) -> None:
        super().__init__()
        self.config = type("Config", (), {"use_cache": True})()
        self.embedding, self.head = nn.Embedding(5, 6), nn.Linear(6, 5)

    def forward(self, input_ids: Tensor, use_cache: bool | None = None) -> dict[str, Any]:
        outputs: dict[str, Any] = {"logits": self.head(self.embedding(input_ids).tanh())}
        if self.config.use_cache if use_cache is None else use_cache:
            outputs["past_key_values"] = object()
        return outputs


@pytest.mark.parametrize("kind", [Film, Lora, Hypernet])
def test_whole_calls_keep_no_cache_but_a_network_at_a_ray_does(kind: Any, rays: Rays) -> None:
    model, ids = kind(Words(), J), torch.tensor([[0, 1, 2], [2, 3, 4]])
    (ray,) = rays(1)
    for inputs in (ids, {"input_ids": ids}):
        for outputs in (model(inputs, ray), model.each_ray(inputs, rays(2))):
            assert list(outputs) == ["logits"]
        assert len(model.at(ray)(inputs)) == 2
    assert len(model({"input_ids": ids, "use_cache": True}, ray)) == 2
    assert len(model.at(ray)(ids)) == len(model.at(ray)(input_ids=ids)) == 2
    assert len(model.at(ray)(ids, use_cache=False)) == 1


def test_it_compiles_whole(rays: Rays, nudge: Nudge) -> None:
    inputs, ray = torch.randn(6, 4).double(), rays()
    for model in (Film(Affine().double(), J, rank=1), Lora(Affine().double(), J)):
        nudge(model)
        torch.compiler.reset()
        compiled = torch.compile(model.at(ray), backend="eager", fullgraph=True)
        torch.testing.assert_close(compiled(inputs), model(inputs, ray))
