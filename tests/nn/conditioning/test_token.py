"""Tokens before a sequence, against a network that is handed the whole embedded sequence."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from paretocosmos.errors import ConfigurationError
from paretocosmos.nn.conditioning import Token

B, T, J, K, WIDTH = 6, 5, 3, 2, 4
Rays = Callable[..., Tensor]


class Reader(nn.Module):
    """Embedded words and positions through attention; an answer per word, and one for all."""

    def __init__(self, classes: int = T + K) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(9, WIDTH), nn.Embedding(12, WIDTH)
        self.mix = nn.TransformerEncoderLayer(WIDTH, 2, 8, dropout=0.0, batch_first=True)
        self.each, self.all = nn.Linear(WIDTH, 3), nn.Linear(WIDTH, classes)

    def embedded(self, words: Tensor) -> Mapping[str, Tensor]:
        hidden = self.mix(words + self.places(torch.arange(words.shape[1])))
        return {"each": self.each(hidden), "all": self.all(hidden.mean(dim=1))}

    def forward(self, ids: Tensor) -> Mapping[str, Tensor]:
        return self.embedded(self.words(ids))


@pytest.fixture
def network() -> Reader:
    torch.manual_seed(3)
    return Reader().double()


@pytest.fixture
def model(network: Reader) -> Token:
    made = Token(network, J, tokens=K)
    with torch.no_grad():
        for parameter in made.perceptron.parameters():
            parameter.normal_()
    return made


IDS = torch.arange(B * T).view(B, T) % 9


def _literal(model: Token, network: Reader, ids: Tensor, ray: Tensor) -> dict[str, Tensor]:
    tokens = model.start + model.perceptron(J * ray - 1)
    front = tokens.view(1, K, WIDTH).expand(len(ids), -1, -1)
    found = dict(network.embedded(torch.cat([front, network.words(ids)], dim=1)))
    return found | {"each": found["each"][:, K:]}


def test_tokens_stand_before_the_sequence_and_are_taken_off(
    model: Token, network: Reader, rays: Rays
) -> None:
    ray = rays()
    found, wanted = model(IDS, ray), _literal(model, network, IDS, ray)
    # as many classes as there are positions then: only a longer sequence tells the two apart
    assert found["each"].shape == (B, T, 3)
    assert found["all"].shape == (B, T + K)
    for name, part in wanted.items():
        torch.testing.assert_close(found[name], part)


def test_groups_and_sweeps_are_the_loop_over_rays(
    model: Token, network: Reader, rays: Rays
) -> None:
    three = rays(3)
    alone = [
        _literal(model, network, ids, ray)["each"]
        for ids, ray in zip(IDS.chunk(3), three, strict=True)
    ]
    torch.testing.assert_close(model(IDS, three)["each"], torch.cat(alone))
    every = torch.stack([_literal(model, network, IDS, ray)["all"] for ray in three])
    swept: Any = model.each_ray(IDS, three)
    torch.testing.assert_close(swept["all"], every)


def test_it_starts_the_same_at_every_ray_from_rows_of_the_embedding(network: Reader) -> None:
    model = Token(network, J, tokens=K)
    one, two = (model(IDS, ray)["each"] for ray in torch.eye(J).double()[:2])
    assert torch.equal(one, two)
    for token in model.start.view(K, WIDTH):
        assert (token == network.words.weight).all(dim=1).any()
    assert "backbone.words.layer.weight" in model.state_dict()
    perceptron = [f"perceptron.{at}.{name}" for at in (0, 2) for name in ("weight", "bias")]
    assert list(model.ray_parameters) == ["start", *perceptron]


def test_a_recurrent_network_of_words(rays: Rays) -> None:
    class Recurrent(nn.Module):
        def __init__(self, *, batch_first: bool) -> None:
            super().__init__()
            self.words = nn.Embedding(9, WIDTH, padding_idx=0)
            self.gru = nn.GRU(WIDTH, 3, batch_first=batch_first)

        def forward(self, ids: Tensor) -> tuple[Tensor, Tensor]:
            out, last = self.gru(self.words(ids))
            return out, last

    network = Recurrent(batch_first=True).double()
    model, ray = Token(network, J, tokens=K), rays()
    front = (model.start + model.perceptron(J * ray - 1)).view(1, K, WIDTH).expand(B, -1, -1)
    out, last = network.gru(torch.cat([front, network.words(IDS)], dim=1))
    found: Any = model(IDS, ray)
    torch.testing.assert_close(found[0], out[:, K:])
    torch.testing.assert_close(found[1], last)
    with pytest.raises(ConfigurationError, match=r"change nothing .* \[batch, positions\]"):
        Token(Recurrent(batch_first=False).double(), J)


class Seeing(nn.Module):
    """Keeps what it is called with."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(9, WIDTH, padding_idx=0)
        self.seen: dict[str, Tensor] = {}

    def forward(self, input_ids: Tensor, **given: Tensor) -> Tensor:
        self.seen = {"input_ids": input_ids, **given}
        return self.words(input_ids).cumsum(dim=1)


def test_what_belongs_to_positions_grows_with_them(rays: Rays) -> None:
    ones = torch.ones(B, T, dtype=torch.long)
    given = dict.fromkeys(("input_ids", "attention_mask", "token_type_ids", "labels"), ones)
    given["position_ids"] = torch.arange(T).expand(1, T)
    given["weight"] = torch.ones(B)  # not of positions
    model: Any = Token(Seeing().double(), J, tokens=K)
    model(given, rays())
    found = model.backbone.seen
    assert torch.equal(found.pop("weight"), torch.ones(B))
    new = {name: part[0, :K].tolist() for name, part in found.items()}
    assert new == {
        "input_ids": [1, 1], "attention_mask": [1, 1], "token_type_ids": [0, 0],
        "labels": [-100, -100], "position_ids": [0, 1],
    }  # fmt: skip
    assert found["position_ids"].tolist() == [list(range(T + K))]


@pytest.mark.parametrize(
    ("inputs", "says"),
    [
        ({"input_ids": IDS, "past_key_values": object()}, "found `past_key_values`"),
        ({"inputs_embeds": torch.zeros(B, T, 3)}, "found `inputs_embeds`"),
        ({"one": IDS, "two": IDS}, "one input with ids.* found one, two"),
        ({"input_ids": IDS, "segments": IDS}, "`segments` of shape"),
        (torch.zeros(B, dtype=torch.long), r"shape \(6,\)"),
    ],
)
def test_inputs_that_it_cannot_lengthen_are_refused(
    inputs: Any, says: str, model: Token, rays: Rays
) -> None:
    with pytest.raises(ConfigurationError, match=says):
        model(inputs, rays())


class Bag(nn.Module):
    """Words that do not see each other."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.out = nn.Embedding(9, WIDTH), nn.Linear(WIDTH, 3)

    def forward(self, ids: Tensor) -> Tensor:
        return self.out(self.words(ids))


@pytest.mark.parametrize(
    ("network", "settings", "says"),
    [
        (Reader(), {"tokens": 0}, "`tokens` must be at least 1, found 0"),
        (Reader(), {"width": 0}, "`width`"),
        (Reader(), {"layer": "each"}, "found Linear at `each`.*there are: words, places"),
        (Reader(), {"tokens": 20}, "but Reader raises IndexError"),
        (nn.Linear(3, 2), {}, "found Linear at what the input enters.*none"),
        (Bag(), {}, "change nothing in Bag"),
    ],
)
def test_networks_without_a_place_for_tokens_are_refused(
    network: nn.Module, settings: dict[str, Any], says: str
) -> None:
    with pytest.raises(ConfigurationError, match=says):
        Token(network, J, **settings)
