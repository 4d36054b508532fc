"""Networks nobody here wrote, small and with random weights: from transformers, timm, torchvision.

Each starts as it was, hears the ray after a nudge, trains, and goes through what is done to models.
"""

import copy
import importlib
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from paretocosmos import Conditioning, condition
from paretocosmos.errors import ConfigurationError

B, J, CLASSES = 4, 2, 3
Foreign = tuple[nn.Module, dict[str, Tensor]]
IMAGE = {"initializer_range": 0.2, "num_labels": CLASSES}


def _images(side: int, name: str = "pixel_values") -> dict[str, Tensor]:
    return {name: torch.randn(B, 3, side, side)}


def _transformers() -> Any:
    return pytest.importorskip("transformers", reason="pip install --group extras")


def efficientnet() -> Foreign:
    t = _transformers()
    config = t.EfficientNetConfig(
        image_size=32, width_coefficient=0.25, depth_coefficient=0.3, hidden_dim=320, **IMAGE
    )
    return t.EfficientNetForImageClassification(config), _images(32)


def resnet() -> Foreign:
    t = _transformers()
    sizes = {"embedding_size": 8, "hidden_sizes": [8, 16, 16, 24], "depths": [1, 2, 1, 1]}
    config = t.ResNetConfig(layer_type="basic", **sizes, num_labels=CLASSES)
    return t.ResNetForImageClassification(config), _images(32)


def convnext() -> Foreign:
    t = _transformers()
    config = t.ConvNextConfig(hidden_sizes=[8, 16, 16, 24], depths=[1, 2, 1, 1], **IMAGE)
    return t.ConvNextForImageClassification(config), _images(32)


def vit() -> Foreign:
    t = _transformers()
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = t.ViTConfig(intermediate_size=24, image_size=16, patch_size=8, **sizes, **IMAGE)
    return t.ViTForImageClassification(config), _images(16)


def swin() -> Foreign:
    t = _transformers()
    sizes = {"embed_dim": 8, "depths": [1, 1], "num_heads": [1, 2], "window_size": 4}
    config = t.SwinConfig(image_size=32, patch_size=4, drop_path_rate=0.0, **sizes, **IMAGE)
    return t.SwinForImageClassification(config), _images(32)


def distilbert() -> Foreign:
    t = _transformers()
    sizes = {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 24, "vocab_size": 50}
    config = t.DistilBertConfig(max_position_embeddings=12, **sizes, **IMAGE)
    words = torch.randint(0, 50, (B, 9))
    inputs = {"input_ids": words, "attention_mask": torch.ones_like(words)}
    return t.DistilBertForSequenceClassification(config), inputs


def _imported(name: str) -> Any:
    """A package that is not asked for: without a build for this torch it may fail in any way."""
    try:
        return importlib.import_module(name)
    except Exception as error:
        pytest.skip(f"{name} cannot be imported here ({type(error).__name__})")


def _timm(name: str) -> Foreign:
    return _imported("timm").create_model(name, num_classes=CLASSES), _images(64, "x")


def _torchvision(name: str) -> Foreign:
    network = _imported("torchvision.models").get_model(name, num_classes=CLASSES)
    return network, _images(64, "x")


FOREIGN: dict[str, Callable[[], Foreign]] = {
    "efficientnet": efficientnet,
    "resnet": resnet,
    "convnext": convnext,
    "vit": vit,
    "swin": swin,
    "distilbert": distilbert,
    "timm resnet18": lambda: _timm("resnet18"),
    "timm efficientnet_b0": lambda: _timm("efficientnet_b0"),
    "timm convnext_atto": lambda: _timm("convnext_atto"),
    "timm vit_tiny": lambda: _timm("test_vit"),
    "torchvision resnet18": lambda: _torchvision("resnet18"),
    "torchvision efficientnet_b0": lambda: _torchvision("efficientnet_b0"),
}
LAYERS = {  # where a ray can enter beside what token ids became
    "distilbert": "distilbert.transformer.layer.0.attention.q_lin"
}
EVERY = pytest.mark.parametrize("how", ["input", "film", "moved"])
NAMES = pytest.mark.parametrize("name", FOREIGN)


def _made(name: str, how: str) -> tuple[nn.Module, Conditioning, dict[str, Tensor]]:
    network, inputs = FOREIGN[name]()
    for part in network.modules():
        if isinstance(part, nn.Dropout):
            part.p = 0.0
    layer = LAYERS.get(name) if how == "input" else None
    return network, _conditioned(network, how, norm="keep", layer=layer), inputs


def _conditioned(network: nn.Module, how: str, **given: Any) -> Conditioning:
    """By name; "moved" is FiLM with weights that move with the ray too."""
    if how == "moved":
        return condition(network, J, how="film", settings={"rank": 1}, **given)
    return condition(network, J, how=how, preset="paper", **given)


def _logits(outputs: Any) -> Tensor:
    return outputs["logits"] if isinstance(outputs, Mapping) else outputs


def _nudged(model: Conditioning) -> Conditioning:
    new = [p for name, p in model.named_parameters() if name in model.ray_parameters]
    assert new
    with torch.no_grad():
        for parameter in new:
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model


@NAMES
@EVERY
def test_it_starts_as_it_was(name: str, how: str) -> None:
    network, model, inputs = _made(name, how)
    expected = _logits(network.eval()(**inputs))
    for ray in (torch.rand(J), torch.rand(2, J), torch.rand(B, J)):
        outputs = model.eval()(inputs, ray)
        assert type(outputs) is type(network(**inputs))
        torch.testing.assert_close(_logits(outputs), expected, rtol=0, atol=1e-6)
    kept = model.state_dict()
    for key, value in network.state_dict().items():
        owners = [
            k for k in kept if k.replace(".layer.", ".").endswith(key.replace(".layer.", "."))
        ]
        assert any(torch.equal(kept[k], value) for k in owners), key


@NAMES
@EVERY
def test_it_hears_the_ray_each_in_its_group_and_in_a_sweep(name: str, how: str) -> None:
    _, model, inputs = _made(name, how)
    _nudged(model).double().eval()  # weights drawn at random may make outputs of a million
    inputs = {key: one.double() if one.is_floating_point() else one for key, one in inputs.items()}
    front = torch.eye(J).double()
    one, two = (_logits(model(inputs, ray)) for ray in front)
    assert (one - two).abs().max() > 1e-5 * one.abs().max()
    halves = torch.cat([one[: B // 2], two[B // 2 :]])
    torch.testing.assert_close(_logits(model(inputs, front)), halves, rtol=1e-7, atol=1e-9)
    swept = _logits(model.each_ray(inputs, front))
    torch.testing.assert_close(swept, torch.stack([one, two]), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", ["efficientnet", "resnet", "convnext", "vit", "distilbert"])
@EVERY
def test_it_is_compiled_exported_copied_and_halved(name: str, how: str) -> None:
    _, model, inputs = _made(name, how)
    _nudged(model).eval()
    ray = torch.rand(J)
    expected = _logits(model(inputs, ray))
    try:
        compiled: Any = torch.compile(model, backend="eager", fullgraph=True)
        torch.testing.assert_close(_logits(compiled(inputs, ray)), expected)
    finally:
        torch._dynamo.reset()
    free = {key: {0: torch.export.Dim.DYNAMIC} for key in inputs}
    exported = torch.export.export(model, (inputs, ray), dynamic_shapes=(free, None)).module()
    more = {key: torch.cat([value, value[:3]]) for key, value in inputs.items()}
    torch.testing.assert_close(_logits(exported(more, ray)), _logits(model(more, ray)))
    assert torch.equal(_logits(copy.deepcopy(model)(inputs, ray)), expected)
    other = _made(name, how)[1].eval()
    other.load_state_dict(model.state_dict())
    assert torch.equal(_logits(other(inputs, ray)), expected)
    with torch.autocast("cpu", torch.bfloat16):
        half = _logits(model(inputs, ray)).float()
    assert (half - expected).abs().max() < 0.1 * expected.abs().max().clamp_min(1)


def test_token_ids_cannot_be_split_and_it_says_what_to_do() -> None:
    network, _ = distilbert()
    says = r"word_embeddings`: .*how=\"film\".*layer=\"distilbert.*attention\.q_lin\""
    with pytest.raises(ConfigurationError, match=says):
        condition(network, J, how="input")


@pytest.mark.parametrize(
    ("name", "places"),
    [
        ("efficientnet", "efficientnet.encoder.blocks."),
        ("resnet", "resnet.encoder.stages."),
        ("convnext", "convnext.encoder.stages."),
        ("vit", "vit.layers."),
        ("distilbert", "distilbert.transformer.layer."),
    ],
)
def test_blocks_are_stages_or_layers(name: str, places: str) -> None:
    found: Any = _made(name, "film")[1]
    assert len(found.places) > 1
    assert all(place.startswith(places) for place in found.places)
