"""A step of every method: one forward pass, the same when recorded, the same in a stack."""

import math
from collections.abc import Callable

import pytest
import torch
from tests.small import watch
from torch import Tensor, nn

from paretocosmos import registry
from paretocosmos.methods import Method, State
from paretocosmos.nn.backbones import LeNet, Mlp
from paretocosmos.nn.conditioning import Concat, Conditioning, Hypernet, Unconditioned
from paretocosmos.objectives import CrossEntropy, MeanSquaredError, Objective
from paretocosmos.training.engine import Step, TracedStep, make_step
from paretocosmos.types import Batch, map_tensors

METHODS = registry.names("methods")
SAMPLES = 12
DOUBLE = torch.float64
NEEDS_GRAM = {"epo", "mgda", "pareto_mtl"}


def _method(name: str) -> Method:
    # of three networks, whose hulls have a closed form: it takes seconds to record the other
    settings = {"networks": 3} if name == "pareto_mtl" else {}
    built = registry.find("methods", name)(**settings)
    assert isinstance(built, Method)
    return built


def _table(method: Method) -> Conditioning:
    backbone = Mlp((4,), 2, hidden=(6, 5))
    return Concat(backbone, 3) if method.fixed_rays(3) is None else Unconditioned(backbone, 3)


def _images(method: Method) -> Conditioning:
    backbone = LeNet((1, 16, 16), {"left": 3, "right": 3})
    return Hypernet(backbone, 2) if method.fixed_rays(2) is None else Unconditioned(backbone, 2)


KINDS: dict[str, tuple[Callable[[Method], Conditioning], int]] = {
    "table": (_table, 3),
    "images": (_images, 2),
}


def _objectives(kind: str) -> list[Objective]:
    if kind == "table":
        return [MeanSquaredError(name=n, target=n) for n in ("a", "b", "c")]
    return [CrossEntropy(name=n, output=n, target=n) for n in ("left", "right")]


def _batch(kind: str, dtype: torch.dtype, seed: int) -> Batch:
    draw = torch.Generator().manual_seed(seed)
    if kind == "table":
        targets = {n: torch.randn(SAMPLES, 2, generator=draw, dtype=dtype) for n in ("a", "b", "c")}
        return Batch(torch.randn(SAMPLES, 4, generator=draw, dtype=dtype), targets)
    labels = {n: torch.randint(3, (SAMPLES,), generator=draw) for n in ("left", "right")}
    return Batch(torch.rand(SAMPLES, 1, 16, 16, generator=draw, dtype=dtype), labels)


def _rays(method: Method, objectives: int, groups: int, k: int = 0) -> Tensor:
    fixed = method.fixed_rays(objectives)
    if fixed is None:
        return method.sample(objectives, groups, torch.Generator().manual_seed(7 + k))
    return fixed[k % len(fixed)].expand(groups, -1)


def _step(kind: str, model: nn.Module, method: Method, *, stacked: bool = False) -> Step:
    return make_step(model, _objectives(kind), method, stacked=stacked)


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", METHODS)
def test_a_step_runs_the_network_once(name: str, kind: str, groups: int) -> None:
    method, (make, objectives) = _method(name), KINDS[kind]
    model = make(method)
    calls: list[str] = []
    emits = isinstance(model, Hypernet)
    network = model.backbone if emits else model
    network.register_forward_hook(lambda *given: calls.append("forward"))
    backward: list[int] = []
    last = list(model.parameters())[-1]
    step = _step(kind, model, method)
    with pytest.MonkeyPatch.context() as patch:
        watch(patch, torch.autograd, "grad", lambda *_, **__: backward.append(1))
        result = step(
            dict(model.named_parameters()),
            _batch(kind, torch.float32, 1),
            _rays(method, objectives, groups),
            method.at_epoch(10**6, method.init(objectives)),
        )
    assert calls == ["forward"]
    # one for every loss of every group, if their inner products are asked for
    passes = groups * objectives
    if (
        emits
    ):  # those through the hypernetwork's first layers; each loss through the network; the sum
        passes += objectives + 1
    assert len(backward) == (passes if name in NEEDS_GRAM else 1)
    assert last.grad is None
    assert all(gradient.isfinite().all() for gradient in result.gradients.values())
    assert any(gradient.any() for gradient in result.gradients.values())


@pytest.mark.system
@pytest.mark.parametrize(("groups", "stacked"), [(1, False), (3, True)], ids=["one", "stacked"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", METHODS)
def test_a_recorded_step_is_the_eager_one_bit_for_bit(
    name: str, kind: str, groups: int, stacked: bool
) -> None:
    method, (make, objectives) = _method(name), KINDS[kind]
    model = make(method)
    parameters = {name: p.detach() for name, p in model.named_parameters()}
    batches = [_batch(kind, torch.float32, seed) for seed in range(4)]
    rays = [_rays(method, objectives, groups, k) for k in range(4)]
    state = dict(method.init(objectives))
    if stacked:
        parameters = {n: torch.stack([p, 1.1 * p]) for n, p in parameters.items()}
        batches = [_paired(a, b) for a, b in zip(batches, batches[::-1], strict=True)]
        rays = [torch.stack(pair) for pair in zip(rays, rays[::-1], strict=True)]
        state = {n: torch.stack([value] * 2) for n, value in state.items()}
    eager = _step(kind, model, method, stacked=stacked)
    traced = TracedStep(_step(kind, model, method, stacked=stacked), model, "traced")
    states: list[State] = [state, state]
    for epoch, (batch, ray) in enumerate(zip(batches, rays, strict=True)):
        # the third begins another stage where a method has one; the first is the recording
        states = [method.at_epoch(epoch, one) for one in states]
        one = eager(parameters, batch, ray, states[0])
        two = traced(parameters, batch, ray, states[1])
        assert traced.failure is None
        assert torch.equal(one.losses, two.losses)
        for own in parameters:
            assert torch.equal(one.gradients[own], two.gradients[own]), own
        for own in state:
            assert torch.equal(one.state[own], two.state[own]), own
        states = [one.state, two.state]


def _paired(one: Batch, two: Batch) -> Batch:
    def joined(a: Tensor, b: Tensor) -> Tensor:
        return torch.stack([a, b])

    return Batch(
        map_tensors(joined, one.inputs, two.inputs), map_tensors(joined, one.targets, two.targets)
    )


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", METHODS)
def test_a_stack_steps_as_each_alone(name: str, kind: str, groups: int) -> None:
    method, (make, objectives) = _method(name), KINDS[kind]
    models = [make(method).to(DOUBLE) for _ in range(2)]
    own = [{n: p.detach() for n, p in model.named_parameters()} for model in models]
    stack = {n: torch.stack([one[n] for one in own]) for n in own[0]}
    alone: list[State] = [method.init(objectives) for _ in models]
    state: State = {n: torch.stack([value] * 2) for n, value in alone[0].items()}
    step = _step(kind, models[0], method, stacked=True)
    for epoch in range(4):
        pair = [_batch(kind, DOUBLE, 10 * epoch + k) for k in range(2)]
        rays = [_rays(method, objectives, groups, epoch + 3 * k) for k in range(2)]
        state = method.at_epoch(epoch, state)
        result = step(stack, _paired(*pair), torch.stack(rays), state)
        state = result.state
        for k, model in enumerate(models):
            mine = method.at_epoch(epoch, alone[k])
            expected = _step(kind, model, method)(own[k], pair[k], rays[k], mine)
            alone[k] = expected.state
            torch.testing.assert_close(result.losses[k], expected.losses, rtol=1e-10, atol=1e-12)
            for part, gradient in expected.gradients.items():
                size = max(1e-3, math.sqrt(float(gradient.square().mean())))
                found = result.gradients[part][k]
                torch.testing.assert_close(found / size, gradient / size, rtol=1e-8, atol=1e-8)
            for part, value in expected.state.items():
                torch.testing.assert_close(state[part][k], value, rtol=1e-6, atol=1e-9)
