"""EfficientNet against the same network written with functions, its weights, and its trainings."""

import dataclasses
import json
import pickle
import urllib.error
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from tests.small import plan_of
from torch import Tensor, nn

from paretocosmos import condition, fit, load_run
from paretocosmos.config.plan import Plan
from paretocosmos.errors import DataError, WeightsWarning
from paretocosmos.nn.backbones import EfficientNet
from paretocosmos.nn.conditioning import PerRayEnsemble, TransposedConv
from paretocosmos.objectives import BinaryCrossEntropy
from paretocosmos.problems import SPLITS
from paretocosmos.problems.images.problem import ImageProblem
from paretocosmos.registry import Spec
from paretocosmos.runs import Run
from paretocosmos.types import Batch

transformers = pytest.importorskip("transformers", reason="pip install --group extras")
hub = pytest.importorskip("huggingface_hub", reason="pip install --group extras")

TWO = {"left": 1, "right": 1}
RANDOM: dict[str, Any] = {"variant": "b0", "weights": "random"}
# torchvision's published counts, less the classifier's (features + 1) * 1000
PUBLISHED = {
    "b0": (5_288_548, 1280),
    "b1": (7_794_184, 1280),
    "b2": (9_109_994, 1408),
    "b3": (12_233_232, 1536),
    "b4": (19_341_616, 1792),
    "b5": (30_389_784, 2048),
    "b6": (43_040_704, 2304),
    "b7": (66_347_960, 2560),
}


def _count(module: nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


@pytest.mark.parametrize("variant", PUBLISHED)
def test_every_variant_has_as_many_parameters_as_was_published(variant: Any) -> None:
    whole, features = PUBLISHED[variant]
    network = EfficientNet((3, 64, 64), TWO, variant=variant, weights="random")
    assert _count(network) == whole - (features + 1) * 1000 + (features + 1) * 2
    assert network.head.in_features == features


@pytest.mark.parametrize(("objectives", "more"), [(2, 1072), (10, 9520)])
def test_input_conditioning_adds_less_than_a_thousandth(objectives: int, more: int) -> None:
    backbone = EfficientNet((3, 64, 64), dict.fromkeys("abcdefghij"[:objectives], 1), **RANDOM)
    b4 = EfficientNet((3, 64, 64), dict.fromkeys("abcdefghij"[:objectives], 1), weights="random")
    # maps of the ray, 4x4 and 6x6, and 3x3 filters on them in the first layer's 48 channels
    assert objectives**2 * (16 + 36) + objectives * 48 * 9 == more
    for conditioned in (TransposedConv(b4, objectives), condition(b4, objectives, how="input")):
        assert _count(conditioned) - _count(b4) == more < 0.001 * _count(b4)
    small = TransposedConv(backbone, objectives)
    assert _count(small) - _count(backbone) == more - objectives * (48 - 32) * 9


# ---------------------------------------------------------------- the network


def _same(inputs: Tensor, weight: Tensor, stride: int = 1, bias: Tensor | None = None) -> Tensor:
    """A convolution padded as TensorFlow's "SAME"."""
    pads = []
    for side, kernel in zip(inputs.shape[:-3:-1], weight.shape[:-3:-1], strict=True):
        total = max((-(-side // stride) - 1) * stride + kernel - side, 0)
        pads += [total // 2, total - total // 2]
    groups = inputs.shape[1] // weight.shape[1]
    return F.conv2d(F.pad(inputs, pads), weight, bias, stride, groups=groups)


def _features(weights: dict[str, Tensor], inputs: Tensor, norm: Any) -> Tensor:
    """B0 as Tan and Le 2019 have it (table 1): repeats, channels, strides and kernels."""

    def layer(x: Tensor, conv: str, bn: str, stride: int = 1) -> Tensor:
        return norm(_same(x, weights[f"{conv}.weight"], stride), weights, bn)

    x = F.silu(layer(inputs, "embeddings.convolution", "embeddings.batchnorm", 2))
    block = 0
    repeats, channels = (1, 2, 2, 3, 3, 4, 1), (16, 24, 40, 80, 112, 192, 320)
    for stage, times in enumerate(repeats):
        stride, kernel = (1, 2, 2, 2, 1, 2, 1)[stage], (3, 3, 5, 3, 5, 5, 3)[stage]
        for again in range(times):
            at, before = f"encoder.blocks.{block}", x
            if stage:
                x = F.silu(layer(x, f"{at}.expansion.expand_conv", f"{at}.expansion.expand_bn"))
                assert x.shape[1] == 6 * before.shape[1]
            deep = f"{at}.depthwise_conv.depthwise"
            assert weights[f"{deep}_conv.weight"].shape[-1] == kernel
            x = F.silu(layer(x, f"{deep}_conv", f"{deep}_norm", 1 if again else stride))
            gate = x.mean((2, 3), keepdim=True)
            for name in ("reduce", "expand"):
                part = f"{at}.squeeze_excite.{name}"
                gate = _same(gate, weights[f"{part}.weight"], bias=weights[f"{part}.bias"])
                gate = F.silu(gate) if name == "reduce" else gate.sigmoid()
            x = layer(x * gate, f"{at}.projection.project_conv", f"{at}.projection.project_bn")
            x = x + before if again else x
            assert x.shape[1] == channels[stage]
            block += 1
    return F.silu(layer(x, "encoder.top_conv", "encoder.top_bn")).mean((2, 3))


def _batch_norm(x: Tensor, weights: dict[str, Tensor], at: str) -> Tensor:
    names = ("running_mean", "running_var", "weight", "bias")
    mean, var, scale, shift = (weights[f"{at}.{name}"].view(-1, 1, 1) for name in names)
    return (x - mean) / (var + 1e-3).sqrt() * scale + shift


def _group_norm(x: Tensor, weights: dict[str, Tensor], at: str) -> Tensor:
    """In groups of at least 8 channels, at most 32 of them."""
    channels = x.shape[1]
    groups = max(g for g in range(1, 33) if channels % g == 0 and channels // g >= 8)
    return F.group_norm(x, groups, weights[f"{at}.weight"], weights[f"{at}.bias"])


def _shaken(network: nn.Module) -> nn.Module:
    """With weights and statistics that are nobody's defaults."""
    with torch.no_grad():
        for name, value in network.state_dict().items():
            if value.is_floating_point():
                value.add_(0.2 * torch.rand_like(value) * (1 if "running" in name else 0.1))
    return network


@pytest.mark.parametrize("shape", [(3, 64, 64), (1, 36, 36), (3, 44, 32), (2, 37, 71)], ids=str)
@pytest.mark.parametrize("norm", ["keep", "frozen", "group"])
def test_it_is_the_published_network(shape: tuple[int, ...], norm: Any) -> None:
    """36 pixels become 18 and 9, 37 become 19: odd numbers are padded otherwise than even ones."""
    network: Any = EfficientNet(shape, {"left": 2, "right": 3}, **RANDOM, norm=norm).double()
    _shaken(network).eval()
    inputs = torch.rand(2, *shape, dtype=torch.float64) * 2 - 1
    weights = network.network.state_dict()
    if norm == "frozen":
        weights = {name.replace(".layer.", "."): value for name, value in weights.items()}
        assert type(network.network.embeddings.batchnorm).__name__ == "FrozenNorm"
    how = _group_norm if norm == "group" else _batch_norm
    head = network.head
    expected = _features(weights, inputs, how) @ head.weight.T + head.bias
    found = network(inputs)
    assert list(found) == ["left", "right"]
    torch.testing.assert_close(torch.cat([*found.values()], dim=1), expected)
    assert network.get_submodule(network.first_layer).weight.shape[1] == shape[0]


def test_dropout_is_the_variants_own_or_as_asked_and_off_in_evaluation() -> None:
    network = EfficientNet((3, 32, 32), 1, **RANDOM)
    inputs = torch.rand(4, 3, 32, 32)
    assert network.resolved["dropout"] == network.dropout.p == 0.2
    rates = [m.p for m in network.network.modules() if isinstance(m, nn.Dropout)]
    assert rates == pytest.approx([0.2 * at / 16 for at in range(16)])
    assert not torch.equal(network(inputs), network(inputs))
    network.eval()
    assert torch.equal(network(inputs), network(inputs))
    plain = EfficientNet((3, 32, 32), 1, **RANDOM, dropout=0.0, drop_connect=0.0)
    assert torch.equal(plain(inputs), plain(inputs))


def test_the_signal_reaches_the_end_of_random_weights() -> None:
    """With transformers' own draw the features of two images differ by less than 1e-4."""
    network = EfficientNet((3, 64, 64), 1, **RANDOM).eval()
    _, features = network.network(torch.rand(8, 3, 64, 64) * 2 - 1, return_dict=False)
    assert 0.05 < features.std(dim=0).mean() < 2


# ---------------------------------------------------------------- its weights


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """No data folder, empty caches, and a hub that does not answer; how often it was asked."""
    asked: list[str] = []

    def no_answer(request: Any, timeout: float) -> None:
        asked.append(request.full_url)
        assert timeout < 10
        raise urllib.error.URLError("no route")

    monkeypatch.delenv("PARETOCOSMOS_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "empty"))
    monkeypatch.setattr(hub.constants, "HF_HUB_CACHE", str(tmp_path / "empty" / "hub"))
    monkeypatch.setattr(hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr("urllib.request.urlopen", no_answer)
    return asked


@pytest.fixture(scope="module")
def theirs() -> Any:
    """A classifier as transformers builds it."""
    config = transformers.EfficientNetConfig(
        width_coefficient=1.0, depth_coefficient=1.0, hidden_dim=1280, num_labels=3
    )
    torch.manual_seed(3)
    return _shaken(transformers.EfficientNetForImageClassification(config)).eval()


def _is_theirs(network: EfficientNet, theirs: Any) -> None:
    inputs = torch.rand(2, 3, 64, 64)
    expected = theirs.efficientnet(inputs).pooler_output
    for mode in (True, False):  # frozen statistics are the same in training
        for part in network.train(mode).modules():
            if isinstance(part, nn.Dropout):
                part.eval()
        _, found = network.network(inputs, return_dict=False)
        torch.testing.assert_close(found, expected)


def test_weights_of_a_folder_are_transformers_own(theirs: Any, tmp_path: Path) -> None:
    theirs.save_pretrained(tmp_path)
    network = EfficientNet((3, 64, 64), TWO, variant="b0", weights=str(tmp_path))
    assert network.resolved == {"weights": str(tmp_path), "norm": "frozen", "dropout": 0.2}
    _is_theirs(network, theirs)
    grouped = EfficientNet((3, 64, 64), 1, variant="b0", weights=str(tmp_path), norm="group")
    assert grouped.resolved["norm"] == "group"
    scale = grouped.network.get_parameter("embeddings.batchnorm.weight")
    assert torch.equal(scale, theirs.efficientnet.embeddings.batchnorm.weight)


def test_auto_takes_those_of_the_data_folder(
    theirs: Any, nowhere: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "data" / "efficientnet-b0"
    place.mkdir(parents=True)
    save_file(theirs.state_dict(), place / "model.safetensors")
    monkeypatch.setenv("PARETOCOSMOS_DATA", str(place.parent))
    network = EfficientNet((3, 64, 64), TWO, variant="b0")
    assert network.resolved["weights"] == str(place)
    _is_theirs(network, theirs)
    assert nowhere == []


@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize("weights", ["auto", "google/efficientnet-b0"])
def test_else_those_of_the_hub(
    weights: str,
    cached: bool,
    theirs: Any,
    nowhere: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = tmp_path / "pytorch_model.bin"  # what is there of some variants
    torch.save(theirs.state_dict(), file)
    asked: list[tuple[str, bool]] = []

    def download(name: str, filename: str, *, local_files_only: bool) -> str:
        assert name == "google/efficientnet-b0"
        asked.append((filename, local_files_only))
        if filename != file.name or local_files_only is not cached:
            raise hub.errors.LocalEntryNotFoundError("not there")
        return str(file)

    monkeypatch.setattr(hub, "hf_hub_download", download)
    monkeypatch.setattr(
        "paretocosmos.nn.backbones.efficientnet._check_hub_answers", lambda address: None
    )
    network = EfficientNet((3, 64, 64), TWO, variant="b0", weights=weights)
    assert network.resolved["weights"] == "google/efficientnet-b0"
    _is_theirs(network, theirs)
    assert asked[0] == ("model.safetensors", True)  # what is here before what must be fetched
    assert len(asked) == (2 if cached else 4)


def test_else_random_ones_which_is_said(nowhere: list[str]) -> None:
    says = r"starts from random weights.*not in `.*efficientnet-b0`.*from the hub \(.*no route"
    with pytest.warns(WeightsWarning, match=says) as caught:
        network = EfficientNet((3, 64, 64), TWO, variant="b0")
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert network.resolved == {"weights": "random", "norm": "group", "dropout": 0.2}
    assert len(nowhere) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        EfficientNet((3, 64, 64), TWO, **RANDOM)


def test_nobody_is_asked_offline_or_for_other_channels(
    nowhere: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.warns(WeightsWarning, match="3 channels, found 1"):
        EfficientNet((1, 36, 36), 1, variant="b0")
    monkeypatch.setattr(hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.warns(WeightsWarning, match="HF_HUB_OFFLINE"):
        EfficientNet((3, 36, 36), 1, variant="b0")
    assert nowhere == []


@pytest.mark.parametrize(
    ("weights", "says"),
    [
        ("owner/name", r"`owner/name`.*hub \(.*no route"),
        ("no/such/folder", "`no/such/folder`.*not a name on the hub"),
    ],
)
def test_weights_that_are_named_and_not_there_are_one_sentence(
    weights: str, says: str, nowhere: list[str]
) -> None:
    with pytest.raises(DataError, match=says) as refused:
        EfficientNet((3, 64, 64), 1, variant="b0", weights=weights)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin"])
@pytest.mark.parametrize("content", [b"not what it says", pickle.dumps({"0.weight": Path("x")})])
def test_a_file_that_holds_no_tensors_is_refused(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=r"cannot be read \(.*damaged") as refused:
        EfficientNet((3, 64, 64), 1, variant="b0", weights=str(tmp_path))
    assert "\n" not in str(refused.value)


def test_a_folder_without_weights_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"`pytorch_model\.bin`.*not a name on the hub"):
        EfficientNet((3, 64, 64), 1, variant="b0", weights=str(tmp_path))


def test_weights_of_another_variant_are_refused(theirs: Any, tmp_path: Path) -> None:
    theirs.save_pretrained(tmp_path)
    with pytest.raises(DataError, match=r"fit this network.*`variant`"):
        EfficientNet((3, 64, 64), 1, variant="b1", weights=str(tmp_path))


# ---------------------------------------------------------------- its trainings


def _faces() -> ImageProblem:
    """Noise with a yes or no for each of two tasks."""
    draw = torch.Generator().manual_seed(1)

    def batch() -> Batch:
        images = torch.randint(0, 256, (20, 3, 32, 32), generator=draw, dtype=torch.uint8)
        return Batch(images, {t: (torch.rand(20, generator=draw) > 0.5).float() for t in TWO})

    return ImageProblem(
        name="faces",
        objectives=tuple(BinaryCrossEntropy(name=t, output=t, target=t) for t in TWO),
        reference=(2.0, 2.0),
        input_shape=(3, 32, 32),
        outputs=TWO,
        splits={split: batch() for split in SPLITS},
        images="noise",
        sha256="",
        pixels="-1..1",
    )


def _go(out: Path, *, engine: str = "auto", **changes: Any) -> Run:
    given: dict[str, Any] = {"epochs": 2, "device": "cpu", "backbone": "efficientnet"}
    settings = {"variant": "b0", "batch_size": 8, "learning_rate": 5e-4, "rays": 3}
    given["settings"] = settings | changes.pop("settings", {"weights": "random"})
    return fit(_faces(), preset="paper", out=out, engine=engine, **given | changes)


def test_a_recorded_step_gives_what_eager_gives(tmp_path: Path) -> None:
    """To the bit, dropout included; 20 samples in batches of 8, so that one is short."""
    traced = _go(tmp_path / "traced", engine="traced")
    eager = _go(tmp_path / "eager", engine="eager")
    assert (traced.record["engine"], eager.record["engine"]) == ("traced", "eager")
    for one, two in zip(traced.model.parameters(), eager.model.parameters(), strict=True):
        assert torch.equal(one, two)
    assert (traced.folder / "front.json").read_bytes() == (eager.folder / "front.json").read_bytes()


def test_a_run_comes_back_without_its_first_weights(
    theirs: Any, tmp_path: Path, nowhere: list[str]
) -> None:
    theirs.save_pretrained(tmp_path / "weights")
    run = _go(
        tmp_path / "run",
        engine="eager",
        settings={"weights": str(tmp_path / "weights"), "drop_connect": 0.1},
    )
    record = json.loads((run.folder / "run.json").read_text())
    assert record["backbone"] == {
        "name": "efficientnet",
        "settings": {
            "variant": "b0",
            "weights": str(tmp_path / "weights"),
            "norm": "frozen",
            "dropout": 0.2,
            "drop_connect": 0.1,
        },
    }
    (tmp_path / "weights" / "model.safetensors").unlink()
    again = load_run(run.folder)
    inputs, ray = torch.rand(4, 3, 32, 32), torch.tensor([0.3, 0.7])
    for name, out in again.model(inputs, ray).items():
        assert torch.equal(out, run.model(inputs, ray)[name])
    assert nowhere == []


def test_several_networks_say_once_that_they_are_random(nowhere: list[str], tmp_path: Path) -> None:
    with pytest.warns(WeightsWarning, match="random") as caught:
        run = _go(tmp_path / "run", method="single_task", epochs=1, engine="eager", settings={})
    assert len([w for w in caught if w.category is WeightsWarning]) == 1
    assert len(nowhere) == 1
    assert isinstance(run.model, PerRayEnsemble)
    assert run.record["backbone"]["settings"]["weights"] == "random"
    assert run.record["backbone"]["settings"]["norm"] == "group"


def _plan(problem: ImageProblem, **changes: Any) -> Plan:
    return plan_of(problem, **{"backbone": "efficientnet", "settings": RANDOM} | changes)


def test_a_plan_knows_what_may_be_done_with_it() -> None:
    plan = _plan(_faces())
    assert plan.traceable
    assert not plan.stackable  # dropout: stacked networks would share its draws
    assert plan.rebuildable
    assert isinstance(plan.model, TransposedConv)
    assert plan.configuration.backbone == Spec(
        "efficientnet",
        {
            "variant": "b0",
            "weights": "random",
            "norm": "group",
            "dropout": 0.2,
            "drop_connect": 0.2,
        },
    )


@pytest.mark.parametrize("how", ["input", "film"])
def test_it_starts_as_it_was_and_hears_the_ray(how: str) -> None:
    network = EfficientNet((3, 32, 32), TWO, **RANDOM).eval()
    model: Any = condition(network, 2, how=how, norm="keep").eval()
    inputs, rays = torch.rand(4, 3, 32, 32), torch.tensor([[0.1, 0.9], [0.8, 0.2]])
    expected: Any = network(inputs)
    for name, out in model(inputs, rays).items():
        torch.testing.assert_close(out, expected[name])
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name in model.ray_parameters:
                parameter.add_(0.3 * torch.randn_like(parameter))
    one, two = (model(inputs, ray)["left"] for ray in rays)
    assert not torch.allclose(one, two)
    swept = model.each_ray(inputs, rays)["left"]
    torch.testing.assert_close(swept, torch.stack([one, two]))


def test_the_papers_faces_begin_with_it() -> None:
    problem = dataclasses.replace(_faces(), spec=Spec("celeba_easy", {}))
    plan = _plan(problem, backbone=None)
    assert plan.configuration.backbone.name == "efficientnet"
    assert plan.configuration.conditioning == Spec(
        "transposed_conv", {"layer": None, "zero": True, "joined": False}
    )
    assert plan.training.learning_rate == 5e-4
    assert _plan(problem, backbone="lenet", settings={}).configuration.backbone == Spec(
        "lenet", {"kernel": 5, "rectified": True}
    )
