"""The split first convolution against literal concatenation of ray maps, in float64."""

import math
from collections.abc import Mapping
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from tests.small import watch
from torch import Tensor, nn

from paretocosmos.errors import ConfigurationError
from paretocosmos.nn.backbones import LeNet, Mlp
from paretocosmos.nn.conditioning import TransposedConv, concat

B, J = 6, 3
SHAPE = (2, 20, 23)
HEADS = {"left": 4, "right": 3}
DOUBLE = torch.float64
SHAPES = pytest.mark.parametrize(
    "shape", [(), (1,), (3,), (B,)], ids=["[J]", "[1,J]", "[G,J]", "[B,J]"]
)


def _rays(*shape: int) -> Tensor:
    return torch.rand(*shape, J, dtype=DOUBLE).softmax(dim=-1)


def _images(count: int = B) -> Tensor:
    return torch.randn(count, *SHAPE, dtype=DOUBLE)


def _model() -> TransposedConv:
    return TransposedConv(LeNet(SHAPE, HEADS).to(DOUBLE), J)


def _per_sample(ray: Tensor, samples: int) -> Tensor:
    rays = ray.reshape(-1, J)
    return rays.repeat_interleave(samples // len(rays), 0)


class Textbook(nn.Module):
    """As the paper's text has it: every sample's ray to maps, torch.cat, one wide convolution.

    Layers only, a head each; the weights are the model's, joined where it has split them.
    """

    def __init__(self, model: TransposedConv) -> None:
        super().__init__()
        self.maps = nn.Sequential(
            nn.ConvTranspose2d(J, J, kernel_size=4, stride=1, bias=False),
            nn.ReLU(),
            nn.ConvTranspose2d(J, J, kernel_size=6, stride=2, padding=1, bias=False),
            nn.ReLU(),
            nn.Upsample(size=SHAPE[1:], mode="nearest"),
        )
        self.net = nn.Sequential(
            nn.Conv2d(SHAPE[0] + J, 10, 5),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(10, 20, 5),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(20 * 2 * 2, 50),
            nn.ReLU(),
        )
        self.left, self.right = nn.Linear(50, HEADS["left"]), nn.Linear(50, HEADS["right"])
        self.to(DOUBLE)
        self.load_state_dict(_joined(dict(model.named_parameters())))

    def forward(self, images: Tensor, ray: Tensor) -> dict[str, Tensor]:
        maps = self.maps(_per_sample(ray, len(images))[:, :, None, None])
        hidden = self.net(torch.cat([images, maps], dim=1))
        return {"left": self.left(hidden), "right": self.right(hidden)}


def _joined(ours: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The model's parameters, or their gradients, under the textbook's names."""
    left, right = HEADS.values()
    first = "backbone.first.conv"
    weights = [ours[f"{first}.layer.weight"], ours[f"{first}.ray.weight"]]
    return {
        "maps.0.weight": ours["maps.first.weight"],
        "maps.2.weight": ours["maps.second.weight"],
        "net.0.weight": torch.cat(weights, dim=1),
        "net.0.bias": ours[f"{first}.layer.bias"],
        "net.3.weight": ours["backbone.second.conv.weight"],
        "net.3.bias": ours["backbone.second.conv.bias"],
        "net.7.weight": ours["backbone.hidden.weight"],
        "net.7.bias": ours["backbone.hidden.bias"],
        "left.weight": ours["backbone.head.weight"].split([left, right])[0],
        "left.bias": ours["backbone.head.bias"].split([left, right])[0],
        "right.weight": ours["backbone.head.weight"].split([left, right])[1],
        "right.bias": ours["backbone.head.bias"].split([left, right])[1],
    }


def _gradients(model: nn.Module, outputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    total = torch.stack([out.square().sum() for out in outputs.values()]).sum()
    names, parameters = zip(*model.named_parameters(), strict=True)
    return dict(zip(names, torch.autograd.grad(total, parameters), strict=True))


def _close(found: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
@SHAPES
def test_forward_and_gradients_are_those_of_literal_concatenation(
    shape: tuple[int, ...], layout: torch.memory_format
) -> None:
    model, images, ray = _model(), _images(), _rays(*shape)
    textbook = Textbook(model)
    model.to(memory_format=layout)  # type: ignore[call-overload]
    found = model(images.to(memory_format=layout), ray)
    expected = textbook(images, ray)
    _close(found, expected)
    gradients = _gradients(textbook, expected)
    assert all(gradient.abs().max() > 0 for gradient in gradients.values())
    _close(_joined(_gradients(model, found)), gradients)


@pytest.mark.parametrize("rays", [1, 4, B])
@pytest.mark.parametrize("count", [1, B])
def test_each_ray_is_the_textbooks_loop_over_rays(rays: int, count: int) -> None:
    model, images, front = _model(), _images(count), _rays(rays)
    textbook = Textbook(model)
    found = model.each_ray(images, front)
    assert isinstance(found, Mapping)
    alone = [textbook(images, ray) for ray in front]
    expected = {name: torch.stack([one[name] for one in alone]) for name in HEADS}
    _close(found, expected)
    _close(_joined(_gradients(model, found)), _gradients(textbook, expected))


def test_a_sweep_convolves_the_images_once_and_a_batch_maps_each_ray_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = _model()
    model(_images(), _rays(3))  # where the samples are is found once for each shape
    images: list[int] = []
    maps: list[int] = []
    watch(monkeypatch, concat, "map_term", lambda given, *_: maps.append(len(given)))
    layer = model.get_submodule("backbone.first.conv.layer")
    layer.register_forward_hook(lambda _module, given, _out: images.append(len(given[0])))
    model.each_ray(_images(), _rays(5))
    model(_images(), _rays(3))
    assert (images, maps) == ([B, B], [5, 3])


GEOMETRIES: dict[str, dict[str, Any]] = {
    "plain": {"kernel_size": 3},
    "no bias": {"kernel_size": 3, "bias": False},
    "zeros around": {"kernel_size": 5, "padding": 2},
    "strides": {"kernel_size": (3, 4), "stride": (2, 3), "padding": (0, 3)},
    "dilated": {"kernel_size": 3, "dilation": (2, 3), "padding": 1},
    "same": {"kernel_size": (3, 5), "padding": "same"},
    "reflected": {"kernel_size": 3, "padding": 2, "padding_mode": "reflect"},
    "circular": {"kernel_size": 3, "stride": 2, "padding": (1, 2), "padding_mode": "circular"},
    "one pixel": {"kernel_size": SHAPE[1:]},
}


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("geometry", GEOMETRIES.values(), ids=GEOMETRIES.keys())
def test_any_convolution_equals_the_joined_one(
    geometry: dict[str, Any], layout: torch.memory_format
) -> None:
    model = TransposedConv(nn.Conv2d(SHAPE[0], 4, **geometry).to(DOUBLE), J)
    split: Any = model.backbone
    wide = nn.Conv2d(SHAPE[0] + J, 4, **geometry).to(DOUBLE)
    with torch.no_grad():
        wide.weight.copy_(torch.cat([split.layer.weight, split.ray.weight], dim=1))
        if wide.bias is not None and split.layer.bias is not None:
            wide.bias.copy_(split.layer.bias)
    model.to(memory_format=layout)  # type: ignore[call-overload]
    images = _images()
    for shape in ((), (3,), (B,)):
        ray = _rays(*shape)
        maps = F.interpolate(model.maps(_per_sample(ray, B)), SHAPE[1:])
        expected = wide(torch.cat([images, maps], dim=1))
        torch.testing.assert_close(model(images, ray), expected, rtol=1e-11, atol=1e-12)
    swept = model.each_ray(images, ray)
    torch.testing.assert_close(swept.diagonal().movedim(-1, 0), expected, rtol=1e-11, atol=1e-12)


def test_it_has_the_papers_43058_parameters() -> None:
    plain = LeNet((1, 36, 36), {"top_left": 10, "bottom_right": 10})
    model = TransposedConv(plain, 2)
    assert sum(p.numel() for p in model.parameters()) == 43_058  # FACTS.md, section 2


def test_the_published_code_draws_both_together() -> None:
    """A convolution of one and of J channels at once: all of its filters have one distribution."""
    torch.manual_seed(1)
    model = TransposedConv(nn.Conv2d(1, 20_000, 5), 2, joined=True)
    drawn = nn.Conv2d(3, 20_000, 5)
    bound = 1 / math.sqrt(75)
    for name, like in (("layer.weight", drawn.weight), ("layer.bias", drawn.get_parameter("bias"))):
        ours = model.get_parameter(f"backbone.{name}").detach()
        assert 0.999 * bound < ours.abs().max() <= bound * (1 + 1e-6)
        assert ours.std().item() == pytest.approx(like.std().item(), rel=0.02)


def test_new_filters_are_drawn_as_those_of_the_joined_layer() -> None:
    layer = nn.Conv2d(3, 2_000, (3, 5))
    filters = TransposedConv(layer, 4).get_parameter("backbone.ray.weight").detach()
    joined = nn.Conv2d(7, 2_000, (3, 5)).weight.detach()
    bound = 1 / math.sqrt(7 * 15)
    assert 0.999 * bound < filters.abs().max() <= bound
    assert filters.std().item() == pytest.approx(joined.std().item(), rel=0.01)
    assert filters.mean().item() == pytest.approx(0, abs=bound / 100)


def test_channels_stay_last() -> None:
    model = TransposedConv(nn.Conv2d(3, 4, 3), J).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    images = torch.randn(B, 3, 12, 12).to(memory_format=torch.channels_last)
    for groups in (1, 3, B):
        out = model(images, torch.rand(groups, J))
        assert out.is_contiguous(memory_format=torch.channels_last)


# Mistakes


@pytest.mark.parametrize(
    ("network", "settings", "says"),
    [
        (nn.Conv2d(4, 4, 3, groups=2), {}, r"`groups`.*found 2: .*`layer`"),
        (Mlp((5,), 1), {}, r"found Linear .*name one"),
        (nn.Sequential(nn.Linear(2, 2)), {}, r"no 2d convolution.*Sequential"),
        (LeNet(SHAPE, 2), {"layer": "9"}, "no layer `9`.* first.conv, second.conv"),
        (LeNet(SHAPE, 2), {"zero": True, "joined": True}, r"`zero`.*`joined`.*false"),
    ],
)
def test_what_cannot_be_conditioned_is_refused(
    network: nn.Module, settings: dict[str, Any], says: str
) -> None:
    with pytest.raises(ConfigurationError, match=says):
        TransposedConv(network, J, **settings)
