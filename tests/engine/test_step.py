"""One step against autograd through the scalar itself, on the textbook network, in float64."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor, nn

from paretocosmos.engine import make_step
from paretocosmos.engine.step import group_losses
from paretocosmos.methods import Cosmos, Gram, Method, State
from paretocosmos.methods.linear import Linear
from paretocosmos.objectives import Objective
from paretocosmos.objectives.gaussian_well import GaussianWell
from paretocosmos.objectives.mean_squared_error import MeanSquaredError
from paretocosmos.scalarize import cosmos_loss
from paretocosmos.types import Batch

DOUBLE = torch.float64
B, FEATURES, J = 24, 3, 3
OBJECTIVES: tuple[Objective, ...] = (
    MeanSquaredError(name="one", target="a"),
    GaussianWell(name="two", target="b"),
    MeanSquaredError(name="three", target="b"),
)


class Joined(nn.Module):
    """The textbook: the ray copied beside every sample; groups are neighbouring samples."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(FEATURES + J, 5), nn.Tanh(), nn.Linear(5, 2)).to(DOUBLE)
        self.unused = nn.Parameter(torch.ones(2, dtype=DOUBLE))

    def forward(self, inputs: Tensor, ray: Tensor) -> Tensor:
        ray = ray.view(-1, J)  # one ray comes as [J]
        copies = ray.repeat_interleave(len(inputs) // len(ray), dim=0)
        out: Tensor = self.net(torch.cat([inputs, copies], dim=1))
        return out


@dataclass(frozen=True)
class Watching(Method):
    """Weighs by the rays; its state is what it was shown."""

    def sample(self, objectives: int, count: int, generator: torch.Generator) -> Tensor:
        raise AssertionError("a step draws no rays")

    def weights(
        self, losses: Tensor, rays: Tensor, gram: Gram, state: State
    ) -> tuple[Tensor, State]:
        assert not losses.requires_grad
        return rays, {"gram": gram(), "steps": state["steps"] + 1, "losses": losses}


@pytest.fixture
def batch() -> Batch:
    targets = {name: torch.randn(B, 2, dtype=DOUBLE) for name in ("a", "b")}
    return Batch(torch.randn(B, FEATURES, dtype=DOUBLE), targets)


def _by_hand(model: Joined, batch: Batch, rays: Tensor, group: int) -> Tensor:
    """The losses ``[J]`` of one group alone."""
    size = B // len(rays)
    mine = slice(group * size, (group + 1) * size)
    assert isinstance(batch.inputs, Tensor)
    outputs = model(batch.inputs[mine], rays[group].unsqueeze(0))
    targets = {name: target[mine] for name, target in batch.targets.items()}
    return torch.stack([objective.loss(outputs, targets) for objective in OBJECTIVES])


def _rays(groups: int) -> Tensor:
    return torch.rand(groups, J, dtype=DOUBLE).softmax(dim=1)


def _cosmos(penalty: float, alignment: str) -> Callable[[Tensor, Tensor], Tensor]:
    return lambda losses, ray: cosmos_loss(losses, ray, penalty=penalty, alignment=alignment)  # type: ignore[arg-type]


@pytest.mark.parametrize("groups", [1, 2, 8])
@pytest.mark.parametrize(
    ("method", "scalar"),
    [
        (Cosmos(penalty=2.0), _cosmos(2.0, "ray")),
        (Cosmos(penalty=3.0, alignment="inverse"), _cosmos(3.0, "inverse")),
        (Linear(), _cosmos(0.0, "ray")),
    ],
    ids=["cosmos", "inverse", "linear"],
)
def test_gradients_are_those_of_the_mean_scalar_over_groups(
    method: Method, scalar: Callable[[Tensor, Tensor], Tensor], groups: int, batch: Batch
) -> None:
    model, rays = Joined(), _rays(groups)
    parameters = dict(model.named_parameters())
    result = make_step(model, OBJECTIVES, method)(parameters, batch, rays, {})

    losses = [_by_hand(model, batch, rays, group) for group in range(groups)]
    total = sum(
        (scalar(loss, ray) for loss, ray in zip(losses, rays, strict=True)), torch.zeros(())
    )
    expected = torch.autograd.grad(
        total / groups, list(parameters.values()), materialize_grads=True
    )
    torch.testing.assert_close(result.losses, torch.stack(losses).detach())
    for name, gradient in zip(parameters, expected, strict=True):
        torch.testing.assert_close(result.gradients[name], gradient, rtol=1e-10, atol=1e-13)
    assert result.gradients["net.0.weight"].abs().sum() > 0
    assert not result.gradients["unused"].any()


@pytest.mark.parametrize("groups", [1, 4])
def test_gram_holds_the_inner_products_of_the_gradients(groups: int, batch: Batch) -> None:
    model, rays = Joined(), _rays(groups)
    parameters = dict(model.named_parameters())
    step = make_step(model, OBJECTIVES, Watching())
    state = step(parameters, batch, rays, {"steps": torch.zeros(())}).state
    for group in range(groups):
        losses = _by_hand(model, batch, rays, group)
        rows = [
            torch.cat(
                [
                    part.flatten()
                    for part in torch.autograd.grad(
                        loss, list(parameters.values()), retain_graph=True, materialize_grads=True
                    )
                ]
            )
            for loss in losses
        ]
        for i in range(J):
            for j in range(J):
                torch.testing.assert_close(state["gram"][group, i, j], rows[i].dot(rows[j]))


def test_the_methods_state_is_carried_on(batch: Batch) -> None:
    model, rays = Joined(), _rays(2)
    parameters = dict(model.named_parameters())
    step = make_step(model, OBJECTIVES, Watching())
    state: State = {"steps": torch.zeros(())}
    for _ in range(3):
        result = step(parameters, batch, rays, state)
        state = result.state
    assert state["steps"] == 3
    assert torch.equal(state["losses"], result.losses)


def test_a_step_changes_nothing_it_was_given(batch: Batch) -> None:
    model, rays = Joined(), _rays(1)
    parameters = dict(model.named_parameters())
    before = {name: p.detach().clone() for name, p in parameters.items()}
    result = make_step(model, OBJECTIVES, Cosmos())(parameters, batch, rays, {})
    assert all(p.grad is None and p.requires_grad for p in parameters.values())
    assert all(torch.equal(parameters[name], value) for name, value in before.items())
    assert not result.losses.requires_grad
    assert not any(gradient.requires_grad for gradient in result.gradients.values())


def test_parameters_that_are_left_out_stay_frozen(batch: Batch) -> None:
    model = Joined()
    parameters = {"net.2.weight": model.get_parameter("net.2.weight")}
    step = make_step(model, OBJECTIVES, Cosmos())
    every = step(dict(model.named_parameters()), batch, _rays(1), {})
    torch.manual_seed(0)
    assert set(step(parameters, batch, _rays(1), {}).gradients) == {"net.2.weight"}
    assert set(every.gradients) == set(dict(model.named_parameters()))


def test_heads_are_split_into_groups_too(batch: Batch) -> None:
    heads = {"x": torch.randn(B, 2, dtype=DOUBLE), "y": torch.randn(B, 2, dtype=DOUBLE)}
    objectives = (
        MeanSquaredError(name="one", target="a", output="x"),
        MeanSquaredError(name="two", target="b", output="y"),
    )
    found = group_losses(objectives, heads, batch.targets, 3)
    size = B // 3
    for g in range(3):
        mine = slice(g * size, (g + 1) * size)
        for j, (head, target) in enumerate((("x", "a"), ("y", "b"))):
            # the mean over every number, written out
            squares = (heads[head][mine] - batch.targets[target][mine]) ** 2
            torch.testing.assert_close(found[g, j], squares.sum() / squares.numel())
