"""Emitted weights against the same network written out by hand, in float64."""

import copy
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.utils.parametrizations import spectral_norm, weight_norm

from paretocosmos.errors import ConfigurationError
from paretocosmos.nn.backbones import LeNet, Mlp
from paretocosmos.nn.conditioning import Hypernet, hypernet

B, J = 12, 3
DOUBLE = torch.float64
NO_RULE = "ignore:There is a performance drop"  # torch maps an operation by a loop of its own
CHUNKS = pytest.mark.parametrize("chunk", [50_000, 40], ids=["whole", "chunked"])


def _count(module: nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


def _rays(*shape: int) -> Tensor:
    return torch.randn(*shape, J, dtype=DOUBLE).softmax(dim=-1)


def _nudged(model: Hypernet) -> Hypernet:
    """As after some training: what the ray adds to a chunked network starts at zero."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def _images() -> Tensor:
    return torch.randn(B, 1, 6, 6, dtype=DOUBLE)


def _small() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(1, 2, 3), nn.Tanh(), nn.Flatten(), nn.Linear(32, 3)).to(DOUBLE)


# The numbers


def _perceptron(model: Hypernet, ray: Tensor, embedding: Tensor | None = None) -> Tensor:
    """J-100-100-100, ReLU between the layers and none at the end, as published."""
    one, two = model.get_submodule("features.1"), model.get_submodule("features.3")
    entered = model.enter.weight @ ray + model.enter.bias
    if embedding is not None:
        entered = entered + embedding
    hidden = F.relu(entered)
    hidden = F.relu(one.get_parameter("weight") @ hidden + one.get_parameter("bias"))
    return two.get_parameter("weight") @ hidden + two.get_parameter("bias")


def _by_hand(model: Hypernet, inputs: Tensor, ray: Tensor) -> Tensor:
    """A matrix product per tensor of `_small`, and its two layers as functions."""
    if model.chunks is None:
        features = _perceptron(model, ray)
        rows = zip(model.emit.weight, model.emit.bias, strict=True)
        flat = torch.stack([row @ features + bias for row, bias in rows])
        own = {name: torch.zeros((), dtype=DOUBLE) for name in ("0.weight", "0.bias", "3.weight")}
        own["3.bias"] = own["0.bias"]
    else:
        parts = [
            model.emit.weight @ _perceptron(model, ray, embedding) + model.emit.bias
            for embedding in model.chunks
        ]
        flat = torch.cat(parts)
        own = dict(model.backbone.named_parameters())
    filters = own["0.weight"] + flat[:18].reshape(2, 1, 3, 3)
    shift = own["0.bias"] + flat[18:20]
    matrix = own["3.weight"] + flat[20:116].reshape(3, 32)
    bias = own["3.bias"] + flat[116:119]
    out: Tensor = torch.tanh(F.conv2d(inputs, filters, shift)).flatten(1)
    return out @ matrix.T + bias


@CHUNKS
@pytest.mark.parametrize("groups", [0, 1, 3, B], ids=["[J]", "[1,J]", "[G,J]", "[B,J]"])
def test_outputs_and_gradients_are_those_written_out_by_hand(groups: int, chunk: int) -> None:
    model = _nudged(Hypernet(_small(), J, width=7, chunk=chunk))
    ours = _images().requires_grad_()
    theirs = ours.detach().clone().requires_grad_()
    rays = _rays(groups) if groups else _rays()
    shares = theirs.chunk(max(groups, 1))
    found = model(ours, rays)
    expected = torch.cat(
        [_by_hand(model, x, r) for x, r in zip(shares, rays.reshape(-1, J), strict=True)]
    )
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    parameters = list(model.parameters())
    pairs = zip(
        torch.autograd.grad(found.square().sum(), [ours, *parameters]),
        torch.autograd.grad(expected.square().sum(), [theirs, *parameters]),
        strict=True,
    )
    for one, two in pairs:
        torch.testing.assert_close(one, two, rtol=1e-10, atol=1e-12)
        assert two.abs().max() > 0


@CHUNKS
@pytest.mark.parametrize("mapped", [True, False])
@pytest.mark.parametrize("bytes_at_once", [1, 2 * 119 * 8, 64 * 2**20])
def test_a_sweep_is_the_loop_by_hand(
    mapped: bool, bytes_at_once: int, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hypernet, "BYTES_AT_ONCE", bytes_at_once)
    # as on a GPU, or as on a CPU
    monkeypatch.setattr(hypernet, "_can_vmap", lambda *_, **__: mapped)
    model, inputs, rays = _nudged(Hypernet(_small(), J, chunk=chunk)), _images(), _rays(5)
    expected = torch.stack([_by_hand(model, inputs, ray) for ray in rays])
    found = model.each_ray(inputs, rays)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


def test_weights_start_as_a_layer_per_tensor_would_draw_them() -> None:
    model = Hypernet(nn.Linear(200, 100), 2)
    assert model.emit.weight.abs().max() <= 0.1  # torch's bound, 1 / sqrt(100), whatever the tensor
    assert float(model.emit.weight.detach().std()) == pytest.approx(0.1 / 3**0.5, rel=0.01)


# What it costs


def test_the_paper_networks_have_the_published_parameters() -> None:
    # FACTS.md, section 2: PHN on Multi-MNIST and on Adult
    heads = {"top_left": 10, "bottom_right": 10}
    lenet = LeNet((1, 36, 36), heads, kernel=9, rectified=False)
    assert _count(Hypernet(lenet, 2)) == 3_243_410
    assert _count(Hypernet(Mlp((88,), 1), 2)) == 716_491


def test_the_weights_it_emits_are_not_kept() -> None:
    model = Hypernet(_small(), J)
    assert all(not name.startswith("backbone") for name in model.state_dict())
    assert list(model.buffers()) == []
    assert str(model).count("bias=False") == 0  # a layer still says that it has one
    assert model.extra_repr() == "objectives=3, emits=119"


@pytest.mark.parametrize(("chunk", "chunks"), [(119, None), (118, 2), (60, 2), (59, 3), (1, 119)])
def test_chunks_are_as_few_as_can_be_and_of_one_size(chunk: int, chunks: int | None) -> None:
    model = Hypernet(_small(), J, chunk=chunk)
    assert (None if model.chunks is None else len(model.chunks)) == chunks
    assert model.emit.out_features == -(-119 // (chunks or 1)) <= chunk


# Chunks


def test_a_chunked_network_starts_as_the_one_handed_over() -> None:
    network, inputs = _small(), _images()
    model = Hypernet(network, J, chunk=40)
    for ray in (_rays(), _rays(4), _rays(B)):
        assert torch.allclose(model(inputs, ray), network(inputs), rtol=0, atol=1e-14)
    assert {f"backbone.{name}" for name in network.state_dict()} <= model.state_dict().keys()


def test_after_a_step_every_chunk_and_every_weight_hears_the_ray() -> None:
    model, inputs = Hypernet(_small(), J, chunk=40), _images()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for ray in torch.eye(J, dtype=DOUBLE)[:2]:  # E is zero at first: its inputs learn second
        optimizer.zero_grad()
        model(inputs, ray).square().sum().backward()
        optimizer.step()
    assert (model.chunks.grad.abs().amax(dim=1) > 0).all()
    one, two = (model.weights(ray) for ray in torch.eye(J, dtype=DOUBLE)[:2])
    moved = torch.cat([(one[name] - two[name]).flatten() for name in one])
    assert (moved != 0).all()
    # and not all chunks alike, which share E
    a, b = moved[:40], moved[40:80]
    assert not torch.allclose(a, b, rtol=1e-3)


# Any network


class Encoder(nn.Module):
    """A transformer's layer, over five steps of eight numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.layer(x.reshape(-1, 5, 8))
        return out.mean(dim=1)


class Recurrent(nn.Module):
    """A GRU: its weights are also in a list of its own, which has to follow."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.GRU(8, 6, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.layer(x.reshape(-1, 5, 8))[0]
        return out[:, -1]


class Lists(nn.Module):
    """Weights in a list and a dictionary, and a single number."""

    def __init__(self) -> None:
        super().__init__()
        self.some = nn.ParameterList([torch.randn(40), torch.randn(40)])
        self.named = nn.ParameterDict({"scale": torch.randn(()), "shift": torch.randn(40)})

    def forward(self, x: Tensor) -> Tensor:
        return x * self.some[0] * self.some[1] * self.named["scale"] + self.named["shift"]


def _convolutional(norm: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Unflatten(1, (1, 5, 8)), nn.Conv2d(1, 4, 3), norm, nn.PReLU())


ANY: dict[str, Callable[[], nn.Module]] = {
    "transformer": Encoder,
    "gru": Recurrent,
    "lists": Lists,
    "batch_norm": lambda: _convolutional(nn.BatchNorm2d(4)),
    "group_norm": lambda: _convolutional(nn.GroupNorm(2, 4)),
    "weight_norm": lambda: nn.Sequential(weight_norm(nn.Linear(40, 3)), nn.LayerNorm(3)),
    "spectral_norm": lambda: spectral_norm(nn.Linear(40, 3)),
}


@pytest.mark.filterwarnings(NO_RULE)
@CHUNKS
@pytest.mark.parametrize("name", ANY)
def test_any_network_gives_what_it_gives_with_those_weights(name: str, chunk: int) -> None:
    network = ANY[name]().to(DOUBLE).eval()
    model = _nudged(Hypernet(network, J, chunk=chunk).float().double()).eval()
    inputs, rays = torch.randn(B, 40, dtype=DOUBLE), _rays(4)
    alone = []
    for ray in rays:
        copied, weights = copy.deepcopy(network), model.weights(ray)
        with torch.no_grad():
            for key, parameter in copied.named_parameters():
                parameter.copy_(weights[key])
        alone.append(copied(inputs).detach())
        torch.testing.assert_close(model(inputs, ray), alone[-1])
    with torch.no_grad():
        torch.testing.assert_close(model.each_ray(inputs, rays), torch.stack(alone))
        shares = [out[3 * at : 3 * at + 3] for at, out in enumerate(alone)]
        torch.testing.assert_close(model(inputs, rays), torch.cat(shares))
    twin = copy.deepcopy(model)
    assert torch.equal(twin(inputs, rays[0]), model(inputs, rays[0]))


@pytest.mark.parametrize("groups", [1, 4])
def test_running_statistics_are_kept_group_by_group(groups: int) -> None:
    network = nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4)).to(DOUBLE)
    model, inputs = Hypernet(network, J).train(), torch.randn(B, 5, dtype=DOUBLE)
    rays = _rays(groups)
    norm = nn.BatchNorm1d(4, dtype=DOUBLE)
    expected = []
    for share, ray in zip(inputs.chunk(groups), rays, strict=True):
        weights = model.weights(ray)
        out = norm(F.linear(share, weights["0.weight"], weights["0.bias"]))
        expected.append(out * weights["1.weight"] + weights["1.bias"])
    torch.testing.assert_close(model(inputs, rays), torch.cat(expected))
    for name, buffer in norm.named_buffers():
        torch.testing.assert_close(model.backbone.get_buffer(f"1.{name}"), buffer)
    assert set(model.state_dict()) >= {"backbone.1.running_mean", "backbone.1.running_var"}


def test_every_group_drops_units_of_its_own() -> None:
    network = nn.Sequential(nn.Identity(), nn.Dropout(0.5), Lists()).to(DOUBLE)
    model, ray = Hypernet(network, J).train(), _rays()
    out = model(torch.ones(B, 40, dtype=DOUBLE), ray.expand(4, J))
    assert not torch.equal(out[:3], out[3:6])


class Tied(nn.Module):
    """One weight in two places, and one module in two."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(4, 4), nn.Linear(4, 4)
        self.two.weight = self.one.weight
        self.again = self.one

    def forward(self, x: Tensor) -> Tensor:
        return self.again(torch.tanh(self.two(torch.tanh(self.one(x)))))


@pytest.mark.parametrize("chunk", [24, 10], ids=["whole", "chunked"])
def test_tied_weights_are_emitted_once(chunk: int) -> None:
    model = _nudged(Hypernet(Tied().to(DOUBLE), J, chunk=chunk))
    assert (model.chunks is None) == (chunk == 24)
    assert "emits=24" in model.extra_repr()  # 16 and two biases of 4
    inputs, ray = torch.randn(B, 4, dtype=DOUBLE), _rays()
    weights = model.weights(ray)
    assert weights["one.weight"] is weights["two.weight"]
    w, b, c = weights["one.weight"], weights["one.bias"], weights["two.bias"]
    expected = torch.tanh(inputs @ w.T + b)
    expected = torch.tanh(expected @ w.T + c) @ w.T + b
    before = list(model.state_dict())
    for _ in range(2):
        torch.testing.assert_close(model(inputs, ray), expected)
        torch.testing.assert_close(model(inputs, ray.expand(4, J)), expected)
    assert list(model.state_dict()) == before  # nothing stays where it was handed in


@CHUNKS
def test_frozen_weights_stay_what_they_are(chunk: int) -> None:
    network = _small()
    network[0].requires_grad_(False)
    model, inputs, ray = _nudged(Hypernet(network, J, chunk=chunk)), _images(), _rays()
    assert "emits=99" in model.extra_repr()
    kept, weights = model.get_submodule("backbone.0"), model.weights(ray)
    assert not any(p.requires_grad for p in kept.parameters())
    assert {"3.weight", "3.bias"} == weights.keys()
    features = torch.tanh(kept(inputs)).flatten(1)
    expected = features @ weights["3.weight"].T + weights["3.bias"]
    torch.testing.assert_close(model(inputs, ray), expected)


def test_weights_are_emitted_in_full_where_the_network_runs_in_half_precision() -> None:
    model, inputs = Hypernet(_small().float(), J), _images().float()
    seen: list[torch.dtype] = []
    model.backbone.register_forward_pre_hook(
        lambda module, _: seen.append(module.get_submodule("3").weight.dtype)
    )
    with torch.autocast("cpu", torch.bfloat16):
        out = model(inputs, _rays().float())
    assert seen == [torch.float32]
    assert out.dtype == torch.bfloat16


# What the engine does with it


@CHUNKS
@pytest.mark.parametrize("groups", [1, 4])
def test_a_recorded_step_repeats_the_numbers(groups: int, chunk: int) -> None:
    model = _nudged(Hypernet(_small(), J, chunk=chunk))
    names, values = zip(*model.named_parameters(), strict=True)

    def step(inputs: Tensor, rays: Tensor, *weights: Tensor) -> tuple[Tensor, ...]:
        leaves = [weight.detach().requires_grad_() for weight in weights]
        given = dict(zip(names, leaves, strict=True))
        out: Tensor = torch.func.functional_call(model, given, (inputs, rays))
        return out.detach(), *torch.autograd.grad(out.square().sum(), leaves)

    made = (_images(), _rays(groups), *(value.detach() for value in values))
    recorded = make_fx(step)(*made)
    again = (_images(), _rays(groups), *(value.detach() * 1.1 for value in values))
    for one, two in zip(recorded(*again), step(*again), strict=True):
        assert torch.equal(one, two)


# What is refused


@pytest.mark.parametrize(
    ("network", "settings", "says"),
    [
        (nn.Linear(3, 1), {"width": 0}, "`width`.*found 0"),
        (nn.Linear(3, 1), {"chunk": 0}, "`chunk`.*found 0"),
        (nn.ReLU(), {}, "trainable weights, found none"),
        (nn.Linear(3, 1).requires_grad_(False), {}, "trainable weights, found none"),
        (nn.Linear(3, 2, dtype=torch.complex64), {}, r"found torch\.complex64"),
    ],
)
def test_what_cannot_be_emitted_is_refused(
    network: nn.Module, settings: dict[str, int], says: str
) -> None:
    with pytest.raises(ConfigurationError, match=says):
        Hypernet(network, J, **settings)


def test_weights_of_several_types_are_refused() -> None:
    network = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1).to(DOUBLE))
    with pytest.raises(ConfigurationError, match=r"float32 on cpu, torch\.float64"):
        Hypernet(network, J)
    network[1].requires_grad_(False)
    for chunk in (8, 4):
        model = Hypernet(network, J, chunk=chunk)
        assert "emits=8" in model.extra_repr()
        assert model.get_parameter("backbone.1.weight").dtype == DOUBLE  # frozen: left as it is


def test_what_a_network_refuses_is_not_hidden() -> None:
    model = Hypernet(nn.Linear(5, 2), J)
    for ray in (torch.rand(J), torch.rand(4, J)):
        with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
            model(torch.randn(B, 6), ray)


def test_what_runs_out_of_memory_is_not_tried_ray_by_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Hypernet(nn.Linear(3, 1), 2)

    def full(*given: object, **named: object) -> Callable[..., object]:
        def mapped(*inputs: object) -> object:
            raise torch.cuda.OutOfMemoryError

        return mapped

    monkeypatch.setattr(torch, "vmap", full)
    with pytest.raises(torch.cuda.OutOfMemoryError):
        model(torch.zeros(4, 3), torch.full((2, 2), 0.5))
