"""Trainings on data that is read on the way, against the same data in memory."""

import math
import multiprocessing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tests.resumed import results, stop_at
from tests.streams import Heads, Pictures, Stream, Task, problem_of
from torch import Tensor
from torch.utils.data import DataLoader

from paretocosmos import DataProblem, Run, condition, fit
from paretocosmos.errors import ConfigurationError, DataError, DataWarning, FindingWarning
from paretocosmos.methods import Linear
from paretocosmos.objectives import CrossEntropy, MeanSquaredError
from paretocosmos.training.engine import make_step
from paretocosmos.types import Batch

pytestmark = pytest.mark.filterwarnings(f"ignore::{FindingWarning.__module__}.FindingWarning")
EPOCHS = 3
SETTINGS: dict[str, Any] = {"rays_per_batch": 2, "rays": 3, "calibrate": False, "evaluate_every": 1}


def _fit(problem: DataProblem, out: Path, **given: Any) -> Run:
    torch.manual_seed(1)
    asked: dict[str, Any] = {"epochs": EPOCHS, "progress": False, "report": False} | given
    settings = SETTINGS | ({} if problem.batch_size else {"batch_size": 8})
    return fit(problem, backbone=Heads(), conditioning="film", settings=settings, out=out, **asked)


def test_what_is_read_on_the_way_gives_what_memory_gives(tmp_path: Path) -> None:
    loader = DataLoader(Pictures(28), batch_size=8, shuffle=True)
    memory = _fit(problem_of(Pictures(28), gather=True), tmp_path / "0", engine="eager")
    for place, problem in enumerate((problem_of(Pictures(28)), problem_of(loader)), start=1):
        run = _fit(problem, tmp_path / str(place))
        assert (memory.record["data"], run.record["data"]) == ("on the device", "streamed")
        assert str(run.record["engine"]).startswith("eager: samples are read while it trains")
        assert run.front == memory.front
        assert run.record["evaluations"][-1]["losses"] == memory.record["evaluations"][-1]["losses"]


@pytest.mark.system
def test_a_resumed_training_draws_the_same_transforms(tmp_path: Path) -> None:
    whole = _fit(problem_of(Pictures(20, noise=True)), tmp_path / "whole")
    with pytest.raises(InterruptedError):
        _fit(problem_of(Pictures(20, noise=True)), tmp_path / "half", progress=stop_at(1))
    _fit(problem_of(Pictures(20, noise=True), workers=1), tmp_path / "half", resume=True)
    assert results(tmp_path / "half") == results(whole.folder)


def test_a_stream_says_that_it_cannot_be_resumed_exactly(tmp_path: Path) -> None:
    def problem() -> DataProblem:
        return problem_of(Stream(20), samples=16)

    with pytest.raises(InterruptedError):
        _fit(problem(), tmp_path / "run", progress=stop_at(1))
    with pytest.warns(DataWarning, match="after epoch 1, but not with the same samples"):
        _fit(problem(), tmp_path / "run", resume=True)


def test_every_objective_is_trained_on_its_own_batch_alone() -> None:
    """Losses and gradients of a step, literally."""
    torch.manual_seed(1)
    model = condition(Heads(), objectives=2, how="film").double()
    objectives = problem_of(Pictures(4)).objectives
    step = make_step(model, objectives, Linear(), tasks=("sign", "size"))
    parts = {
        "sign": (torch.randn(4, 2, 3, 3).double(), torch.tensor([0, 1, 1, 0])),
        "size": (torch.randn(6, 2, 3, 3).double(), torch.randn(6, 1).double()),
    }
    inputs: Any = {name: x for name, (x, _) in parts.items()}
    targets: Any = {"sign": {"label": parts["sign"][1]}, "size": {"mean": parts["size"][1]}}
    rays = torch.tensor([[0.3, 0.7], [0.8, 0.2]], dtype=torch.float64)
    parameters = {name: p.detach() for name, p in model.named_parameters()}
    found = step(parameters, Batch(inputs, targets), rays, {})
    losses = _literal(model, parts, rays)
    assert torch.allclose(found.losses, losses.detach())
    total = (losses * rays).sum() / 2
    expected = torch.autograd.grad(total, list(model.parameters()), allow_unused=True)
    for (name, _), gradient in zip(model.named_parameters(), expected, strict=True):
        if gradient is not None:
            assert torch.allclose(found.gradients[name], gradient), name


def _literal(
    model: torch.nn.Module, parts: dict[str, tuple[Tensor, Tensor]], rays: Tensor
) -> Tensor:
    rows = []
    for group, ray in enumerate(rays):
        x, y = (part.chunk(2)[group] for part in parts["sign"])
        u, v = (part.chunk(2)[group] for part in parts["size"])
        sign, size = model(x, ray)["sign"], model(u, ray)["size"]
        rows.append(torch.stack([F.cross_entropy(sign, y), F.mse_loss(size, v)]))
    return torch.stack(rows)


def test_a_loader_for_each_objective_trains(tmp_path: Path) -> None:
    # one target is called as its objective is, whose inputs must not be taken for it
    own = CrossEntropy(name="label", output="sign", ignore_index=-100)
    objectives = (own, *problem_of(Pictures(4)).objectives[1:])
    named = {"label": Task(24, "label"), "size": Task(10, "mean", 2)}
    given: dict[str, Any] = {"objectives": objectives, "val": named, "test": named}
    _fit(problem_of(named, **given), tmp_path / "named", epochs=1)
    tasks = {"sign": Task(24, "label"), "size": Task(10, "mean", 2)}
    # the weighted sum, which lowers every loss from the first step
    run = _fit(problem_of(tasks, val=tasks, test=tasks), tmp_path / "run", method="linear")
    assert np.isfinite(run.front.values).all()
    before, after = (run.record["evaluations"][at]["losses"] for at in (0, -1))
    assert all(after[name] < before[name] for name in ("sign", "size"))
    loaders = {
        "sign": DataLoader(Task(24, "label"), batch_size=8, shuffle=True),
        "size": DataLoader(Task(10, "mean", 2), batch_size=5),  # 4 samples: two rays share it
    }
    assert np.isfinite(_fit(problem_of(loaders), tmp_path / "2").front.values).all()


class _Batches:
    """Batches of these sizes and pictures, as a loader yields them."""

    def __init__(self, *batches: dict[str, Tensor]) -> None:
        self.batches = batches

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Iterator[dict[str, Tensor]]:
        return iter(self.batches)


def _batch(**changes: Tensor) -> dict[str, Tensor]:
    x = Pictures(8).x
    return {"image": x, "label": torch.ones(8).long(), "mean": torch.ones(8, 1)} | changes


@pytest.mark.parametrize(
    ("second", "words"),
    [
        (_batch(image=torch.zeros(8, 2, 3, 4)), r"batch 2 .*\(2, 3, 4\).*the network cannot take"),
        (_batch(image=torch.zeros(8, 2, 3, 3, 1)), "same parts, of the same types"),
        (_batch(image=torch.zeros(8, 2, 3, 3).double()), "same parts, of the same types"),
        (_batch(image=torch.full((8, 2, 3, 3), math.nan)), "batch 2 .* NaN in its inputs"),
        (_batch(label=torch.full((8,), 2)), "labels of `label` must be 0 to 1.*found 2 in "),
        (_batch(label=torch.full((8,), -1)), "ignore_index=-1"),
        (
            {name: part[:1] for name, part in _batch().items()},
            "fewer samples than the 2 `rays_per_batch`",
        ),
    ],
)
def test_a_batch_unlike_the_first_is_refused(
    second: dict[str, Tensor], words: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=words):
        _fit(problem_of(_Batches(_batch(), second)), tmp_path / "run")


def test_targets_that_are_nan_must_be_allowed(tmp_path: Path) -> None:
    lacking = _batch(mean=torch.full((8, 1), math.nan))
    _fit(problem_of(_Batches(_batch(), lacking)), tmp_path / "run", epochs=1)
    strict = (
        CrossEntropy(name="sign", output="sign"),
        MeanSquaredError(name="size", output="size", target="mean"),
    )
    with pytest.raises(DataError, match=r"NaN in its target mean.*ignore_nan=True"):
        _fit(problem_of(_Batches(_batch(), lacking), objectives=strict), tmp_path / "2")


def test_the_batch_size_is_the_loaders(tmp_path: Path) -> None:
    problem = problem_of(DataLoader(Pictures(16), batch_size=4, shuffle=True))
    with pytest.raises(ConfigurationError, match="4, found 8: leave it out"):
        fit(
            problem,
            backbone=Heads(),
            conditioning="film",
            settings={"batch_size": 8},
            out=tmp_path / "run",
        )


@pytest.mark.system
def test_workers_end_with_the_training(tmp_path: Path) -> None:
    _fit(problem_of(Pictures(16), workers=1), tmp_path / "run", epochs=1)
    assert not multiprocessing.active_children()
