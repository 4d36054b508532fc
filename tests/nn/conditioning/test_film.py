"""Scale and shift against the same network written out by hand, in float64."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from paretocosmos.errors import ConfigurationError
from paretocosmos.nn.backbones import LeNet, Mlp
from paretocosmos.nn.conditioning import Film

B, J = 6, 3
DOUBLE = torch.float64
Rays = Callable[..., Tensor]
Nudge = Callable[[nn.Module], None]
SHAPES = pytest.mark.parametrize("shape", [(), (1,), (3,), (B,)])


def _terms(model: Film, rays: Tensor, samples: int) -> list[tuple[Tensor, Tensor]]:
    """γ and β of every block and sample, ``[B, C]`` each: the textbook, once per sample."""
    first, last = model.perceptron[0], model.perceptron[2]
    each = (rays.reshape(-1, J) - 1 / J) * J
    each = each.repeat_interleave(samples // len(each), 0)
    hidden = each @ first.weight.T + first.bias
    emitted = (hidden * hidden.sigmoid()) @ last.weight.T + last.bias
    terms: list[tuple[Tensor, Tensor]] = []
    at = 0
    while at < emitted.shape[1]:
        channels = model.backbone.get_submodule(model.places[len(terms)]).channels
        assert isinstance(channels, int)
        terms.append((emitted[:, at : at + channels], emitted[:, at + channels :][:, :channels]))
        at += 2 * channels
    return terms


def _film(features: Tensor, term: tuple[Tensor, Tensor], *axes: int) -> Tensor:
    scale, shift = (part.reshape(len(part), *axes) for part in term)
    return (1 + scale) * features + shift


@SHAPES
def test_hidden_linear_layers_by_hand(shape: tuple[int, ...], rays: Rays, nudge: Nudge) -> None:
    network = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 2))
    network.to(DOUBLE)
    model = Film(network, J)
    nudge(model.perceptron)
    inputs, ray = torch.randn(B, 4, dtype=DOUBLE), rays(*shape)
    one, two = _terms(model, ray, B)
    hidden = network[1](_film(network[0](inputs), one, 6))
    expected = network[4](network[3](_film(network[2](hidden), two, 5)))
    torch.testing.assert_close(model(inputs, ray), expected, rtol=1e-12, atol=1e-12)


@SHAPES
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_images_after_normalisation_by_hand(
    shape: tuple[int, ...], layout: torch.memory_format, rays: Rays, nudge: Nudge
) -> None:
    network = nn.Sequential(
        nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.Tanh(), nn.Flatten(), nn.Linear(64, 2)
    )
    network.to(DOUBLE).eval()
    model = Film(network, J).to(memory_format=layout)  # type: ignore[call-overload]
    assert model.places == ("1",)
    nudge(model.perceptron)
    inputs, ray = torch.randn(B, 2, 6, 6, dtype=DOUBLE), rays(*shape)
    (term,) = _terms(model, ray, B)
    expected = network[2:](_film(network[1](network[0](inputs)), term, 4, 1, 1))
    torch.testing.assert_close(model(inputs, ray), expected, rtol=1e-12, atol=1e-12)


@SHAPES
def test_sequences_after_blocks_by_hand(shape: tuple[int, ...], rays: Rays, nudge: Nudge) -> None:
    layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True)
    network = nn.TransformerEncoder(layer, 2).to(DOUBLE)
    model = Film(network, J)
    assert model.places == ("layers.0", "layers.1")
    nudge(model.perceptron)
    inputs, ray = torch.randn(B, 5, 4, dtype=DOUBLE), rays(*shape)
    hidden = inputs
    for block, term in zip(network.layers, _terms(model, ray, B), strict=True):
        hidden = _film(block(hidden), term, 1, 4)
    torch.testing.assert_close(model(inputs, ray), hidden, rtol=1e-12, atol=1e-12)
    with torch.no_grad():  # where torch's layers take another way
        torch.testing.assert_close(model.eval()(inputs, ray), hidden, rtol=1e-10, atol=1e-10)


# Which blocks


def _stage(*width: int) -> nn.Module:
    return nn.Sequential(nn.Conv2d(width[0], width[1], 3), nn.BatchNorm2d(width[1]), nn.ReLU())


class Plain(nn.Module):
    def __init__(self, **parts: nn.Module) -> None:
        super().__init__()
        for name, part in parts.items():
            self.add_module(name, part)


@pytest.mark.parametrize(
    ("network", "places"),
    [
        (nn.Sequential(_stage(1, 4), _stage(4, 8), nn.Flatten(), nn.Linear(8, 2)), ["0", "1"]),
        (nn.Sequential(_stage(1, 4), nn.Flatten(), Mlp((4,), 2).layers), ["0.1"]),
        (nn.Sequential(Mlp((4,), 4).layers, nn.Tanh(), Mlp((4,), 2).layers), ["0"]),
        (Plain(stem=_stage(1, 4), norm=nn.LayerNorm(4), fc=nn.Linear(4, 1)), ["stem.1", "norm"]),
        (Plain(stages=nn.ModuleList([nn.Sequential(_stage(1, 4), _stage(4, 8))])), ["stages.0"]),
        (Mlp((4,), 1), ["layers.0", "layers.2"]),
        (LeNet((1, 36, 36), {"a": 2, "b": 3}), ["first", "second", "hidden"]),
        (Plain(one=nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2)),
               two=nn.Sequential(nn.Conv2d(4, 4, 3), nn.Flatten()), fc=nn.Linear(4, 1)),
         ["one", "two.0"]),
        (Plain(enter=Plain(conv=nn.Conv2d(1, 4, 3), act=nn.ReLU()), fc=nn.Linear(4, 1)), ["enter"]),
        (Plain(enter=nn.Sequential(nn.Dropout(), nn.Conv2d(1, 4, 3)), fc=nn.Linear(4, 1)),
         ["enter.1"]),
        (Plain(user=Mlp((4,), 5), item=Mlp((3,), 5)), [f"{t}.layers.{n}" for t in ("user", "item")
         for n in (0, 2, 4)][:-1]),
        (Plain(body=nn.Linear(4, 4), heads=nn.ModuleList([Mlp((4,), 1), Mlp((4,), 1)])), ["body"]),
        (nn.TransformerEncoderLayer(4, 2, 8), [""]),
        (Plain(mixer=nn.MultiheadAttention(4, 2), norm=nn.RMSNorm(4)), ["norm"]),
    ],
)  # fmt: skip
def test_blocks_are_found(network: nn.Module, places: list[str]) -> None:
    model = Film(network, 2)
    assert list(model.places) == places
    assert str(tuple(places)).rstrip(",)") in repr(model)


def test_blocks_can_be_named_one_inside_the_other_too(make: Any, rays: Rays, nudge: Nudge) -> None:
    network, inputs = make("tokens")
    assert Film(network, J, layer="blocks.1").places == ("blocks.1",)
    model = Film(network, J, layer=("blocks.1", "blocks.1.norm", "blocks.1"))
    assert model.places == ("blocks.1", "blocks.1.norm")
    torch.testing.assert_close(model(inputs, rays()), network(inputs))
    nudge(model.perceptron)
    outer, inner = _terms(model, ray := rays(2), B)
    block, hidden = network.blocks[1], network.blocks[0](network.enter(inputs))
    inside = block.shrink(block.grow(_film(block.norm(hidden), inner, 1, 6)).tanh())
    hidden = network.blocks[2](_film(hidden + inside, outer, 1, 6))
    torch.testing.assert_close(model(inputs, ray), network.head(hidden.mean(dim=1)))


class Twice(nn.Module):
    """One block under two names."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleList([nn.Sequential(nn.Linear(4, 4), nn.Tanh())])
        self.up = nn.ModuleList([self.down[0]])
        self.head = nn.Linear(4, 1)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.head(self.up[0](self.down[0](inputs)))


def test_a_block_used_twice_is_one(rays: Rays, nudge: Nudge) -> None:
    network = Twice().to(DOUBLE)
    model = Film(network, J)
    assert model.places == ("down.0",)
    nudge(model.perceptron)
    inputs, ray = torch.randn(B, 4, dtype=DOUBLE), rays(2)
    (term,) = _terms(model, ray, B)
    once = _film(network.down[0](inputs), term, 4)
    expected = network.head(_film(network.up[0](once), term, 4))
    torch.testing.assert_close(model(inputs, ray), expected)


def test_of_a_tuple_the_first_is_scaled(rays: Rays, nudge: Nudge) -> None:
    class Pair(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
            return self.linear(inputs), inputs

    network = Pair().to(DOUBLE)
    model = Film(network, J, layer="")
    nudge(model.perceptron)
    inputs, ray = torch.randn(B, 4, dtype=DOUBLE), rays()
    scaled, rest = model(inputs, ray)
    assert torch.equal(rest, inputs)
    torch.testing.assert_close(scaled, _film(network.linear(inputs), _terms(model, ray, B)[0], 4))
    swept: Any = model.each_ray(inputs, ray[None])
    torch.testing.assert_close(swept[0][0], scaled)


class Turned(nn.Module):
    """As ConvNeXt: channels last inside, first outside, and as wide as it has channels."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 3, padding=1)
        self.point = nn.Linear(4, 4)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.point(self.conv(inputs).movedim(1, -1)).movedim(-1, 1)


@pytest.mark.parametrize(
    ("block", "shape", "axis"),
    [
        (Turned(), (4, 4, 4), 1),
        (nn.Sequential(nn.Conv1d(4, 4, 1), nn.BatchNorm1d(4)), (4, 4), 1),
        (nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4)), (4, 4), -1),
        (nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 4)), (4, 4, 4), -1),
        (nn.Conv3d(4, 4, 1), (4, 2, 2, 2), 1),
    ],
)
def test_channels_are_where_the_block_has_them(
    block: nn.Module, shape: tuple[int, ...], axis: int, rays: Rays, nudge: Nudge
) -> None:
    block.to(DOUBLE)
    model = Film(block, J, layer="")
    nudge(model.perceptron)
    inputs, ray = torch.randn(B, *shape, dtype=DOUBLE), rays()
    axes = [1] * len(shape)
    axes[axis if axis < 0 else axis - 1] = 4
    expected = _film(block(inputs), _terms(model, ray, B)[0], *axes)
    torch.testing.assert_close(model(inputs, ray), expected)


# Mistakes


@pytest.mark.parametrize(
    ("network", "settings", "says"),
    [
        (nn.ReLU(), {}, "found none in ReLU"),
        (Mlp((4,), 1), {"layer": "nowhere"}, "`nowhere`; .* layers.0, layers.2"),
        (Mlp((4,), 1), {"layer": "layers.1"}, "channels ReLU at `layers.1`"),
        (Mlp((4,), 1), {"layer": ()}, "found none"),
        (Mlp((4,), 1), {"width": 0}, "`width`.*found 0"),
        (Mlp((4,), 1), {"rank": -1}, "`rank` must be at least 0, found -1"),
        (
            nn.TransformerEncoderLayer(4, 2, 8),
            {"layer": "linear1"},
            "`linear1`.* inside a TransformerEncoderLayer",
        ),
    ],
)
def test_what_cannot_be_scaled_is_refused(
    network: nn.Module, settings: dict[str, Any], says: str
) -> None:
    with pytest.raises(ConfigurationError, match=says):
        Film(network, 2, **settings)


def test_features_of_another_width_are_refused(rays: Rays) -> None:
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 3)

        def forward(self, inputs: Tensor) -> Tensor:
            return self.linear(inputs).repeat(1, 2)

    model = Film(Odd(), J, layer="")
    with pytest.raises(ConfigurationError, match=r"3 channels after Odd, found .* \(6, 6\)"):
        model(torch.zeros(B, 4), rays().float())
