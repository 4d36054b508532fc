"""Where a ray enters by default, what is tried out, what is refused and why."""

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from paretocosmos import condition
from paretocosmos.errors import ConfigurationError

RAYS = torch.tensor([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]])


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(9, 8)
        self.k_proj, self.q_proj, self.v_proj = (nn.Linear(8, 8) for _ in "kqv")
        self.spare, self.out = nn.Linear(8, 8), nn.Linear(8, 3)

    def forward(self, words: Tensor) -> Tensor:
        hidden = self.words(words)
        query, key, value = self.q_proj(hidden), self.k_proj(hidden), self.v_proj(hidden)
        return self.out(F.scaled_dot_product_attention(query, key, value).mean(dim=1))


def _words() -> Tensor:
    return torch.randint(0, 9, (6, 5), generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("layer", ["k_proj", "spare"])
def test_where_nothing_changes_is_refused_and_others_are_named(layer: str) -> None:
    model = condition(Attention(), 2, how="input", layer=layer)
    for _ in range(2):  # not only once
        with pytest.raises(ConfigurationError, match=f"`{layer}` changes") as caught:
            model(_words(), RAYS[0])
        assert "name another layer" in str(caught.value)
    with torch.no_grad():
        model(_words(), RAYS[0])  # nothing is to be trained


@pytest.mark.parametrize("layer", ["q_proj", "v_proj", "out"])
def test_where_something_changes_it_goes_on(layer: str) -> None:
    assert condition(Attention(), 2, how="input", layer=layer)(_words(), RAYS[0]).shape == (6, 3)


def test_a_hint_before_any_input_names_no_keys_and_no_output() -> None:
    with pytest.raises(ConfigurationError, match='layer="q_proj"') as caught:
        condition(Attention(), 2, how="input")
    assert "k_proj" not in str(caught.value)
    assert "out" not in str(caught.value).split("(there are:")[1]


def test_zeros_in_a_network_hide_no_place() -> None:
    last = nn.Linear(8, 2)
    nn.init.zeros_(last.weight)
    network = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), last)
    for how in ("input", "film"):
        condition(network, 2, how=how, layer="0", settings={})(torch.randn(4, 3), RAYS[0])


def test_trying_out_leaves_everything_as_it_was() -> None:
    network = nn.Sequential(
        nn.Linear(3, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 8), nn.Linear(8, 2)
    )
    model, inputs = condition(network, 2, norm="keep"), torch.randn(6, 3)
    model(inputs, RAYS)
    calls: list[int] = []
    model.backbone.register_forward_hook(lambda *_: calls.append(1))
    first, state = model.state_dict(), torch.get_rng_state()
    kept = {key: value.clone() for key, value in first.items()}
    with torch.no_grad():
        model(torch.cat([inputs, inputs]), RAYS)  # another shape is looked at
        assert len(calls) > 1
        calls.clear()
        model(torch.cat([inputs, inputs]), RAYS)
    assert calls == [1]
    assert all(part.training for part in model.modules())
    counted = model.get_buffer("backbone.1.layer.num_batches_tracked")
    assert counted == kept["backbone.1.layer.num_batches_tracked"] + 2  # of the two calls alone
    torch.set_rng_state(state)
    dropped = [model(torch.cat([inputs, inputs]), RAYS) for _ in range(2)]
    assert not torch.equal(*dropped)


def test_a_recurrent_layers_state_and_outputs_are_scaled_alike(nudge: Any) -> None:
    rnn = nn.LSTM(3, 4, num_layers=2)
    model: Any = condition(rnn, 2, how="film", settings={"rank": 0})
    nudge(model.perceptron)
    steps = torch.randn(5, 6, 3)
    outputs, (state, cells) = model(steps, RAYS)
    plain, (inner, same) = rnn(steps)
    torch.testing.assert_close(outputs[-1], state[-1])
    torch.testing.assert_close(state[0], inner[0])
    torch.testing.assert_close(cells, same)
    told = model.perceptron(2 * RAYS - 1).repeat_interleave(2, dim=0)
    torch.testing.assert_close(outputs, plain * (1 + told[:, :4]) + told[:, 4:])


def test_samples_that_influence_one_another_have_a_call_per_ray(nudge: Any) -> None:
    class Centred(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.enter, self.head = nn.Linear(3, 8), nn.Linear(8, 2)

        def forward(self, inputs: Tensor) -> Tensor:
            hidden = self.enter(inputs)
            return self.head((hidden - hidden.mean(dim=0)).relu())

    model: Any = condition(Centred(), 2)
    nudge(model)
    inputs = torch.randn(6, 3)
    alone = [model(inputs, ray)[2 * at : 2 * at + 2] for at, ray in enumerate(RAYS)]
    torch.testing.assert_close(model(inputs, RAYS), torch.cat(alone))
    with pytest.raises(ConfigurationError, match="4 rays"):
        model(inputs, torch.rand(4, 2))


def test_a_block_without_samples_has_a_call_per_ray(nudge: Any) -> None:
    class Positions(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.enter, self.place, self.head = nn.Linear(3, 8), nn.Linear(2, 8), nn.Linear(8, 2)
            self.register_buffer("where", torch.randn(6, 2))  # as many steps as samples

        def forward(self, inputs: Tensor) -> Tensor:
            return self.head((self.enter(inputs) + self.place(self.where)).relu().sum(dim=1))

    model: Any = condition(Positions().double(), 2)
    nudge(model)
    inputs = torch.randn(6, 6, 3).double()
    alone = [model(inputs, ray)[2 * at : 2 * at + 2] for at, ray in enumerate(RAYS)]
    torch.testing.assert_close(model(inputs, RAYS), torch.cat(alone))
    every = torch.stack([model(inputs, ray) for ray in RAYS])
    torch.testing.assert_close(model.each_ray(inputs, RAYS), every)


class TiedAutoencoder(nn.Module):
    """One layer, which encodes, and decodes transposed."""

    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Linear(4, 4)

    def forward(self, inputs: Tensor) -> Tensor:
        return F.linear(self.encode(inputs), self.encode.weight.T)


@pytest.mark.parametrize("build", [partial(nn.Linear, 4, 4), TiedAutoencoder])
def test_a_network_of_one_layer_gets_the_whole_front(build: Callable[[], nn.Module]) -> None:
    model = condition(build(), 2)
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(128, 4, generator=generator)
    targets = torch.stack([inputs, -inputs])  # no shift goes from one to the other
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.01, total_iters=500)
    for _ in range(500):
        share = torch.rand(1, generator=generator)
        ray = torch.cat([share, 1 - share])
        losses = (model(inputs, ray) - targets).square().mean(dim=(1, 2))
        optimizer.zero_grad()
        (ray * losses).sum().backward()
        optimizer.step()
        schedule.step()
    for weight in (0.1, 0.5, 0.9):
        # the weighted sum is smallest at the weighted mean of the targets
        expected = (2 * weight - 1) * inputs
        outputs = model(inputs, torch.tensor([weight, 1 - weight]))
        assert (outputs - expected).square().mean() < 0.02


class Expert(nn.Module):
    """A tower that ends in one output; `self` may have another name."""

    def __init__(self, activation: nn.Module) -> None:
        super().__init__()
        self.hidden, self.score, self.activation = nn.Linear(4, 8), nn.Linear(8, 1), activation

    def forward(module, inputs: Tensor) -> Tensor:  # noqa: N805
        score = module.score(module.hidden(inputs).relu())
        return module.activation(score)


class Gated(nn.Module):
    """A block whose last layer of one output multiplies all its channels."""

    def __init__(self) -> None:
        super().__init__()
        self.mix, self.gate = nn.Linear(4, 4), nn.Linear(4, 1)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.mix(inputs) * self.gate(inputs).sigmoid()


class Mixture(nn.Module):
    """Experts weighted by a gate, towers side by side, or an ensemble."""

    def __init__(self, experts: list[nn.Module], join: str) -> None:
        super().__init__()
        self.experts, self.gate = nn.ModuleList(experts), nn.Linear(4, len(experts))
        self.join = join

    def forward(self, inputs: Tensor) -> Tensor:
        scores = torch.stack([expert(inputs) for expert in self.experts], dim=1)
        if self.join == "gate":
            weights: Tensor = self.gate(inputs).softmax(dim=1)
            return (scores * weights.unsqueeze(2)).sum(dim=1)
        return scores.flatten(1) if self.join == "towers" else scores.mean(dim=1)


def _sequence() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1), nn.Sigmoid())


@pytest.mark.parametrize("join", ["gate", "towers", "mean"])
@pytest.mark.parametrize(
    "make_expert", [_sequence, Gated, lambda: Expert(nn.Identity()), lambda: Expert(nn.Sigmoid())]
)
@pytest.mark.parametrize("rank", [0, 1])
def test_mixtures_of_networks_with_one_output(
    make_expert: Any, join: str, rank: int, nudge: Any
) -> None:
    network = Mixture([make_expert() for _ in range(3)], join)
    model = condition(network, 2, settings={"rank": rank})
    inputs = torch.randn(6, 4)
    torch.testing.assert_close(model(inputs, RAYS), network(inputs))
    nudge(model)
    alone = [model(inputs, ray)[2 * at : 2 * at + 2] for at, ray in enumerate(RAYS)]
    torch.testing.assert_close(model(inputs, RAYS), torch.cat(alone))
    assert not torch.allclose(model(inputs, RAYS[0]), model(inputs, RAYS[1]))


def test_what_is_named_before_an_int8_layer_is_refused() -> None:
    body = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 4))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quantised = torch.ao.quantization.quantize_dynamic(body[1:].eval(), {nn.Linear})
    network = nn.Sequential(body[0], quantised, nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
    with pytest.raises(ConfigurationError, match=r"`0`, .*quantised"):
        condition(network, 2, how="film", layer="0")
    assert condition(network, 2, how="film", settings={"rank": 0}).places == ("1.2", "2")


def test_equal_samples_teach_nothing_for_later_calls() -> None:
    network = nn.Sequential(nn.Embedding(9, 8), nn.Flatten(), nn.Linear(40, 8), nn.Linear(8, 2))
    model = condition(network, 2).eval()
    with torch.no_grad():
        for words, calls in ((torch.zeros(6, 5, dtype=torch.long), 3), (_words(), 1)):
            model(words, RAYS)
            counted: list[int] = []
            handle = model.backbone.register_forward_hook(lambda *_, c=counted: c.append(1))
            model(words, RAYS)
            handle.remove()
            assert (len(counted) >= calls) if calls > 1 else counted == [1]


def test_a_call_that_is_compiled_uses_what_was_found(nudge: Any) -> None:
    class TimeFirst(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.enter, self.norm, self.head = nn.Linear(3, 8), nn.LayerNorm(8), nn.Linear(8, 2)

        def forward(self, inputs: Tensor) -> Tensor:
            steps = self.norm(self.enter(inputs).transpose(0, 1))
            return self.head(steps.mean(dim=0))

    model: Any = condition(TimeFirst(), 2)
    nudge(model)
    inputs = torch.randn(6, 6, 3)
    expected = model(inputs, RAYS)
    try:
        compiled: Any = torch.compile(model, backend="eager", fullgraph=True)
        torch.testing.assert_close(compiled(inputs, RAYS), expected)
    finally:
        torch._dynamo.reset()
