"""The scale of a loss: against gradients by hand, under other units, and where there is none."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from paretocosmos import fit
from paretocosmos.objectives import BinaryCrossEntropy, Deo, Objective, TprGap
from paretocosmos.problems import Problem, Split
from paretocosmos.training.loss_scales import DRAWS, compute_loss_scales
from paretocosmos.types import Batch, Outputs, Targets

ROWS = 60


class Net(nn.Module):
    """A logit for every row; the ray moves it, so that the one it is asked at matters."""

    def __init__(self, *, constant: bool = False) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 1)
        with torch.no_grad():
            self.layer.weight.copy_(torch.tensor([[0.0, 0.0, 0.0] if constant else [2, -1, 0.5]]))
            self.layer.bias.fill_(0.0 if constant else 0.3)

    def forward(self, inputs: Tensor, ray: Tensor) -> Tensor:
        return self.layer(inputs).squeeze(-1) + ray[..., 0] - 0.5


@dataclass(frozen=True, kw_only=True, eq=False)
class People(Problem):
    """Rows of two groups."""

    rows: int = ROWS
    name: str = "people"
    reference: tuple[float, ...] = (2.0, 2.0)
    input_shape: tuple[int, ...] = (3,)
    outputs: int = 1
    objectives: tuple[Objective, ...] = field(
        default_factory=lambda: (BinaryCrossEntropy(name="loss"), TprGap(name="gap"))
    )

    def split(self, name: Split) -> Batch:
        draw = torch.Generator().manual_seed(len(name))
        inputs = torch.randn(self.rows, 3, generator=draw, dtype=torch.float64)
        label = torch.randint(2, (self.rows,), generator=draw)
        sensitive = torch.randint(2, (self.rows,), generator=draw)
        return Batch(inputs, {"label": label, "sensitive": sensitive})


class Times(BinaryCrossEntropy):
    """The same loss in another unit."""

    def __init__(self, factor: float, *, name: str) -> None:
        super().__init__(name=name)
        self.factor = factor

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        return self.factor * super().loss(outputs, targets)


def _net(**how: bool) -> Net:
    return Net(**how).double()


def test_scales_are_those_of_gradients_by_hand() -> None:
    problem, net = People(objectives=(BinaryCrossEntropy(name="loss"), Deo(name="gap"))), _net()
    batch = problem.split("train")
    label, sensitive = batch.targets["label"], batch.targets["sensitive"]
    draw = torch.Generator().manual_seed(1)
    torch.randperm(ROWS, generator=draw)  # all rows are taken
    squares = []
    for _ in range(DRAWS):
        noise = torch.randn(ROWS, generator=draw).double()
        # the ray of equal weights moves no logit
        logits = (net.layer(batch.inputs).squeeze(-1).detach() + noise).requires_grad_()
        chance = 1 / (1 + torch.exp(-logits))
        entropy = -torch.where(label == 1, chance.log(), (1 - chance).log()).sum() / ROWS
        counts = [chance.tanh()[(label == 1) & (sensitive == g)].sum() for g in (0, 1)]
        pulls = [
            torch.autograd.grad(loss, logits, retain_graph=True)[0]
            for loss in (entropy, (counts[0] - counts[1]).abs() / ROWS)
        ]
        squares.append([(ROWS * pull).square().mean().item() for pull in pulls])
        # the pull of cross-entropy on a logit, in closed form
        residual = chance.detach() - label
        assert squares[-1][0] == pytest.approx(float(residual.square().mean()))
    expected = [(sum(own) / DRAWS) ** 0.5 for own in zip(*squares, strict=True)]
    assert compute_loss_scales(net, problem, seed=1).tolist() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("factor", [1000.0, 0.001])
def test_times_a_factor_a_loss_has_the_scale_times_it(factor: float) -> None:
    usual = compute_loss_scales(_net(), People(), seed=1)
    other = People(objectives=(Times(factor, name="loss"), TprGap(name="gap")))
    found = compute_loss_scales(_net(), other, seed=1)
    assert found.tolist() == pytest.approx([factor * float(usual[0]), float(usual[1])], rel=1e-6)


def test_a_gap_of_equal_outputs_has_a_scale_too() -> None:
    """Where all logits are equal the gap is 0, a corner without a direction."""
    found = compute_loss_scales(_net(constant=True), People(), seed=1)
    near = compute_loss_scales(_net(), People(), seed=1)
    assert bool((found > 0).all())
    assert 0.2 < float(found[1] / near[1]) < 5  # no nearly infinite weight


class Detached(BinaryCrossEntropy):
    """A loss that forgets where it came from."""

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        return super().loss(outputs, targets).detach()


class Elsewhere(BinaryCrossEntropy):
    """A loss with a gradient, but not at the outputs."""

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        return super().loss(outputs, targets).detach() * torch.ones((), requires_grad=True)


@pytest.mark.parametrize("kind", [Detached, Elsewhere])
def test_a_loss_without_a_gradient_stays_as_it_is(kind: type[BinaryCrossEntropy]) -> None:
    """Nothing is said here: the end of the training tells, once."""
    problem = People(objectives=(BinaryCrossEntropy(name="loss"), kind(name="lost")))
    found = compute_loss_scales(_net(), problem, seed=1)
    assert found[1] == 1
    assert found[0] == compute_loss_scales(_net(), People(), seed=1)[0]


class OfChances(Objective):
    """Cross-entropy of chances, defined from 0 to 1 alone: torch refuses others, or gives NaN."""

    def __init__(self, *, refuses: bool, factor: float = 1.0) -> None:
        super().__init__(name="chances")
        self.refuses, self.factor = refuses, factor

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        assert isinstance(outputs, Tensor)
        label = targets["label"].to(outputs)
        if self.refuses:
            return self.factor * F.binary_cross_entropy(outputs, label)
        each = torch.where(label == 1, outputs.log(), (1 - outputs).log())
        return -self.factor * each.mean()

    score = loss


class Chances(Net):
    """A probability for every row."""

    def forward(self, inputs: Tensor, ray: Tensor) -> Tensor:
        return super().forward(inputs, ray).sigmoid()


@pytest.mark.parametrize("refuses", [True, False])
def test_a_loss_of_probabilities_has_its_scale_at_the_networks_own(refuses: bool) -> None:
    objectives = OfChances(refuses=refuses), OfChances(refuses=refuses, factor=100.0)
    problem, net = People(objectives=objectives), Chances().double()
    batch = problem.split("train")
    chance = net(batch.inputs, torch.tensor([0.5, 0.5])).detach()
    label = batch.targets["label"]
    # d(-log p)/dp = -1 / p, and 1 / (1 - p) of the other class
    expected = float(torch.where(label == 1, -1 / chance, 1 / (1 - chance)).square().mean().sqrt())
    found = compute_loss_scales(net, problem, seed=1).tolist()
    assert found == pytest.approx([expected, 100 * expected], rel=1e-6)


def test_a_network_that_gives_probabilities_trains(tmp_path: Path) -> None:
    problem = People(objectives=(OfChances(refuses=True), TprGap(name="gap")))
    network = nn.Sequential(
        nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1), nn.Flatten(0), nn.Sigmoid()
    )
    run = fit(
        problem, backbone=network, epochs=1, engine="eager", device="cpu", out=tmp_path / "run"
    )
    assert run.front.values.shape == (25, 2)
