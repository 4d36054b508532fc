"""The traced engine against the eager one: equal to the last bit, or it steps aside."""

import copy

import pytest
import torch
from torch import Tensor, nn

from paretocosmos.engine import ENGINES, Step, choose, describe, make_step
from paretocosmos.engine.traced import Traced
from paretocosmos.errors import ConfigurationError
from paretocosmos.methods import Cosmos, Gram, Method, State
from paretocosmos.methods.linear import Linear
from paretocosmos.objectives.gaussian_well import GaussianWell
from paretocosmos.objectives.mean_squared_error import MeanSquaredError
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
        out: Tensor = self.rest(self.first(torch.cat([inputs, copies], dim=1)))
        return out


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


def _train(model: nn.Module, step: Step, state: State, groups: int) -> list[Tensor]:
    """Twenty steps of Adam with batches of two sizes; every loss, then the weights and state."""
    data = torch.Generator().manual_seed(1)
    parameters = dict(model.named_parameters())
    optimiser = torch.optim.Adam(parameters.values(), lr=0.01)
    seen = []
    torch.manual_seed(2)  # what dropout draws from
    for at in range(STEPS):
        size = SIZES[at % 3 == 2]
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


def _both(kind: type[Net], method: Method, groups: int, *layers: nn.Module) -> tuple[Traced, Net]:
    """Train eagerly and traced from the same start; the traced pair, after they proved equal."""
    state = {"mean": torch.zeros(J)} if isinstance(method, Averaging) else {}
    model = kind(*layers)
    models = (model, copy.deepcopy(model))
    steps = [make_step(model, OBJECTIVES, method) for model in models]
    traced = Traced(steps[1], models[1])
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
    assert describe(traced) == "traced"
    # each size: once recorded, once for comparison, and never again
    assert model.calls == 2 * len(SIZES)


def test_dropout_draws_the_same_numbers() -> None:
    traced, model = _both(Net, Cosmos(), 1, nn.Dropout(0.5))
    assert traced.failure is None
    assert model.calls == 2 * len(SIZES)


@pytest.mark.parametrize("kind", [Reads, Decides])
def test_what_cannot_be_traced_runs_eagerly_and_says_why(kind: type[Net]) -> None:
    traced, _ = _both(kind, Cosmos(), 1)
    assert traced.failure is not None
    assert traced.failure.startswith("the step cannot be traced (")
    assert describe(traced) == f"eager: {traced.failure}"


def test_running_statistics_are_what_the_eager_step_leaves() -> None:
    traced, _ = _both(Net, Cosmos(), 1, nn.BatchNorm1d(8))
    assert traced.failure is not None
    assert traced.failure.startswith("the network changes its buffer `rest.0.")


def test_a_trace_that_does_not_repeat_is_not_used() -> None:
    model = Moody()
    traced = Traced(make_step(model, OBJECTIVES, Cosmos()), model)
    _train(model, traced, {}, 1)
    assert traced.failure == "the traced step does not repeat the eager one"
    assert model.calls == STEPS + 1  # one more for the attempt


def test_engines_by_name() -> None:
    model = Net()
    step = make_step(model, OBJECTIVES, Cosmos())
    for known in (True, False):
        assert choose("eager", step, model, traceable=known) is step
        assert isinstance(choose("traced", step, model, traceable=known), Traced)
    assert isinstance(choose("auto", step, model, traceable=True), Traced)
    assert choose("auto", step, model, traceable=False) is step
    assert describe(step) == "eager"
    assert ENGINES == ("auto", "eager", "traced")
    with pytest.raises(ConfigurationError, match="unknown engine `trace`; did you mean `traced`"):
        choose("trace", step, model, traceable=True)
