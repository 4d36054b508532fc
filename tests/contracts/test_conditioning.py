"""What every conditioning promises."""

import contextlib
import copy
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from paretocosmos import registry
from paretocosmos.errors import ConfigurationError
from paretocosmos.nn.backbones import Backbone
from paretocosmos.nn.conditioning import Conditioning, Film, Hypernet
from paretocosmos.types import Inputs, Outputs, map_tensors

# what needs heads of its own, or token ids, is tested in its own file
NAMES = [
    name for name in registry.names("conditioning") if name not in ("fairness_adjustment", "token")
]
# what needs nothing else installed; the others are conditioned in tests/extras
BACKBONES = [
    n for n in registry.names("backbones") if not vars(registry.find("backbones", n)).get("foreign")
]
B, J = 12, 3
# what there is to condition: an input's shape and the outputs
WANTED: list[tuple[tuple[int, ...], int | dict[str, int]]] = [
    ((5,), 2),
    ((1, 36, 36), 2),
    ((3, 20, 17), {"left": 3, "right": 1}),
]


class Ranked(Film):
    """FiLM whose weights move with the ray too."""

    def __init__(self, backbone: nn.Module, objectives: int) -> None:
        super().__init__(backbone, objectives, rank=2)


class Chunked(Hypernet):
    """A hypernetwork that emits weights in chunks."""

    def __init__(self, backbone: nn.Module, objectives: int) -> None:
        super().__init__(backbone, objectives, chunk=500)


VARIANTS: dict[str, type[Conditioning]] = {
    "film rank 2": Ranked,
    "hypernet in chunks": Chunked,
}  # that default settings leave out
DEAF = {"none"}  # those that do not listen to the ray
Case = tuple[Conditioning, Backbone, Inputs]


def _pair(name: str, backbone: str, at: int) -> tuple[Conditioning, Backbone]:
    network: Backbone = registry.find("backbones", backbone)(*WANTED[at]).double().eval()
    kind = VARIANTS.get(name) or registry.find("conditioning", name)
    model: Conditioning = kind(network, J).eval()
    return model, network


def _agreed(name: str) -> list[tuple[str, int]]:
    """The backbones a conditioning takes, and for what; it refuses others with a sentence."""
    agreed = []
    for backbone in BACKBONES:
        for at in range(len(WANTED)):
            with contextlib.suppress(ConfigurationError):
                _pair(name, backbone, at)
                agreed.append((backbone, at))
    return agreed


CASES = [(name, *pair) for name in (*NAMES, *VARIANTS) for pair in _agreed(name)]


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0]}-{case[1]}-{WANTED[case[2]]}")
def case(request: pytest.FixtureRequest) -> Case:
    """Every backbone it agrees to condition, in float64, and inputs."""
    shape, _ = WANTED[request.param[2]]
    return *_pair(*request.param), torch.randn(B, *shape, dtype=torch.float64)


def _rays(*shape: int) -> Tensor:
    return torch.randn(*shape, J, dtype=torch.float64).softmax(dim=-1)


def _named(outputs: Outputs) -> dict[str, Tensor]:
    return dict(outputs) if isinstance(outputs, Mapping) else {"": outputs}


def _same(one: Outputs, two: Outputs) -> None:
    assert _named(one).keys() == _named(two).keys()
    for name, out in _named(one).items():
        torch.testing.assert_close(out, _named(two)[name])


def test_there_are_conditionings() -> None:
    assert {"concat", "hypernet", "none", "transposed_conv"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_it_conditions_something_of_this_package(
    name: str, thing_in: Callable[[str, str], Any]
) -> None:
    thing = thing_in("conditioning", name)
    assert list(inspect.signature(thing).parameters)[:2] == ["backbone", "objectives"]
    assert _agreed(name), f"`{name}` conditions no backbone of this package"


def test_images_and_several_heads_are_conditioned() -> None:
    for name in ("hypernet", "transposed_conv"):
        assert {(name, "lenet", at) for at in (1, 2)} <= set(CASES)


def test_outputs_have_the_shape_of_the_backbones(case: Case) -> None:
    model, backbone, inputs = case
    expected = {name: out.shape for name, out in _named(backbone(inputs)).items()}
    for shape in ((), (1,), (4,), (B,)):
        found = _named(model(inputs, _rays(*shape)))
        assert {name: out.shape for name, out in found.items()} == expected


def test_groups_are_neighbouring_samples_with_one_ray_each(case: Case) -> None:
    model, _, inputs = case
    rays = _rays(4)
    grouped = model(inputs, rays)
    _same(grouped, model(inputs, rays.repeat_interleave(B // 4, 0)))
    alone = [
        model(map_tensors(lambda x, g=g: x[3 * g : 3 * g + 3], inputs), ray)
        for g, ray in enumerate(rays)
    ]
    _same(grouped, map_tensors(lambda *outs: torch.cat(outs), *alone))


def test_each_ray_is_the_loop_over_rays(case: Case) -> None:
    model, _, inputs = case
    rays = _rays(5)
    loop = map_tensors(lambda *outs: torch.stack(outs), *(model(inputs, ray) for ray in rays))
    _same(model.each_ray(inputs, rays), loop)


def test_the_ray_matters_unless_it_is_said_not_to(case: Case) -> None:
    model, _, inputs = case
    with torch.no_grad():  # what the ray adds may start at zero
        for parameter in model.parameters():
            parameter.add_(0.01 * torch.randn_like(parameter))
    one, two = (_named(model(inputs, ray)) for ray in torch.eye(J, dtype=torch.float64)[:2])
    same = all(torch.equal(out, two[name]) for name, out in one.items())
    assert same == (registry.name_of("conditioning", type(model)) in DEAF)


def test_without_the_parameters_that_read_the_ray_it_does_not_matter(case: Case) -> None:
    model, backbone, inputs = case
    named = dict(model.named_parameters())
    # in the order of the parameters, in every process
    assert model.ray_parameters == tuple(n for n in named if n in set(model.ray_parameters))
    rest = sum(p.numel() for name, p in named.items() if name not in model.ray_parameters)
    assert rest in (0, sum(p.numel() for p in backbone.parameters()))
    with torch.no_grad():
        for name, parameter in named.items():
            parameter.normal_()
            if name in model.ray_parameters:
                parameter.zero_()
    _same(*(model(inputs, ray) for ray in torch.eye(J, dtype=torch.float64)[:2]))
    assert (not model.ray_parameters) == (registry.name_of("conditioning", type(model)) in DEAF)


def test_the_backbone_handed_over_is_left_alone(case: Case) -> None:
    model, backbone, inputs = case
    before = copy.deepcopy(backbone.state_dict())
    names = [type(module) for module in backbone.modules()]
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.5)
    model(inputs, _rays())
    assert [type(module) for module in backbone.modules()] == names
    assert all(torch.equal(v, before[name]) for name, v in backbone.state_dict().items())


def test_every_parameter_takes_part(case: Case) -> None:
    model, _, inputs = case
    outputs = _named(model(inputs, _rays(4)))
    total = torch.stack([out.square().sum() for out in outputs.values()]).sum()
    parameters = [p for p in model.parameters() if p.requires_grad]
    gradients = torch.autograd.grad(total, parameters)
    assert all(gradient.isfinite().all() for gradient in gradients)


def test_copies_and_state_dicts_give_the_same_numbers(case: Case) -> None:
    model, backbone, inputs = case
    rays = _rays(4)
    other = type(model)(backbone, J).double().eval()
    other.load_state_dict(model.state_dict())
    for twin in (other, copy.deepcopy(model)):
        _same(twin(inputs, rays), model(inputs, rays))


def test_seeds_can_be_stacked(case: Case) -> None:
    model, backbone, inputs = case
    models = [type(model)(backbone, J).double().eval() for _ in range(3)]
    parameters, buffers = torch.func.stack_module_state(models)
    rays = _rays(3, 4)

    def call(weights: dict[str, Tensor], rest: dict[str, Tensor], ray: Tensor) -> Outputs:
        return torch.func.functional_call(model, (weights, rest), (inputs, ray))

    expected = (one(inputs, ray) for one, ray in zip(models, rays, strict=True))
    _same(
        torch.vmap(call)(parameters, buffers, rays),
        map_tensors(lambda *outs: torch.stack(outs), *expected),
    )


@pytest.mark.parametrize("shape", [(J + 1,), (4, J - 1), (2, 2, J)])
def test_a_ray_of_the_wrong_shape_is_refused(case: Case, shape: tuple[int, ...]) -> None:
    model, _, inputs = case
    for call in (model, model.each_ray):
        with pytest.raises(ConfigurationError, match="found"):
            call(inputs, torch.ones(shape, dtype=torch.float64))


def test_groups_must_divide_the_batch(case: Case) -> None:
    model, _, inputs = case
    if registry.name_of("conditioning", type(model)) in DEAF:
        return
    with pytest.raises(ConfigurationError, match=f"{B} samples .* among 5 rays"):
        model(inputs, _rays(5))


def test_objectives_must_be_positive(case: Case) -> None:
    model, backbone, _ = case
    with pytest.raises(ConfigurationError, match="`objectives`"):
        type(model)(backbone, 0)
