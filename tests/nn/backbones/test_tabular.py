import itertools
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from paretocosmos.errors import ConfigurationError
from paretocosmos.nn.backbones import Tabular
from paretocosmos.types import Batch

KNOTS = ((-1.0, 0.0, 0.001, 2.0), (), (0.5, 0.75))


def _network(members: int = 3, outputs: int = 2, **settings: object) -> Tabular:
    """A small network whose members differ everywhere."""
    torch.manual_seed(0)
    given = {"hidden": (6, 5), "embedding": 4, "knots": KNOTS} | settings
    network = Tabular((5,), outputs, members=members, **given).double()  # type: ignore[arg-type]
    for part in (*network.scales, *network.shifts):
        nn.init.normal_(part.get_parameter("numbers"), 1.0, 0.5)
    return network


def _member(network: Tabular, at: int, inputs: Tensor) -> Tensor:
    """One member as a plain network: the shared matrices, scaled and shifted into its own."""
    features: Tensor = network.embed(network.encode(inputs))
    every: list[Any] = [*zip(network.layers, network.scales, network.shifts, strict=True)]
    for layer, (linear, scale, shift) in enumerate(every):
        own, add = (part.numbers.view(part.members, -1)[at] for part in (scale, shift))
        features = F.relu(features) if layer else features
        features = features @ (linear.weight * own).T + linear.bias + add
    return features


def test_a_number_is_encoded_piece_by_piece() -> None:
    network = _network()
    inputs = torch.randn(40, 5, dtype=torch.float64)
    inputs[:4, 0] = torch.tensor([-torch.inf, torch.inf, 0.0, 2.0])
    expected = np.zeros((40, 7))
    for row, values in enumerate(inputs.numpy()):
        out = []
        for column, knots in enumerate(KNOTS):
            for before, after in itertools.pairwise(knots):
                share = (values[column] - before) / (after - before)
                out.append(min(max(share, 0.0), 1.0))
        expected[row] = [*out, values[1], values[3], values[4]]
    np.testing.assert_allclose(network.encode(inputs).numpy(), expected, rtol=0, atol=1e-5)


def test_one_member_is_a_plain_network() -> None:
    network = _network(members=1)
    inputs = torch.randn(9, 5, dtype=torch.float64)
    first, second, last = network.layers
    plain = nn.Sequential(network.embed, first, nn.ReLU(), second, nn.ReLU(), last)
    for mode in (True, False):
        network.train(mode)
        assert torch.equal(network(inputs), plain(network.encode(inputs)))
    assert not len(network.scales)


def test_rows_take_turns_while_members_learn() -> None:
    network = _network().train()
    inputs = torch.randn(8, 5, dtype=torch.float64)  # not a multiple of the members
    expected = torch.stack([_member(network, at % 3, inputs)[at] for at in range(8)])
    torch.testing.assert_close(network(inputs), expected)


@pytest.mark.parametrize(
    ("averages", "outputs"), [("outputs", 2), ("probabilities", 1), ("probabilities", 2)]
)
def test_members_answer_together(averages: str, outputs: int) -> None:
    network = _network(outputs=outputs, averages=averages).eval()
    inputs = torch.randn(8, 5, dtype=torch.float64)
    each = [_member(network, at, inputs) for at in range(3)]
    if averages == "outputs":
        torch.testing.assert_close(network(inputs), sum(each) / 3)
    elif outputs == 1:
        torch.testing.assert_close(
            network(inputs).sigmoid(), sum(one.sigmoid() for one in each) / 3
        )
    else:
        torch.testing.assert_close(
            network(inputs).softmax(1), sum(one.softmax(1) for one in each) / 3
        )


def test_sure_members_give_no_infinite_logit() -> None:
    network = _network(members=2, outputs=1, averages="probabilities").eval()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.zero_()
        network.shifts[-1].get_parameter("numbers").copy_(torch.tensor([200.0, 90.0]))
        (found,) = network(torch.zeros(1, 5, dtype=torch.float64))
    assert 90 < float(found) < 91  # log 2 more than the less sure one, whose doubt is half of all


@pytest.mark.parametrize(
    ("targets", "outputs", "averages"),
    [
        (
            {"label": torch.tensor([0.0, 1.0]), "sensitive": torch.tensor([3, 4])},
            1,
            "probabilities",
        ),
        ({"price": torch.tensor([0.5, 1.0]), "weight": torch.tensor([3.0, 4.0])}, 1, "outputs"),
        ({"label": torch.tensor([0, 2])}, 3, "probabilities"),
        ({"a": torch.tensor([0, 2]), "b": torch.tensor([0, 1])}, {"a": 3, "b": 2}, "probabilities"),
        ({"a": torch.tensor([0, 2]), "b": torch.tensor([0.0, 1])}, {"a": 3, "b": 1}, "outputs"),
        ({"x": torch.tensor([[0.0, 1.0], [1.0, 0.5]])}, 2, "outputs"),
        ({}, 1, "outputs"),
    ],
)
def test_probabilities_are_averaged_where_targets_are_classes(
    targets: dict[str, Tensor], outputs: int | dict[str, int], averages: str
) -> None:
    rows = Batch(torch.randn(2, 4), targets)
    assert Tabular.fitted(rows, outputs)["averages"] == averages


def test_a_state_dict_has_no_knots_since_settings_have() -> None:
    network = _network()
    assert network.state_dict().keys() == dict(network.named_parameters()).keys()
    assert network.resolved["knots"] == KNOTS


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"hidden": (3, 0)}, "`hidden` must be at least 1 .*, found 0"),
        ({"embedding": 0}, "`embedding` must be at least 1"),
        ({"embedding": 2_000_000}, "`embedding` .* at most 65,536, found 2,000,000"),
        ({"hidden": (8, 2_000_000)}, "`hidden` .* at most 65,536, found 2,000,000"),
        ({"members": -1}, "`members` must be at least 1 .*, found -1"),
        ({"knots": ((), (1.0, 1.0))}, "increase, found .* for column 1"),
        ({"knots": ((1.0,),)}, "two or more"),
        ({"knots": ((),) * 6}, "found 6 lists for 5 columns"),
    ],
)
def test_what_cannot_be_built_is_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        Tabular((5,), 1, **settings)  # type: ignore[arg-type]
