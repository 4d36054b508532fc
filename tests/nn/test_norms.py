"""Batch normalisation under rays."""

import copy
import warnings
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from paretocosmos import condition
from paretocosmos.errors import ConditioningWarning, ConfigurationError

B = 8


def _network(**settings: Any) -> nn.Sequential:
    network = nn.Sequential(
        nn.Conv2d(3, 32, 3), nn.BatchNorm2d(32, **settings), nn.ReLU(), nn.Flatten(),
        nn.Linear(32 * 16, 5), nn.BatchNorm1d(5), nn.Linear(5, 2),
    )  # fmt: skip
    with torch.no_grad():  # as after a training of its own
        for buffer in network.buffers():
            if buffer.is_floating_point():
                buffer.add_(torch.rand_like(buffer))
        for parameter in network.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return network


@pytest.mark.parametrize("how", ["input", "film"])
@pytest.mark.parametrize("training", [True, False])
def test_batch_normalisation_is_warned_of_with_the_ways_out(how: str, training: bool) -> None:
    says = r"Sequential has 2 batch .*norm=\"group\".*norm=\"frozen\".*norm=\"keep\""
    with pytest.warns(ConditioningWarning, match=says) as caught:
        condition(_network().train(training), 2, how=how)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for norm in ("keep", "group", "frozen"):
            condition(_network(), 2, how=how, norm=norm)
        condition(nn.Linear(2, 1), 2, how="input")


@pytest.mark.parametrize("how", ["input", "film"])
def test_frozen_is_the_network_as_it_evaluates_in_training_too(how: str) -> None:
    network = _network()
    model = condition(network, 2, how=how, norm="frozen")
    inputs, ray = torch.randn(B, 3, 6, 6), torch.rand(4, 2)
    expected = copy.deepcopy(network).eval()(inputs)
    before = {name: value.clone() for name, value in model.named_buffers()}
    for mode in (True, False, True):
        torch.testing.assert_close(model.train(mode)(inputs, ray), expected)
        assert model.training is mode
    model(inputs, ray).sum().backward()
    after = dict(model.named_buffers())
    assert before
    assert all(torch.equal(value, after[name]) for name, value in before.items())
    weights = [p for name, p in model.named_parameters() if name.endswith("1.layer.weight")]
    assert all(weight.grad is not None for weight in weights)
    assert network.training  # what was handed over is as it was
    assert type(network[1]) is nn.BatchNorm2d


@pytest.mark.parametrize("how", ["input", "film"])
def test_group_keeps_scale_and_shift_and_mixes_no_samples(how: str) -> None:
    network = _network()
    model = condition(network, 2, how=how, norm="group")
    inputs, ray = torch.randn(B, 3, 6, 6), torch.rand(4, 2)
    weights: Any = dict(network.named_parameters())
    hidden = F.group_norm(network[0](inputs), 4, weights["1.weight"], weights["1.bias"])
    hidden = network[4](hidden.relu().flatten(1))
    expected = network[6](F.group_norm(hidden, 1, weights["5.weight"], weights["5.bias"]))
    torch.testing.assert_close(model(inputs, ray), expected)
    alone = torch.cat([model(inputs[at : at + 2], ray[at // 2]) for at in range(0, B, 2)])
    torch.testing.assert_close(model(inputs, ray), alone)
    assert next(model.buffers(), None) is None


def test_a_network_of_one_layer_is_replaced_whole() -> None:
    norm = nn.BatchNorm1d(4, affine=False)
    model = condition(norm, 2, how="none", norm="group")
    inputs = torch.randn(B, 4)
    torch.testing.assert_close(model(inputs, torch.rand(2)), F.group_norm(inputs, 1))


def test_film_goes_after_what_normalises_now() -> None:
    for norm in ("group", "frozen"):
        model = condition(_network(), 2, how="film", norm=norm, settings={"rank": 0})
        assert model.places == ("1", "5")


# Mistakes


def test_an_unknown_norm_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"`groups`.*`group`"):
        condition(_network(), 2, norm="groups")  # type: ignore[arg-type]


def test_statistics_that_are_not_kept_cannot_be_frozen() -> None:
    with pytest.raises(ConfigurationError, match=r'`1` has none: .*norm="group"'):
        condition(_network(track_running_stats=False), 2, norm="frozen")


def test_a_normalisation_that_does_more_is_not_replaced() -> None:
    class Active(nn.BatchNorm2d):
        """As timm's: it rectifies too."""

    network = nn.Sequential(nn.Conv2d(3, 4, 3), Active(4))
    with pytest.raises(ConfigurationError, match="Active at `1`"):
        condition(network, 2, norm="group")
    condition(network, 2, norm="frozen")
