"""`fit(network, data, losses)`: data and losses as one has them, and an optimiser of torch's."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

from paretocosmos import DataProblem, Run, condition, fit
from paretocosmos.config.settings import read_optimizer
from paretocosmos.errors import ConfigurationError, DataError, FindingWarning
from paretocosmos.objectives import CrossEntropy, MeanSquaredError

pytestmark = pytest.mark.filterwarnings(f"ignore::{FindingWarning.__module__}.FindingWarning")
X = torch.randn(200, 3, generator=torch.Generator().manual_seed(1))
LABEL, TOTAL = (X[:, 0] > 0).long(), X.sum(dim=1, keepdim=True)

GROUPS: list[dict[str, Any]] = [{"params": [X]}, {"params": [TOTAL], "lr": 1.0}]


class Mappings(Dataset[dict[str, Tensor]]):
    """The same samples by name."""

    def __len__(self) -> int:
        return len(X)

    def __getitem__(self, row: int) -> dict[str, Tensor]:
        return {"x": X[row], "kind": LABEL[row], "light": TOTAL[row]}


class Heads(nn.Module):
    """A class and a number, as a tuple or by name."""

    def __init__(self, *, named: bool) -> None:
        super().__init__()
        self.named = named
        self.body, self.kind, self.light = nn.Linear(3, 8), nn.Linear(8, 2), nn.Linear(8, 1)

    def forward(self, x: Tensor) -> Any:
        hidden = self.body(x).relu()
        kind, light = self.kind(hidden), self.light(hidden)
        return {"light": light, "kind": kind} if self.named else (kind, light)


@pytest.fixture
def go(tmp_path: Path) -> Callable[..., Run]:
    def go(*arguments: Any, **options: Any) -> Run:
        options = {"epochs": 2, "progress": False, "report": False, "seed": 1} | options
        return fit(*arguments, out=tmp_path / "run", **options)

    return go


def _mlp() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1))


def too_little(output: Tensor, target: Tensor) -> Tensor:
    return (target - output).relu().mean()


def too_much(output: Tensor, target: Tensor) -> Tensor:
    return (output - target).relu().mean()


def test_trades_two_functions_of_one_target(go: Callable[..., Run]) -> None:
    network, before = _mlp(), _mlp().state_dict()
    run = go(network, (X, TOTAL), [too_little, too_much], epochs=60, lr=1e-2)
    assert run.front.names == ("too_little", "too_much")
    # the oracle: both losses of the network at a ray, by hand, on the rows that test
    problem = run.problem()
    test = problem.split("test")
    ray = torch.tensor(run.front.rays[3]).float()
    output = run.model(test.inputs, ray)
    expected = [f(output, test.targets["target"]).item() for f in (too_little, too_much)]
    np.testing.assert_allclose(run.front.values[3], expected, rtol=1e-5)
    assert [len(problem.split(name)) for name in ("train", "val", "test")] == [160, 20, 20]
    weights = run.front.rays[:, 0]
    order = np.corrcoef(weights, run.front.values[:, 0])[0, 1]
    assert order < -0.9  # more weight on what is missing: less is missing
    for name, value in network.state_dict().items():  # the caller's own is left as it was
        assert torch.equal(value, before[name])


@pytest.mark.parametrize(
    ("network", "data", "losses", "names", "targets"),
    [
        pytest.param(
            Heads(named=True),
            Mappings(),
            {"kind": F.cross_entropy, "light": F.mse_loss},
            ("kind", "light"),
            ("kind", "light"),
            id="mapping",
        ),
        pytest.param(
            Heads(named=False),
            (X.numpy(), LABEL.numpy(), TOTAL.numpy()),
            [nn.CrossEntropyLoss(), F.mse_loss],
            ("CrossEntropyLoss", "mse_loss"),
            ("CrossEntropyLoss", "mse_loss"),
            id="arrays",
        ),
        pytest.param(
            _mlp(),
            DataLoader(TensorDataset(X, TOTAL), batch_size=20, shuffle=True),
            [nn.MSELoss(), nn.MSELoss()],
            ("MSELoss_1", "MSELoss_2"),
            ("target", "target"),
            id="loader",
        ),
        pytest.param(
            condition(_mlp(), 2),
            dict.fromkeys(("train", "val", "test"), TensorDataset(X, TOTAL)),
            [F.l1_loss, lambda output, target: (output - target).square().mean()],
            ("l1_loss", "loss_2"),
            ("target", "target"),
            id="splits",
        ),
    ],
)
def test_finds_each_loss_its_output_and_target(
    go: Callable[..., Run],
    network: nn.Module,
    data: Any,
    losses: Any,
    names: tuple[str, ...],
    targets: tuple[str, ...],
) -> None:
    run = go(network, data, losses)
    assert run.front.names == names
    problem = run.problem()
    assert tuple(objective.target for objective in problem.objectives) == targets
    functions = list(losses.values() if isinstance(losses, Mapping) else losses)
    test, ray = problem.split("test"), torch.tensor(run.front.rays[0]).float()
    outputs = run.model(test.inputs, ray)
    if isinstance(network, Heads):
        outputs = [outputs[name] for name in names] if network.named else list(outputs)
    else:
        outputs = [outputs, outputs]
    expected = [
        function(output, test.targets[target]).item()
        for function, output, target in zip(functions, outputs, targets, strict=True)
    ]
    np.testing.assert_allclose(run.front.values[0], expected, rtol=1e-5)


def test_error_of_a_loss_says_what_it_was_given(go: Callable[..., Run]) -> None:
    losses = {"kind": lambda output, target: F.cross_entropy(output[0], target), "sum": F.mse_loss}
    with pytest.raises(ValueError, match="input") as raised:
        go(Heads(named=False), (X, LABEL, TOTAL), losses)
    shapes = r"`kind` was called with an output of shape \[\d+, 2\] and a target of shape \[\d+\]"
    assert re.search(shapes, "\n".join(raised.value.__notes__))


@dataclass
class Scores:
    rough: Tensor
    fine: Tensor


def test_outputs_may_be_a_dataclass(go: Callable[..., Run]) -> None:
    class Packed(Heads):
        def forward(self, x: Tensor) -> Any:
            return Scores(*super().forward(x))

    objectives = {
        "kind": CrossEntropy(name="kind", target="kind", output="rough"),
        "light": MeanSquaredError(name="light", target="light", output="fine"),
    }
    run = go(Packed(named=False), Mappings(), objectives)
    test, ray = run.problem().split("test"), torch.tensor(run.front.rays[0]).float()
    outputs: Any = run.model(test.inputs, ray)
    light = F.mse_loss(outputs.fine, test.targets["light"]).item()
    np.testing.assert_allclose(run.front.values[0, 1], light, rtol=1e-5)


def test_recurrent_network_is_conditioned_by_itself(go: Callable[..., Run]) -> None:
    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cells, self.end = nn.GRU(3, 8, batch_first=True), nn.Linear(8, 1)

        def forward(self, x: Tensor) -> Tensor:
            return self.end(self.cells(x)[0][:, -1])

    steps = torch.randn(100, 4, 3)
    run = go(Recurrent(), (steps, steps.sum(dim=(1, 2))[:, None]), [F.mse_loss, F.l1_loss])
    assert run.record["conditioning"]["name"] == "film"


def test_reference_is_four_times_the_losses_of_fresh_weights(go: Callable[..., Run]) -> None:
    network = nn.Linear(3, 1)
    with torch.no_grad():  # a network that was trained already
        network.weight.fill_(1.0)
        network.bias.zero_()
    run = go(network, (X, TOTAL), [F.mse_loss, F.l1_loss])
    fresh = nn.Linear(3, 1)
    errors = torch.stack([(fresh(X) - TOTAL).square().mean(), (fresh(X) - TOTAL).abs().mean()])
    # another draw of the weights has losses of the same order
    ratio = run.front.reference / errors.detach().numpy()
    assert (ratio > 0.5).all()
    assert (ratio < 20).all()
    given = DataProblem.of((X, TOTAL), [F.mse_loss, F.l1_loss])
    assert given.reference == ()


@pytest.mark.parametrize(
    ("optimizer", "settings"),
    [
        (torch.optim.AdamW([X], lr=0.02), ("adamw", 0.02, 0.01)),
        (torch.optim.Adam([X], weight_decay=0.1), ("adam", 1e-3, 0.1)),
        (torch.optim.SGD([X], lr=0.1, momentum=0.9, nesterov=True), ("sgd", 0.1, 0.0)),
        ("sgd", ("sgd", 3e-3, 0.05)),
    ],
)
def test_takes_the_settings_of_an_optimiser(
    go: Callable[..., Run], optimizer: Any, settings: tuple[str, float, float]
) -> None:
    training = go(_mlp(), (X, TOTAL), [too_little, too_much], optimizer=optimizer).record
    keys = ("optimizer", "learning_rate", "weight_decay")
    assert tuple(training["training"][key] for key in keys) == settings


def test_rate_overrides_that_of_an_optimiser() -> None:
    given = {"optimizer": torch.optim.Adam([X], lr=0.02), "learning_rate": 0.5}
    assert read_optimizer(given)["learning_rate"] == 0.5


@pytest.mark.parametrize(
    ("optimizer", "word"),
    [
        (torch.optim.RMSprop([X]), "RMSprop"),
        (torch.optim.SGD([X], lr=0.1), "momentum"),
        (torch.optim.Adam([X], betas=(0.5, 0.9)), "betas"),
        (torch.optim.Adam(GROUPS), "lr"),
    ],
)
def test_refuses_an_optimiser_it_does_not_have(optimizer: Any, word: str) -> None:
    with pytest.raises(ConfigurationError, match=word):
        read_optimizer({"optimizer": optimizer})


@pytest.mark.parametrize(
    ("arguments", "error", "word"),
    [
        ((_mlp(),), ConfigurationError, "`data` and `losses`"),
        (("toy_convex", (X, TOTAL), [too_little, too_much]), ConfigurationError, "own network"),
        ((_mlp(), (X, TOTAL), too_little), ConfigurationError, "`losses`"),
        ((_mlp(), (X, TOTAL), [too_little, "mse"]), ConfigurationError, "functions"),
        ((_mlp(), (X, LABEL, TOTAL), [too_little] * 3), ConfigurationError, "one target"),
        ((_mlp(), (X, TOTAL[:50]), [too_little, too_much]), DataError, "equal length"),
        ((_mlp(), (X, {"kind": LABEL}), [too_little, too_much]), DataError, "one by one"),
        ((_mlp(), (X[:5], TOTAL[:5]), [too_little, too_much]), DataError, "10 samples"),
        ((_mlp(), iter([X]), [too_little, too_much]), ConfigurationError, "can be split"),
    ],
)
def test_refuses_what_does_not_fit_in_one_sentence(
    go: Callable[..., Run], arguments: Any, error: type[Exception], word: str
) -> None:
    with pytest.raises(error, match=word):
        go(*arguments)


class TwoInputs(nn.Module):
    """One number of two inputs, which are positional."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        return self.body(torch.cat([x, time], dim=1))


def test_what_no_loss_names_are_the_inputs(go: Callable[..., Run]) -> None:
    rows = [
        {"x": X[row], "time": X[row, :1], "low": TOTAL[row], "high": TOTAL[row] + 1}
        for row in range(len(X))
    ]
    run = go(TwoInputs(), rows, {"low": nn.MSELoss(), "high": nn.MSELoss()})
    assert run.front.names == ("low", "high")
    inputs = {"x": X[:4], "time": X[:4, :1]}
    assert run.model(inputs, torch.tensor([0.5, 0.5])).shape == (4, 1)
    with pytest.raises(DataError, match="mappings from names to tensors"):
        go(TwoInputs(), ((X, X[:, :1]), TOTAL), [nn.MSELoss(), nn.L1Loss()])
