"""What every backbone promises."""

import contextlib
import copy
import inspect
import sys
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any

import pytest
import torch
from torch import Tensor

from paretocosmos import registry
from paretocosmos.errors import ConfigurationError, MissingExtraError
from paretocosmos.nn.backbones import Backbone
from paretocosmos.types import Outputs, map_tensors

NAMES = registry.names("backbones")
# a small one of its kind, and no search for published weights
SETTINGS: dict[str, dict[str, Any]] = {"efficientnet": {"variant": "b0", "weights": "random"}}
B = 6
WANTED: list[tuple[tuple[int, ...], int | dict[str, int]]] = [
    ((5,), 1),
    ((1, 36, 36), 1),
    ((1, 36, 36), {"left": 10, "right": 10}),
    ((3, 64, 48), {"left": 1, "middle": 2, "right": 1}),
]
Case = tuple[Backbone, tuple[int, ...], int | dict[str, int]]


def _build(name: str, at: int, settings: Mapping[str, Any] | None = None) -> Backbone:
    chosen = {**SETTINGS.get(name, {}), **(settings or {})}
    return registry.find("backbones", name)(*WANTED[at], **chosen).double().eval()


def _missing(name: str) -> list[str]:
    """The packages a backbone is made of that are not installed."""
    kind: Any = registry.find("backbones", name)
    return [package for package in kind.foreign if find_spec(package) is None]


def _agreed(name: str) -> list[int]:
    """Which of the wanted networks a backbone builds; it refuses the others with a sentence."""
    agreed = []
    for at in range(len(WANTED)):
        with contextlib.suppress(ConfigurationError):
            _build(name, at)
            agreed.append(at)
    return agreed


def _case(name: str, at: int) -> Any:
    return pytest.param((name, at), id=f"{name}-{WANTED[at]}", marks=_marks(name))


def _marks(name: str) -> Any:
    """Mark what needs a heavy extra."""
    kind: Any = registry.find("backbones", name)
    return pytest.mark.system if kind.foreign else ()


def _needs(name: str, *values: Any) -> Any:
    """A case that says what it would need."""
    packages = " ".join(_missing(name))
    return pytest.param(*values, id=name, marks=pytest.mark.skip(reason=f"pip install {packages}"))


CASES = [
    case
    for name in NAMES
    for case in (
        [_needs(name, None)] if _missing(name) else [_case(name, at) for at in _agreed(name)]
    )
]
BUILT = [
    _needs(name, name) if _missing(name) else pytest.param(name, id=name, marks=_marks(name))
    for name in NAMES
]


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    """Every wanted network that the backbone agrees to build, in float64."""
    name, at = request.param
    return _build(name, at), *WANTED[at]


def _twin(case: Case, settings: Mapping[str, Any] | None = None) -> Backbone:
    network, shape, outputs = case
    name = registry.name_of("backbones", type(network)) or ""
    return _build(name, WANTED.index((shape, outputs)), settings)


def _named(outputs: Outputs) -> dict[str, Tensor]:
    return dict(outputs) if isinstance(outputs, Mapping) else {"": outputs}


def test_there_are_backbones() -> None:
    assert {"efficientnet", "lenet", "mlp"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_it_is_found_by_its_name(name: str, thing_in: Callable[[str, str], Any]) -> None:
    thing = thing_in("backbones", name)
    assert list(inspect.signature(thing).parameters)[:2] == ["input_shape", "outputs"]
    assert issubclass(thing, Backbone)
    assert thing.blank.keys() <= registry.parameters(thing).keys()


@pytest.mark.parametrize("name", BUILT)
def test_it_builds_something(name: str) -> None:
    assert _agreed(name), f"`{name}` builds none of {WANTED}"


@pytest.mark.parametrize("outputs", [0, {}, {"left": 2, "right": 0}])
@pytest.mark.parametrize("name", NAMES)
def test_outputs_must_be_positive(name: str, outputs: int | dict[str, int]) -> None:
    kind: Any = registry.find("backbones", name)
    with pytest.raises(ConfigurationError, match="`outputs` takes widths >= 1"):
        kind(WANTED[1][0], outputs)


@pytest.mark.parametrize("name", NAMES)
def test_without_the_packages_it_is_made_of_it_says_how_to_get_them(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind: Any = registry.find("backbones", name)
    for package in kind.foreign:
        monkeypatch.setitem(sys.modules, package, None)  # as if it were not installed
        with pytest.raises(MissingExtraError, match=f"`{name}`.*`{package}`.*pip install"):
            kind((3, 64, 64), 1)


def test_what_it_resolved_is_a_setting_and_builds_the_same(case: Case) -> None:
    network = case[0]
    assert network.resolved.keys() <= registry.parameters(type(network)).keys()
    again = _twin(case, network.resolved)
    assert again.resolved == network.resolved
    assert {k: v.shape for k, v in again.state_dict().items()} == {
        k: v.shape for k, v in network.state_dict().items()
    }


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
    network, shape, _ = case
    inputs = torch.randn(B, *shape, dtype=torch.float64)
    other = _twin(case)
    other.load_state_dict(network.state_dict())
    for twin in (other, copy.deepcopy(network)):
        for name, out in _named(twin(inputs)).items():
            assert torch.equal(out, _named(network(inputs))[name])


def test_seeds_can_be_stacked(case: Case) -> None:
    network, shape, _ = case
    networks = [_twin(case) for _ in range(3)]
    parameters, buffers = torch.func.stack_module_state(networks)
    inputs = torch.randn(B, *shape, dtype=torch.float64)

    def call(weights: dict[str, Tensor], rest: dict[str, Tensor]) -> Outputs:
        return torch.func.functional_call(network, (weights, rest), (inputs,))

    found = torch.vmap(call)(parameters, buffers)
    expected = map_tensors(lambda *outs: torch.stack(outs), *(one(inputs) for one in networks))
    for name, out in _named(found).items():
        torch.testing.assert_close(out, _named(expected)[name])
