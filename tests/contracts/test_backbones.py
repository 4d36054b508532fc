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
# a backbone takes at least one of these, and refuses the others with a sentence
WANTED: list[tuple[tuple[int, ...], int | dict[str, int]]] = [
    ((5,), 1),
    ((1, 36, 36), 1),
    ((1, 36, 36), {"left": 10, "right": 10}),
    ((3, 64, 64), {"left": 1, "right": 1}),
]
Case = tuple[Backbone, tuple[int, ...], int | dict[str, int]]


@pytest.fixture(params=NAMES)
def case(request: pytest.FixtureRequest, thing_in: Callable[[str, str], Any]) -> Case:
    """The first of the wanted networks that the backbone agrees to build, in float64."""
    thing = thing_in("backbones", request.param)
    assert list(inspect.signature(thing).parameters)[:2] == ["input_shape", "outputs"]
    for shape, outputs in WANTED:
        with contextlib.suppress(ConfigurationError):  # refused, in a sentence of this family
            return thing(shape, outputs).double().eval(), shape, outputs
    raise AssertionError(f"`{request.param}` builds none of {WANTED}")


def _named(outputs: Outputs) -> dict[str, Tensor]:
    return dict(outputs) if isinstance(outputs, Mapping) else {"": outputs}


def test_there_are_backbones() -> None:
    assert "mlp" in NAMES


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
    assert len(network.heads) == (len(outputs) if isinstance(outputs, dict) else 1)
    for head in network.heads:
        assert list(modules[head].parameters())


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
