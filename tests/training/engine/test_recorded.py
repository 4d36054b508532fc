"""Recorded steps against the eager one: equal, to the last bit if traced, or they step aside."""

import copy
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from paretocosmos.methods import Cosmos, Gram, Linear, Method, State
from paretocosmos.objectives import GaussianWell, MeanSquaredError
from paretocosmos.training.engine import Step, TracedStep, make_step
from paretocosmos.types import Batch

FEATURES, J, STEPS = 3, 2, 20
SIZES = (32, 20)  # a whole batch and the last short one
OBJECTIVES = (MeanSquaredError(target="a"), GaussianWell(target="b"))


class Net(nn.Module):
    """A network that counts how often Python calls it."""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.first = nn.Linear(FEATURES + J, 8)
        self.rest = nn.Sequential(*layers, nn.ReLU(), nn.Linear(8, 2))
        self.calls = 0

    def forward(self, inputs: Tensor, ray: Tensor) -> Tensor:
        self.calls += 1
        ray = ray.view(-1, J)  # one ray comes as [J]
        copies = ray.repeat_interleave(len(inputs) // len(ray), dim=0)
        return self.rest(self.first(torch.cat([inputs, copies], dim=1)))


class Reads(Net):
    def forward(self, inputs: Tensor, ray: Tensor) -> Tensor:
        return super().forward(inputs, ray) * inputs.abs().max().item()


class Decides(Net):
    def forward(self, inputs: Tensor, ray: Tensor) -> Tensor:
        out = super().forward(inputs, ray)
        return out if inputs.mean() > 0 else 2 * out


class Moody(Net):
    """Another answer every time, by a number that is no tensor."""

    def forward(self, inputs: Tensor, ray: Tensor) -> Tensor:
        return super().forward(inputs, ray) * self.calls


class Averaging(Method):
    """Divides every loss by its running mean, which is state."""

    def sample(self, objectives: int, count: int, generator: torch.Generator) -> Tensor:
        raise AssertionError("a step draws no rays")

    def weights(
        self, losses: Tensor, rays: Tensor, gram: Gram, state: State
    ) -> tuple[Tensor, State]:
        mean = 0.9 * state["mean"] + 0.1 * losses.mean(dim=0)
        return rays / (mean + 1), {"mean": mean}


def _train(
    model: nn.Module, step: Step, state: State, groups: int, sizes: tuple[int, int] = SIZES
) -> list[Tensor]:
    """Twenty steps of Adam with batches of two sizes; every loss, then the weights and state."""
    data = torch.Generator().manual_seed(1)
    parameters = dict(model.named_parameters())
    optimiser = torch.optim.Adam(parameters.values(), lr=0.01)
    seen = []
    torch.manual_seed(2)  # what dropout draws from
    for at in range(STEPS):
        size = sizes[at % 3 == 2]
        numbers = torch.randn(size, FEATURES + 4, generator=data)
        batch = Batch(numbers[:, :FEATURES], {"a": numbers[:, 3:5], "b": numbers[:, 5:]})
        rays = torch.rand(groups, J, generator=data).softmax(dim=1)
        losses, gradients, state = step(parameters, batch, rays, state)
        for name, parameter in parameters.items():
            parameter.grad = gradients[name]
        optimiser.step()
        seen.append(losses.clone())
    drawn = torch.get_rng_state()
    return [*seen, *model.state_dict().values(), *state.values(), drawn]


def _both(
    kind: type[Net], method: Method, groups: int, *layers: nn.Module
) -> tuple[TracedStep, Net]:
    """Train eagerly and traced from the same start; the traced pair, after they proved equal."""
    state = {"mean": torch.zeros(J)} if isinstance(method, Averaging) else {}
    model = kind(*layers)
    models = (model, copy.deepcopy(model))
    steps = [make_step(model, OBJECTIVES, method) for model in models]
    traced = TracedStep(steps[1], models[1], "traced")
    eager = _train(models[0], steps[0], state, groups)
    for one, two in zip(eager, _train(models[1], traced, state, groups), strict=True):
        assert torch.equal(one, two)
    assert models[0].calls == STEPS
    return traced, models[1]


@pytest.mark.parametrize("groups", [1, 4])
@pytest.mark.parametrize(
    "method", [Cosmos(penalty=2.0), Linear(), Averaging()], ids=["cosmos", "linear", "state"]
)
def test_traced_equals_eager_bit_for_bit(method: Method, groups: int) -> None:
    traced, model = _both(Net, method, groups)
    assert traced.failure is None
    # each size: once recorded, once for comparison, and never again
    assert model.calls == 2 * len(SIZES)


@pytest.mark.parametrize("kind", [Reads, Decides])
def test_what_cannot_be_traced_runs_eagerly_and_says_why(kind: type[Net]) -> None:
    traced, _ = _both(kind, Cosmos(), 1)
    assert traced.failure.startswith("the step cannot be traced (")


def test_running_statistics_are_what_the_eager_step_leaves() -> None:
    traced, _ = _both(Net, Cosmos(), 1, nn.BatchNorm1d(8))
    assert traced.failure.startswith("the network changes its buffer `rest.0.")


def test_a_trace_that_does_not_repeat_is_not_used() -> None:
    model = Moody()
    traced = TracedStep(make_step(model, OBJECTIVES, Cosmos()), model, "traced")
    _train(model, traced, {}, 1)
    assert traced.failure == "the traced step does not repeat the eager one"
    assert model.calls == STEPS + 1  # one more for the attempt


# ---------------------------------------------------------------- compiled


@pytest.mark.system
@pytest.mark.skipif(shutil.which("g++") is None, reason="Inductor needs a C++ compiler")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch itself
def test_compiled_equals_eager_up_to_rounding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one test that compiles: it takes many seconds."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("torch._inductor.config.compile_threads", 1)  # no processes to wait for
    sizes, groups = (32, 32), 4
    model = Net()
    models = (model, copy.deepcopy(model))
    steps = [make_step(model, OBJECTIVES, Cosmos(penalty=2.0)) for model in models]
    compiled = TracedStep(steps[1], models[1], "compiled")
    eager = _train(models[0], steps[0], {}, groups, sizes)
    found = _train(models[1], compiled, {}, groups, sizes)
    assert compiled.failure is None
    for one, two in zip(found, eager, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-5)
    assert models[1].calls == 2  # recorded once and compared once
    batch = Batch(torch.randn(32, FEATURES), {name: torch.randn(32, 2) for name in ("a", "b")})
    parameters = dict(models[1].named_parameters())
    result = compiled(parameters, batch, torch.full((groups, J), 0.5), {})
    for name, gradient in result.gradients.items():
        assert gradient.stride() == parameters[name].stride()


@pytest.mark.parametrize("wrong", ["all", "gradients", "nan"])
def test_a_compilation_that_goes_wrong_is_not_used(
    monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    def compile_badly(graph: Callable[..., list[Tensor]], **named: object) -> Callable[..., Any]:
        def replay(*tensors: Tensor) -> list[Tensor]:
            losses, *rest = graph(*tensors)
            if wrong == "nan":
                return [losses.log() * float("nan"), *rest]
            return [losses * (1.1 if wrong == "all" else 1.0), *(1.1 * part for part in rest)]

        return replay

    monkeypatch.setattr(torch, "compile", compile_badly)
    assert _compiled_anyhow().failure == "the compiled step does not repeat the eager one"


def _compiled_anyhow() -> TracedStep:
    """Train with a compiler that does not work; checks that the result is the eager one."""
    model = Net()
    models = (model, copy.deepcopy(model))
    steps = [make_step(model, OBJECTIVES, Cosmos()) for model in models]
    compiled = TracedStep(steps[1], models[1], "compiled")
    eager = _train(models[0], steps[0], {}, 1)
    for one, two in zip(eager, _train(models[1], compiled, {}, 1), strict=True):
        assert torch.equal(one, two)
    return compiled
