"""Weights that move with the ray, against weights written out for every sample, in float64."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from paretocosmos.nn.backbones import LeNet, Mlp
from paretocosmos.nn.conditioning import Film, LowRank

B, J = 6, 3
DOUBLE = torch.float64
Make = Callable[..., tuple[nn.Module, Any]]
Rays = Callable[..., Tensor]
Nudge = Callable[[nn.Module], None]
SHAPES = pytest.mark.parametrize("shape", [(), (1,), (3,), (B,)])


def _adapted(model: Film) -> dict[str, LowRank]:
    """The layers that move, by the names they have in the network."""
    found = {}
    for name, part in model.backbone.named_modules():
        if isinstance(part, LowRank):
            inner = [step for step in name.split(".") if step != "layer"]
            found[".".join(inner)] = part
    return found


def _moved(model: Film, ray: Tensor) -> dict[str, Tensor]:
    """Every weight and bias at one ray, from the equation."""
    weights = {}
    for name, layer in _adapted(model).items():
        start = f"{name}." if name else ""
        rank = layer.writes.shape[1] // J
        weight, bias = layer.layer.weight.clone(), layer.layer.bias
        for j in range(J):
            scale = J * (ray[j] - 1 / J)
            a = layer.reads.weight[j * rank : (j + 1) * rank]
            b = layer.writes[:, j * rank : (j + 1) * rank]
            weight = weight + scale * torch.einsum("ok,k...->o...", b, a)
            if bias is not None:
                bias = bias + scale * layer.shifts[j]
        weights[f"{start}weight"] = weight
        if bias is not None:
            weights[f"{start}bias"] = bias
    return weights


def _nudge(model: Film) -> None:
    """Move what is of low rank and leave the scales and shifts at zero."""
    with torch.no_grad():
        for layer in _adapted(model).values():
            layer.writes.normal_()
            if layer.shifts is not None:
                layer.shifts.normal_()


def _one(network: nn.Module, weights: dict[str, Tensor], inputs: Any) -> Tensor:
    return torch.func.functional_call(network, weights, (inputs,))


NETWORKS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "sequences": (
        lambda: nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 5, bias=False)),
        (7, 4),
    ),
    "conv1d": (
        lambda: nn.Sequential(
            nn.Conv1d(2, 4, 3, dilation=2, padding=1, padding_mode="circular"),
            nn.Tanh(),
            nn.Conv1d(4, 2, 1, bias=False),
        ),
        (2, 8),
    ),
    "images": (
        lambda: nn.Sequential(
            nn.Conv2d(2, 4, (3, 2), stride=(2, 1), padding="valid"),
            nn.Tanh(),
            nn.Conv2d(4, 3, 2, padding=1),
            nn.Flatten(),
            nn.Linear(60, 2),
        ),
        (2, 7, 5),
    ),
    "volumes": (
        lambda: nn.Sequential(nn.Conv3d(1, 3, 2), nn.Tanh(), nn.Conv3d(3, 2, 2)),
        (1, 4, 4, 3),
    ),
}


@SHAPES
@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("name", NETWORKS)
def test_it_is_the_network_with_the_weights_of_the_ray(
    name: str, rank: int, shape: tuple[int, ...], rays: Rays
) -> None:
    maker, size = NETWORKS[name]
    network = maker().to(DOUBLE)
    model = Film(network, J, rank=rank)
    inputs, ray = torch.randn(B, *size, dtype=DOUBLE), rays(*shape)
    torch.testing.assert_close(model(inputs, ray), network(inputs))
    _nudge(model)
    every = ray.reshape(-1, J)
    every = every.repeat_interleave(B // len(every), 0)
    alone = [_one(network, _moved(model, every[at]), inputs[at : at + 1]) for at in range(B)]
    torch.testing.assert_close(model(inputs, ray), torch.cat(alone), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("samples", [B, 32])  # with many, convolutions write the weights out, too
def test_gradients_are_those_of_the_written_out_weights(samples: int, rays: Rays) -> None:
    network = NETWORKS["images"][0]().to(DOUBLE)
    model = Film(network, J, rank=2)
    _nudge(model)
    inputs, ray = torch.randn(samples, 2, 7, 5, dtype=DOUBLE), rays(2)
    parameters = [p for layer in _adapted(model).values() for p in layer.parameters()]
    alone = [
        _one(network, _moved(model, one), half)
        for one, half in zip(ray, inputs.chunk(2), strict=True)
    ]
    outputs, expected_outputs = model(inputs, ray), torch.cat(alone)
    found = torch.autograd.grad(outputs.square().sum(), parameters)
    expected = torch.autograd.grad(expected_outputs.square().sum(), parameters)
    for one, other in zip((outputs, *found), (expected_outputs, *expected), strict=True):
        torch.testing.assert_close(one, other)


def test_layers_inside_blocks_move_and_blocks_are_scaled(
    make: Make, rays: Rays, nudge: Nudge
) -> None:
    network, inputs = make("tokens")
    model = Film(network, J, rank=1)
    inner = [f"blocks.{n}.layer.{part}" for n in range(3) for part in ("grow", "shrink")]
    assert model.places == ("blocks.0", "blocks.1", "blocks.2", "enter", *inner, "head")
    nudge(model)
    ray = rays()
    centred = J * ray - 1
    terms = model.perceptron(centred).split(model._sizes)
    moved = _moved(model, ray)

    def linear(name: str, x: Tensor) -> Tensor:
        return F.linear(x, moved[f"{name}.weight"], moved[f"{name}.bias"])

    backbone: Any = model.backbone
    hidden = linear("enter", inputs)
    for at, term in enumerate(terms):
        normed = backbone.blocks[at].norm(hidden)
        inside = linear(f"blocks.{at}.shrink", linear(f"blocks.{at}.grow", normed).tanh())
        scale, shift = term.chunk(2)
        hidden = (1 + scale) * (hidden + inside) + shift
    expected = linear("head", hidden.mean(dim=1))
    torch.testing.assert_close(model(inputs, ray), expected)


class Depthwise(nn.Module):
    """A grouped convolution, attention, a layer used twice, and one with a forward of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.depth = nn.Conv1d(4, 4, 3, padding=1, groups=4)
        self.back = nn.ConvTranspose1d(4, 4, 1)
        self.mixer = nn.MultiheadAttention(4, 2, batch_first=True)
        self.once = nn.Linear(4, 4)
        self.twice = self.once
        self.norm = nn.LayerNorm(4)
        self.own = Doubled(4, 4)

    def forward(self, inputs: Tensor) -> Tensor:
        hidden = self.back(self.depth(inputs.mT)).mT
        hidden = self.norm(self.mixer(hidden, hidden, hidden)[0])
        return self.own(self.twice(self.once(hidden).tanh()))


class Doubled(nn.Linear):
    def forward(self, inputs: Tensor) -> Tensor:
        return 2 * super().forward(inputs)


def test_what_cannot_move_stays_and_what_is_used_twice_moves_once(rays: Rays, nudge: Nudge) -> None:
    network = Depthwise().to(DOUBLE)
    model = Film(network, J, rank=1)
    assert model.places == ("norm", "once")
    backbone: Any = model.backbone
    assert backbone.once is backbone.twice
    inputs = torch.randn(B, 5, 4, dtype=DOUBLE)
    torch.testing.assert_close(model(inputs, rays()), network(inputs))
    nudge(model)
    one = rays(2)
    alone = [model(half, ray) for half, ray in zip(inputs.chunk(2), one, strict=True)]
    torch.testing.assert_close(model(inputs, one), torch.cat(alone))


def test_images_pay_little_for_it() -> None:
    network = LeNet((1, 36, 36), {"top_left": 10, "bottom_right": 10})
    model = Film(network, 2, width=32, rank=1)
    counts = [sum(p.numel() for p in part.parameters()) for part in (network, model)]
    assert counts == [42_350, 50_216]
    assert model.places == (
        "first", "second", "hidden", "first.layer.conv", "second.layer.conv", "hidden.layer",
        "head",
    )  # fmt: skip


def test_names_of_weights_stay() -> None:
    names = set(Film(LeNet((1, 36, 36), 2), 2, rank=1).state_dict())
    own = {f"hidden.layer.{part}" for part in ("layer.weight", "layer.bias", "reads.weight",
           "writes", "shifts")}  # fmt: skip
    assert {f"backbone.{name}" for name in own} <= names
    assert "backbone.first.layer.conv.layer.weight" in names
    assert {"perceptron.0.weight", "perceptron.2.bias"} <= names


def test_what_is_drawn_is_drawn_as_a_layer_draws() -> None:
    torch.manual_seed(1)
    model = Film(Mlp((400,), 2), 2, rank=50)
    (layer,) = (layer for name, layer in _adapted(model).items() if name == "layers.0")
    drawn = layer.reads.weight.detach()
    assert float(drawn.abs().max()) <= 1 / 20
    torch.testing.assert_close(drawn.std(), torch.tensor(1 / 20 / 3**0.5), rtol=0.02, atol=0)
