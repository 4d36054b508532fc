"""What every backbone promises."""

import contextlib
import copy
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
from torch import Tensor

from paretocosmos import find
from paretocosmos.backbones import Backbone
from paretocosmos.errors import ConfigurationError
from paretocosmos.types import Outputs, each

NAMES = find.names("backbones")
B = 6
WANTED: list[tuple[tuple[int, ...], int | dict[str, int]]] = [
    ((5,), 1),
    ((1, 36, 36), 1),
    ((1, 36, 36), {"left": 10, "right": 10}),
    ((3, 64, 48), {"left": 1, "middle": 2, "right": 1}),
]
Case = tuple[Backbone, tuple[int, ...], int | dict[str, int]]


def _agreed(name: str) -> list[int]:
    """Which of the wanted networks a backbone builds; it refuses the others with a sentence."""
    agreed = []
    for at, wanted in enumerate(WANTED):
        with contextlib.suppress(ConfigurationError):
            find.find("backbones", name)(*wanted)
            agreed.append(at)
    return agreed


CASES = [(name, at) for name in NAMES for at in _agreed(name)]


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0]}-{WANTED[case[1]]}")
def case(request: pytest.FixtureRequest) -> Case:
    """Every wanted network that the backbone agrees to build, in float64."""
    name, at = request.param
    return find.find("backbones", name)(*WANTED[at]).double().eval(), *WANTED[at]


def _named(outputs: Outputs) -> dict[str, Tensor]:
    return dict(outputs) if isinstance(outputs, Mapping) else {"": outputs}


def test_there_are_backbones() -> None:
    assert {"mlp", "lenet"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_it_builds_something_from_its_name(name: str, thing_in: Callable[[str, str], Any]) -> None:
    thing = thing_in("backbones", name)
    assert list(inspect.signature(thing).parameters)[:2] == ["input_shape", "outputs"]
    assert _agreed(name), f"`{name}` builds none of {WANTED}"


def test_it_gives_the_outputs_it_was_asked_for(case: Case) -> None:
    network, shape, outputs = case
    assert isinstance(network, Backbone)
    found = _named(network(torch.randn(B, *shape, dtype=torch.float64)))
    wanted = outputs if isinstance(outputs, dict) else {"": outputs}
    assert {name: tuple(out.shape) for name, out in found.items()} == {
        name: (B, width) for name, width in wanted.items()
    }


def test_samples_do_not_touch_each_other(case: Case) -> None:
    network, shape, _ = case
    inputs = torch.randn(B, *shape, dtype=torch.float64)
    whole, alone = _named(network(inputs)), _named(network(inputs[2:3]))
    for name, out in alone.items():
        torch.testing.assert_close(whole[name][2:3], out)


def test_it_names_its_first_layer_and_its_heads(case: Case) -> None:
    network, _, outputs = case
    modules = dict(network.named_modules())
    assert list(modules[network.first_layer].parameters())
    for head in network.heads:
        assert list(modules[head].parameters())
    if isinstance(outputs, dict):
        assert 1 <= len(network.heads) <= len(outputs)  # one layer may serve several heads
    else:
        assert network.heads == ()  # one output for all objectives is shared


def test_every_parameter_takes_part(case: Case) -> None:
    network, shape, _ = case
    outputs = _named(network(torch.randn(B, *shape, dtype=torch.float64)))
    total = torch.stack([out.square().sum() for out in outputs.values()]).sum()
    gradients = torch.autograd.grad(total, list(network.parameters()))
    assert all(gradient.abs().max() > 0 for gradient in gradients)


def test_copies_and_state_dicts_give_the_same_numbers(case: Case) -> None:
    network, shape, outputs = case
    inputs = torch.randn(B, *shape, dtype=torch.float64)
    other = type(network)(shape, outputs).double().eval()
    other.load_state_dict(network.state_dict())
    for twin in (other, copy.deepcopy(network)):
        for name, out in _named(twin(inputs)).items():
            assert torch.equal(out, _named(network(inputs))[name])


def test_seeds_can_be_stacked(case: Case) -> None:
    network, shape, outputs = case
    networks = [type(network)(shape, outputs).double().eval() for _ in range(3)]
    parameters, buffers = torch.func.stack_module_state(networks)
    inputs = torch.randn(B, *shape, dtype=torch.float64)

    def call(weights: dict[str, Tensor], rest: dict[str, Tensor]) -> Outputs:
        out: Outputs = torch.func.functional_call(network, (weights, rest), (inputs,))
        return out

    found = torch.vmap(call)(parameters, buffers)
    expected = each(lambda *outs: torch.stack(outs), *(one(inputs) for one in networks))
    for name, out in _named(found).items():
        torch.testing.assert_close(out, _named(expected)[name])
