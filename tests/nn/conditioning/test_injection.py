"""What a conditioned network goes through in practice: the same numbers as called plainly."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

from paretocosmos import Conditioning, condition
from paretocosmos.nn.conditioning import ConditionedLayer, Hypernet

B, J = 6, 3
Make = Callable[..., tuple[nn.Module, Any]]
Rays = Callable[..., Tensor]
Nudge = Callable[[nn.Module], None]

# networks, and layers the ray enters, some inside of what checkpointing computes again
CASES: list[tuple[str, str, Any]] = [
    ("tokens", "input", None),
    ("tokens", "input", "blocks.1.grow"),
    ("tokens", "film", None),
    ("tokens", "film", ("blocks.0.norm", "blocks.1.grow", "blocks.1.norm", "blocks.2")),
    ("images", "input", None),
    ("images", "input", "rest.0"),
    ("images", "film", None),
    ("tokens", "moved", None),
    ("images", "moved", None),
]
EVERY = pytest.mark.parametrize(("name", "how", "layer"), CASES)


@pytest.fixture(autouse=True)
def _fresh_compiler() -> Iterator[None]:
    yield
    torch._dynamo.reset()


def _conditioned(network: nn.Module, how: str, layer: Any = None) -> Conditioning:
    """By name; "moved" is FiLM with weights that move with the ray too."""
    if how == "moved":
        return condition(network, J, how="film", layer=layer, settings={"rank": 1})
    return condition(network, J, how=how, layer=layer, preset="paper")


def _gradients(call: Callable[..., Tensor], model: nn.Module, calls: Any) -> list[Tensor]:
    """Of a loss over several calls, each with inputs and rays of its own."""
    model.zero_grad()
    total = torch.zeros((), dtype=torch.float64)
    for weight, (inputs, ray) in enumerate(calls, start=1):
        total = total + weight * call(inputs, ray).square().sum()
    total.backward()
    gradients = [parameter.grad for parameter in model.parameters()]
    assert all(gradient is not None for gradient in gradients)
    return [gradient.clone() for gradient in gradients if gradient is not None]


def _pair(
    case: tuple[str, str, Any], again: bool | None, make: Make, nudge: Nudge
) -> tuple[Conditioning, Conditioning]:
    """The same conditioned network without checkpointing and with it."""
    name, how, layer = case
    plain = _conditioned(make(name)[0], how, layer)
    nudge(plain)
    other = _conditioned(make(name, again=again)[0], how, layer)
    other.load_state_dict(plain.state_dict())
    return plain, other


def _quiet(model: nn.Module) -> bool:
    return all(
        part.injected is None for part in model.modules() if isinstance(part, ConditionedLayer)
    )


@pytest.mark.parametrize("again", [False, True], ids=["non-reentrant", "reentrant"])
@EVERY
def test_checkpointing_gives_the_same_gradients(
    name: str, how: str, layer: Any, again: bool, make: Make, rays: Rays, nudge: Nudge
) -> None:
    plain, model = _pair((name, how, layer), again, make, nudge)
    # three calls before one backward pass: each has to be computed again with its own rays
    calls = [(make(name)[1].requires_grad_(), ray) for ray in (rays(), rays(3), rays(B))]
    expected = _gradients(plain, plain, calls)
    for found, wanted in zip(_gradients(model, model, calls), expected, strict=True):
        torch.testing.assert_close(found, wanted)
    assert _quiet(model)


@pytest.mark.parametrize("chunk", [50_000, 20], ids=["whole", "chunked"])
@pytest.mark.parametrize("again", [False, True], ids=["non-reentrant", "reentrant"])
def test_emitted_weights_are_computed_with_again(
    chunk: int, again: bool, make: Make, rays: Rays, nudge: Nudge
) -> None:
    plain, model = (
        condition(make("tokens", again=a)[0], J, how="hypernet", settings={"chunk": chunk})
        for a in (None, again)
    )
    nudge(plain)
    model.load_state_dict(plain.state_dict())
    calls = [(make("tokens")[1].requires_grad_(), rays()) for _ in range(3)]
    expected = _gradients(plain, plain, calls)
    for found, wanted in zip(_gradients(model, model, calls), expected, strict=True):
        torch.testing.assert_close(found, wanted)
    inputs, ray = calls[0]
    assert torch.equal(copy.deepcopy(model)(inputs, ray), model(inputs, ray))


def test_a_graph_can_be_gone_through_twice(make: Make, rays: Rays, nudge: Nudge) -> None:
    plain, model = _pair(("tokens", "film", ("blocks.0.norm", "blocks.2")), False, make, nudge)
    inputs, one, two = make("tokens")[1], rays(2), rays()
    for _ in range(2):
        expected, found = (
            [
                torch.autograd.grad(out.sum(), list(m.parameters()), retain_graph=True)
                for out in (m(inputs, one), m(inputs, two))
                for _ in range(2)
            ]
            for m in (plain, model)
        )
        for wanted, given in zip(expected, found, strict=True):
            torch.testing.assert_close(given, wanted)


@EVERY
def test_the_whole_model_can_be_checkpointed_around_its_own_checkpointing(
    name: str, how: str, layer: Any, make: Make, rays: Rays, nudge: Nudge
) -> None:
    plain, model = _pair((name, how, layer), False, make, nudge)

    def around(inputs: Tensor, ray: Tensor) -> Tensor:
        return checkpoint(model, inputs, ray, use_reentrant=False)

    calls = [(make(name)[1], ray) for ray in (rays(), rays(3))]
    expected = _gradients(plain, plain, calls)
    for found, wanted in zip(_gradients(around, model, calls), expected, strict=True):
        torch.testing.assert_close(found, wanted)
    assert _quiet(model)


@pytest.mark.system
@pytest.mark.parametrize("again", [None, False], ids=["plain", "checkpointing"])
@EVERY
def test_it_compiles_as_one_graph(
    name: str, how: str, layer: Any, again: bool | None, make: Make, rays: Rays, nudge: Nudge
) -> None:
    plain, model = _pair((name, how, layer), again, make, nudge)
    calls = [(make(name)[1], ray) for ray in (rays(), rays(3))]
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    expected = _gradients(plain, plain, calls)
    for found, wanted in zip(_gradients(compiled, model, calls), expected, strict=True):
        torch.testing.assert_close(found, wanted)
    assert _quiet(model)


@pytest.mark.system
@pytest.mark.parametrize("per_sample", [False, True])
@EVERY
def test_it_is_exported_for_any_batch(
    name: str, how: str, layer: Any, per_sample: bool, make: Make, rays: Rays, nudge: Nudge
) -> None:
    network, inputs = make(name)
    model = _conditioned(network, how, layer).eval()
    nudge(model)
    batch = torch.export.Dim("batch", min=2)
    ray = rays(B) if per_sample else rays()
    dynamic = ({0: batch}, {0: batch} if per_sample else None)
    exported = torch.export.export(model, (inputs, ray), dynamic_shapes=dynamic).module()
    _, inputs = make(name, samples=11)
    ray = rays(11) if per_sample else rays()
    torch.testing.assert_close(exported(inputs, ray), model(inputs, ray))


@pytest.mark.system
@pytest.mark.parametrize("how", ["input", "film", "moved"])
def test_mappings_are_compiled_and_exported(how: str, make: Make, rays: Rays, nudge: Nudge) -> None:
    network, inputs = make("towers")
    model = _conditioned(network, how)
    nudge(model)
    ray = rays(2)
    expected = model(inputs, ray=ray)
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    exported = torch.export.export(model, (inputs, ray)).module()
    for found in (compiled(inputs, ray=ray), exported(inputs, ray)):
        for key, out in expected.items():
            torch.testing.assert_close(found[key], out)


@EVERY
def test_half_precision_gives_about_the_same(
    name: str, how: str, layer: Any, make: Make, rays: Rays, nudge: Nudge
) -> None:
    network, inputs = make(name)
    model = _conditioned(network.float(), how, layer)
    nudge(model)
    inputs, ray = inputs.float(), rays(3).float()
    with torch.autocast("cpu", torch.bfloat16):
        found = model(inputs, ray)
        found.float().square().sum().backward()
    torch.testing.assert_close(found.float(), model(inputs, ray), rtol=0.1, atol=0.1)
    assert all(parameter.grad is not None for parameter in model.parameters())


@pytest.mark.parametrize("how", ["input", "film", "moved"])
def test_rays_take_the_networks_type(how: str, make: Make, rays: Rays) -> None:
    network, inputs = make("tokens")
    assert _conditioned(network, how)(inputs, rays().float()).dtype == torch.float64


@pytest.mark.parametrize("how", ["input", "film", "moved"])
def test_it_trains_under_distributed_data_parallel(
    how: str, make: Make, rays: Rays, nudge: Nudge
) -> None:
    network, inputs = make("tokens", again=False)
    model = _conditioned(network, how)
    nudge(model)
    calls = [(inputs, rays(3))]
    expected = _gradients(model, model, calls)
    dist.init_process_group(
        "gloo", store=torch._C._distributed_c10d.HashStore(), rank=0, world_size=1
    )
    try:
        spread = DistributedDataParallel(model)
        for found, wanted in zip(_gradients(spread, model, calls), expected, strict=True):
            torch.testing.assert_close(found, wanted)
        assert torch.equal(spread(inputs, ray=calls[0][1]), model(inputs, calls[0][1]))
    finally:
        dist.destroy_process_group()


def test_the_gradient_of_the_ray_is_that_of_finite_differences(
    make: Make, rays: Rays, nudge: Nudge
) -> None:
    for name, how, layer in CASES:
        network, inputs = make(name)
        model = _conditioned(network, how, layer)
        nudge(model)
        ray = rays(2).requires_grad_()
        assert torch.autograd.gradcheck(lambda r, m=model, x=inputs: m(x, r), (ray,))


def test_a_layer_in_disguise_answers_as_the_layer(make: Make) -> None:
    network, _ = make("images")
    model = condition(network, J, how="input")
    stand_in: Any = model.backbone.get_submodule("stem.0")
    assert stand_in.weight is stand_in.layer.weight
    assert stand_in.kernel_size == (3, 3)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = stand_in.nothing


def test_a_layer_used_in_two_places_hears_in_both(rays: Rays, nudge: Nudge) -> None:
    class Siamese(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.left = nn.Linear(4, 3)
            self.right = self.left

        def forward(self, inputs: Tensor) -> Tensor:
            return torch.cat([self.left(inputs), self.right(-inputs)], dim=1)

    model = condition(Siamese().double(), J, how="input")
    nudge(model)
    inputs, ray = torch.randn(B, 4).double(), rays()
    layer, new = (model.get_parameter(f"backbone.left.{part}") for part in
                  ("layer.weight", "ray.weight"))  # fmt: skip
    shift = model.get_parameter("backbone.left.layer.bias") + new @ ray
    expected = torch.cat([inputs @ layer.T + shift, -inputs @ layer.T + shift], dim=1)
    torch.testing.assert_close(model(inputs, ray), expected)


def test_a_hook_on_the_split_layer_is_still_called(make: Make, rays: Rays) -> None:
    network, inputs = make("perceptron")
    model = condition(network, J, how="input")
    model(inputs, rays())  # what a first call tries out is not what is counted
    seen: list[torch.Size] = []
    layer = model.get_submodule("backbone.0.layer")
    layer.register_forward_hook(lambda _, __, out: seen.append(out.shape))
    assert torch.equal(model(inputs, rays()), network(inputs))
    assert seen == [(B, 6)]


class _Failing(torch.autograd.Function):
    """The identity, whose way back fails."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor) -> Tensor:
        return inputs.clone()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        raise RuntimeError("out of memory, say")


@pytest.mark.parametrize("chunk", [None, 16], ids=["film", "chunked hypernet"])
def test_a_backward_pass_that_raised_leaves_nothing_behind(chunk: int | None) -> None:
    torch.manual_seed(1)
    network = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))
    model = (
        condition(network, 2, how="film") if chunk is None else Hypernet(network, 2, chunk=chunk)
    )
    for parameter in model.parameters():
        nn.init.normal_(parameter)
    inputs, ray = torch.randn(4, 3), torch.tensor([0.3, 0.7])
    names = [name for name, _ in model.named_parameters()]
    before = [tensor.clone() for tensor in model.state_dict().values()]
    wanted = model(inputs, ray)
    failing: Any = _Failing
    with pytest.raises(RuntimeError, match="out of memory"):
        model(failing.apply(inputs.clone().requires_grad_()), ray).sum().backward()
    assert torch.equal(model(inputs, ray), wanted)
    assert _quiet(model)
    assert [name for name, _ in model.named_parameters()] == names
    for found, tensor in zip(model.state_dict().values(), before, strict=True):
        assert torch.equal(found, tensor)


@pytest.mark.parametrize("again", [False, True], ids=["non-reentrant", "reentrant"])
def test_a_whole_call_of_a_chunked_hypernetwork_is_computed_again_as_it_was(again: bool) -> None:
    """Its own weights, to which it adds, must not be those of the call that is held."""
    torch.manual_seed(1)
    network = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))
    model = Hypernet(network, 2, chunk=16)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.1)

    def whole(inputs: Tensor, ray: Tensor) -> Tensor:
        return checkpoint(model, inputs, ray, use_reentrant=again)

    calls = [
        (torch.randn(4, 3, requires_grad=True), torch.tensor(r)) for r in ([0.3, 0.7], [1.0, 0.0])
    ]
    expected = _gradients(model, model, calls)
    for found, wanted in zip(_gradients(whole, model, calls), expected, strict=True):
        torch.testing.assert_close(found, wanted)


def test_a_backward_pass_inside_of_a_call_leaves_what_the_call_had_set() -> None:
    class Inside(nn.Module):
        """Goes back through an earlier call of the model between two of its layers."""

        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(3, 3), nn.Linear(3, 1)
            self.earlier: Tensor | None = None

        def forward(self, x: Tensor) -> Tensor:
            hidden = self.first(x)
            if self.earlier is not None:
                self.earlier.sum().backward()
            return self.second(hidden)

    network = Inside()
    model = condition(network, 2, how="film", layer=("first", "second"))
    inner: Any = model.backbone
    x, ray = torch.randn(4, 3), torch.tensor([0.4, 0.6])
    wanted = model(x, ray)
    inner.earlier = model(x, torch.tensor([0.9, 0.1]))
    assert torch.equal(model(x, ray), wanted)
    assert _quiet(model)
