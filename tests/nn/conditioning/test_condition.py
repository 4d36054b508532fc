"""`condition` against the network it was given: the same at the start, a front's worth after."""

import copy
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn

from paretocosmos import Conditioning, condition, cosmos_loss
from paretocosmos.errors import ConfigurationError
from paretocosmos.nn.backbones import Mlp
from paretocosmos.nn.conditioning import Concat, Film, LowRank, TransposedConv
from paretocosmos.objectives import pick
from paretocosmos.types import Outputs

B, J = 6, 3
NETWORKS = ("perceptron", "tokens", "images", "towers", "transformer")
PAIRS = [(name, how) for name in NETWORKS for how in ("input", "film")]
PAIRS.remove(("transformer", "input"))  # its input enters an attention
Make = Callable[..., tuple[nn.Module, Any]]
Rays = Callable[..., Tensor]
Nudge = Callable[[nn.Module], None]


def _named(outputs: Outputs) -> Mapping[str, Tensor]:
    return outputs if isinstance(outputs, Mapping) else {"": outputs}


def _call(network: nn.Module, inputs: Any) -> Mapping[str, Tensor]:
    return _named(network(**inputs) if isinstance(inputs, Mapping) else network(inputs))


@pytest.mark.parametrize(("name", "how"), PAIRS)
def test_it_starts_as_the_network(name: str, how: str, make: Make, rays: Rays) -> None:
    network, inputs = make(name)
    before = copy.deepcopy(network.state_dict())
    kinds = [type(part) for part in network.modules()]
    model = condition(network, J, how=how)
    expected = _call(network, inputs)
    for shape in ((), (3,), (B,)):
        found = _named(model(inputs, ray=rays(*shape)))
        assert found.keys() == expected.keys()
        for key, out in found.items():
            torch.testing.assert_close(out, expected[key], rtol=0, atol=1e-12)
    # and what was handed over is neither changed nor shared
    own = {id(part) for part in network.parameters()}
    assert own.isdisjoint(id(part) for part in model.parameters())
    assert [type(part) for part in network.modules()] == kinds
    assert all(torch.equal(v, before[key]) for key, v in network.state_dict().items())


@pytest.mark.parametrize("how", ["input", "film"])
def test_in_single_precision_it_starts_exactly_as_the_network(how: str, make: Make) -> None:
    for name in ("perceptron", "tokens", "images"):
        network, inputs = make(name)
        model = condition(network.float(), J, how=how)
        for ray in (torch.rand(J), torch.rand(3, J)):
            assert torch.equal(model(inputs.float(), ray), network(inputs.float()))


@pytest.mark.parametrize(("name", "how"), PAIRS)
def test_it_hears_the_ray_and_trains(
    name: str, how: str, make: Make, rays: Rays, nudge: Nudge
) -> None:
    network, inputs = make(name)
    model = condition(network, J, how=how)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.02)
    targets = torch.randn(J, B, dtype=torch.float64)
    start = copy.deepcopy(model.state_dict())

    def loss(ray: Tensor) -> Tensor:
        out = torch.stack([out.reshape(B, -1)[:, 0] for out in _named(model(inputs, ray)).values()])
        losses = (out[0] + out[-1] - targets).square().mean(dim=1)
        return cosmos_loss(losses, ray, penalty=0.1)

    ray, history = rays(), []
    for _ in range(8):
        optimiser.zero_grad()
        value = loss(ray)
        value.backward()
        optimiser.step()
        history.append(value.item())
    assert history[-1] < history[0]
    unmoved = [key for key, value in model.state_dict().items() if torch.equal(value, start[key])]
    assert unmoved == []
    nudge(model)
    one, two = (_named(model(inputs, ray)) for ray in torch.eye(J, dtype=torch.float64)[:2])
    assert all(not torch.allclose(out, two[key]) for key, out in one.items() if key != "size")


def test_the_default_preset_moves_every_weight_and_the_paper_enters_beside_the_input() -> None:
    network = Mlp((4,), 1, hidden=(5,))
    usual, named = condition(network, 2), condition(network, 2, how="film")
    for model in (usual, named):
        assert isinstance(model, Film)
        assert model.places == ("layers.0", "layers.0.layer", "layers.2")
        ranks = {
            part.reads.weight.shape[0] // 2 for part in model.modules() if isinstance(part, LowRank)
        }
        assert ranks == {1}
    plain = condition(network, 2, settings={"rank": 0})
    published = condition(network, 2, preset="paper", how="film")
    assert plain.places == published.places == ("layers.0",)
    assert isinstance(condition(network, 2, preset="paper"), Concat)
    assert isinstance(condition(network, 2, how="input"), Concat)
    with pytest.raises(ConfigurationError, match=r"preset `own`; .*default, paper"):
        condition(network, 2, preset="own")


def test_one_of_ones_own_and_settings_work() -> None:
    model = condition(Mlp((4,), 1), 2, how="paretocosmos.nn.conditioning.concat:Concat")
    assert isinstance(model, Concat)
    drawn = condition(Mlp((4,), 1), 2, how="input", settings={"zero": False})
    assert drawn.get_parameter("backbone.layers.0.ray.weight").abs().min() > 0
    narrow: Any = condition(Mlp((4,), 1), 2, how="film", settings={"width": 7})
    assert narrow.perceptron[0].out_features == 7


def test_by_name_the_papers_weights_are_still_drawn() -> None:
    for kind, network in ((Concat, nn.Linear(4, 5)), (TransposedConv, nn.Conv2d(1, 5, 3))):
        assert inspect.signature(kind).parameters["zero"].default is False
        drawn, zero = (kind(network, 2, zero=zero) for zero in (False, True))
        assert drawn.get_parameter("backbone.ray.weight").abs().min() > 0
        assert zero.get_parameter("backbone.ray.weight").count_nonzero() == 0


def test_the_first_layer_decides_and_can_be_named(make: Make) -> None:
    images, _ = make("images")
    assert isinstance(condition(images, J, how="input"), TransposedConv)
    assert isinstance(head := condition(images, J, how="input", layer="head"), Concat)
    assert head.places == ("head",)
    assert condition(images, J, how="input", layer=["rest.0"]).places == ("rest.0",)
    towers, _ = make("towers")
    assert condition(towers, J, preset="paper").places == ("user.0",)
    plain = {"rank": 0}
    film = condition(towers, J, how="film", settings=plain)
    assert film.places == ("user.0", "user.2", "item.0")
    both = condition(towers, J, how="film", layer=("user.0", "item.0"), settings=plain)
    assert both.places == ("user.0", "item.0")
    assert "after=('user.0', 'item.0')" in repr(both)
    assert "layer='head'" in repr(head)


def test_a_frozen_network_stays_frozen(make: Make) -> None:
    network, _ = make("tokens")
    network.requires_grad_(False)
    ways: list[tuple[str, dict[str, int]]] = [("input", {}), ("film", {}), ("film", {"rank": 1})]
    for how, settings in ways:
        model = condition(network, J, how=how, settings=settings)
        free = {key for key, p in model.named_parameters() if p.requires_grad}
        assert free == set(model.ray_parameters)


# What a network may give


class Output(dict[str, Tensor]):
    """Like a ModelOutput: a mapping whose entries are attributes too."""

    def __getattr__(self, name: str) -> Tensor:
        return self[name]


@dataclass
class Record:
    logits: Tensor
    hidden: tuple[Tensor, ...]


class Pair(NamedTuple):
    logits: Tensor
    hidden: Tensor


class Gives(nn.Module):
    def __init__(self, pack: Callable[[Tensor, Tensor], Any]) -> None:
        super().__init__()
        self.first, self.last, self.pack = nn.Linear(4, 5), nn.Linear(5, 2), pack

    def forward(self, numbers: Tensor, *, scale: float = 1.0) -> Any:
        hidden = self.first(numbers * scale).tanh()
        return self.pack(self.last(hidden), hidden)


@pytest.mark.parametrize(
    ("pack", "kind", "name"),
    [
        (lambda out, hidden: Output(logits=out, hidden=hidden), Output, "logits"),
        (lambda out, hidden: Record(out, (hidden,)), Record, "logits"),
        (lambda out, hidden: (out, hidden), tuple, "0"),
        (Pair, Pair, "0"),
    ],
)
@pytest.mark.parametrize("how", ["input", "film", "lora", "none"])
def test_outputs_pass_through_and_are_read_by_name(
    how: str, pack: Callable[[Tensor, Tensor], Any], kind: type, name: str
) -> None:
    network, numbers, ray = Gives(pack), torch.randn(B, 4), torch.rand(2, 2)
    model = condition(network, 2, how=how)
    inputs: Any = {"numbers": numbers, "scale": 2.0}
    outputs: Any = model(inputs, ray)
    assert type(outputs).__name__ == kind.__name__
    expected = pick(network(numbers, scale=2.0), name)
    assert torch.equal(pick(outputs, name), expected)
    swept = model.each_ray(inputs, ray)
    if kind is not Output:  # of mappings, only those that are dataclasses too
        assert type(swept) is type(outputs) is type(network(numbers))
    torch.testing.assert_close(pick(swept, name), expected.expand(2, -1, -1))
    with pytest.raises(TypeError, match="size"):  # which forward does not know
        model({"numbers": numbers, "size": torch.ones(())}, ray)


# Mistakes


@pytest.mark.parametrize(
    ("network", "settings", "says"),
    [
        (nn.ReLU(), {}, 'how="input".*ReLU'),
        (nn.Embedding(5, 3), {}, 'Embedding at ``: .*how="film"; .*no linear'),
        (nn.Embedding(5, 1), {}, 'Embedding at ``: .*how="hypernet"; .*no linear'),
        (
            nn.Sequential(nn.Embedding(5, 3), nn.Flatten(), nn.Linear(3, 1)),
            {},
            'Embedding at `0`: .*how="film".*layer="2"',
        ),
        (nn.Sequential(nn.Conv1d(1, 1, 3), nn.Linear(3, 1)), {}, "found Conv1d at `0`"),
        (nn.LSTM(3, 4), {}, "found LSTM"),
        (nn.MultiheadAttention(4, 2), {}, "found MultiheadAttention"),
        (Mlp((4,), 1), {"layer": "layers.1"}, "ReLU at `layers.1`: .*layers.0, layers.2"),
        (Mlp((4,), 1), {"layer": "nowhere"}, "`nowhere`: .*layers.0, layers.2"),
        (Mlp((4,), 1), {"layer": ("a", "b")}, 'found 2 .* how="film"'),
        (nn.TransformerEncoderLayer(4, 2, 8), {"layer": "linear1"}, "`linear1` is not always"),
        (Mlp((4,), 1), {"how": "flim"}, "`flim`; .*`film`"),
        (Mlp((4,), 1), {"how": "inputs"}, "did you mean `input`"),
        (Mlp((4,), 1), {"how": "hypernet", "layer": "layers.0"}, "takes the whole network"),
        (Mlp((4,), 1), {"how": "torch.nn:ReLU"}, "cannot be built"),
        (Mlp((4,), 1), {"how": f"{__name__}:no"}, "cannot be imported"),
        (Mlp((4,), 1), {"settings": {"wide": 3}}, "`concat` .*'wide'"),
        (Mlp((4,), 1), {"objectives": 0}, "`objectives`.*found 0"),
        (Mlp((4,), 1), {"objectives": 1.5}, r"`objectives`.*found 1\.5"),
        (Mlp, {}, "class Mlp: build it"),
        (Concat(Mlp((4,), 1), 2), {}, "not be conditioned already, found Concat"),
    ],
)
def test_what_cannot_be_conditioned_is_refused(
    network: Any, settings: dict[str, Any], says: str
) -> None:
    usual: dict[str, Any] = {"objectives": 2, "how": "input"}
    with pytest.raises(ConfigurationError, match=says) as caught:
        condition(network, **usual | settings)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("how", ["input", "film", "hypernet", "none"])
@pytest.mark.parametrize("entry", [-0.5, float("nan"), float("inf")])
def test_a_ray_with_an_entry_that_is_no_weight_is_refused(
    entry: float, how: str, make: Make
) -> None:
    network, inputs = make("perceptron")
    model: Conditioning = condition(network, J, how=how)
    ray = torch.tensor([[0.2, 0.3, 0.5], [entry, 0.5, 0.5]], dtype=torch.float64)
    with pytest.raises(ConfigurationError, match=rf">= 0, found \[{entry}, 0\.5, 0\.5\]"):
        model(inputs, ray)
    with pytest.raises(ConfigurationError, match=">= 0"):
        model.each_ray(inputs, ray)


def test_a_list_is_no_ray(make: Make) -> None:
    network, inputs = make("perceptron")
    ray: Any = [0.2, 0.3, 0.5]
    with pytest.raises(ConfigurationError, match=r"found list: .*torch\.tensor"):
        condition(network, J)(inputs, ray)


def test_a_network_without_shapes_is_refused_until_it_is_called() -> None:
    network = nn.Sequential(nn.LazyLinear(4), nn.ReLU(), nn.Linear(4, 1))
    with pytest.raises(ConfigurationError, match=r"found `0\.weight` of a lazy layer"):
        condition(network, 2)
    network(torch.zeros(2, 3))
    assert condition(network, 2)(torch.zeros(2, 3), torch.rand(2)).shape == (2, 1)


def test_a_network_that_cannot_be_copied_is_refused() -> None:
    network = nn.Linear(2, 1)
    network.kept = network(torch.zeros(1, 2))
    with pytest.raises(ConfigurationError, match="does not allow"):
        condition(network, 2)


def test_a_part_called_alone_says_what_to_call(make: Make) -> None:
    network, inputs = make("perceptron")
    for how in ("input", "film"):
        with pytest.raises(ConfigurationError, match=r"`model\(inputs, ray"):
            condition(network, J, how=how).backbone(inputs)
