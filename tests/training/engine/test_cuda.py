"""Captured training on a real GPU against eager training; skipped where there is none."""

import dataclasses
import gc
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.small import few_digits
from tests.training.engine.cuda import NEEDS_CUDA, SETTINGS, near
from torch import Tensor, nn

from paretocosmos import fit
from paretocosmos.errors import EngineWarning
from paretocosmos.methods import Cosmos
from paretocosmos.problems import Problem, load_problem
from paretocosmos.problems.images.problem import ImageProblem
from paretocosmos.runs import Run
from paretocosmos.training.engine import (
    CudaGraphEngine,
    EagerEngine,
    InMemory,
    Optimizer,
    TracedStep,
    TrainState,
    UpdateRule,
    make_step,
)
from paretocosmos.types import Batch, map_tensors

pytestmark = NEEDS_CUDA


@pytest.fixture(scope="module")
def digits() -> ImageProblem:
    return few_digits()  # 1,293: 40 batches of 32, one of 13; more than one graph of 32 steps


def _go(out: Path, problem: str | Problem, **changes: Any) -> Any:
    given: dict[str, Any] = {"epochs": 2, "settings": SETTINGS, "device": "cuda"}
    return fit(problem, preset="paper", out=out, **given | changes)


def _losses(run: Run) -> np.ndarray:
    return np.array([list(one["losses"].values()) for one in run.record["evaluations"]])


# ---------------------------------------------------------------- the same training


@pytest.mark.parametrize("precision", ["tf32", "fp32"])
def test_captured_training_is_eager_training(
    digits: ImageProblem, tmp_path: Path, precision: str
) -> None:
    eager, captured = (
        _go(tmp_path / engine, digits, engine=engine, precision=precision)
        for engine in ("eager", "captured")
    )
    assert (eager.record["engine"], captured.record["engine"]) == ("eager", "captured")
    np.testing.assert_allclose(_losses(captured), _losses(eager), rtol=1e-3)
    np.testing.assert_allclose(captured.front.values, eager.front.values, rtol=2e-2)
    assert captured.record["seconds_preparing"] > 0


def test_captured_in_double_is_eager_after_twenty_steps(tmp_path: Path) -> None:
    problem = few_digits(train=310)  # nine batches of 32 and one of 22, twice
    eager, captured = (
        _go(tmp_path / engine, problem, engine=engine, precision="fp64")
        for engine in ("eager", "captured")
    )
    assert captured.record["engine"] == "captured"
    near(captured, eager, atol=1e-8)


@pytest.mark.parametrize("precision", ["tf32", "fp32", "fp64"])
@pytest.mark.parametrize("seeds", [(1,), (1, 2, 3)])
def test_pixels_from_0_to_255(tmp_path: Path, precision: str, seeds: tuple[int, ...]) -> None:
    """Captured, stacked and through the fused kernels: the bytes that the published code takes."""
    problem = dataclasses.replace(few_digits(train=310), pixels="0..255")
    eager, captured = (
        _go(tmp_path / engine, problem, engine=engine, precision=precision, seeds=seeds)
        for engine in ("eager", "captured")
    )
    for one, other in zip(captured, eager, strict=True):
        assert one.record["engine"] == "captured"
        assert other.record["engine"] == "eager"
        np.testing.assert_allclose(
            _losses(one), _losses(other), rtol=1e-9 if precision == "fp64" else 1e-2
        )


def test_auto_captures_what_is_ours(tmp_path: Path) -> None:
    run = _go(tmp_path / "run", "toy_convex", settings={}, engine="auto")
    assert run.record["engine"] == "captured"


def test_half_precision_is_captured(digits: ImageProblem, tmp_path: Path) -> None:
    half, single = (
        _go(tmp_path / precision, digits, engine="captured", precision=precision)
        for precision in ("bf16", "tf32")
    )
    assert half.record["engine"] == "captured"
    np.testing.assert_allclose(_losses(half), _losses(single), rtol=0.05)
    assert not np.array_equal(_losses(half), _losses(single))


def test_learning_rates_reach_the_graph(tmp_path: Path) -> None:
    settings = {"milestones": (1, 2), "learning_rate": 0.01, "batch_size": 64, "rays_per_batch": 4}
    eager, captured = (
        _go(
            tmp_path / engine,
            "toy_convex",
            settings=settings,
            epochs=3,
            engine=engine,
            precision="fp64",
        )
        for engine in ("eager", "captured")
    )
    assert captured.record["engine"] == "captured"
    near(captured, eager, atol=1e-8)


# ---------------------------------------------------------------- several seeds


@pytest.mark.parametrize("rays_per_batch", [1, 2])
def test_stacked_seeds_are_each_alone_after_twenty_steps(
    tmp_path: Path, rays_per_batch: int
) -> None:
    problem, seeds = few_digits(train=310), (1, 2, 3)
    given: dict[str, Any] = {"engine": "captured", "precision": "fp64"}
    given["settings"] = SETTINGS | {"rays_per_batch": rays_per_batch}
    runs = _go(tmp_path / "together", problem, seeds=seeds, **given)
    for run, seed in zip(runs, seeds, strict=True):
        alone = _go(tmp_path / f"alone-{seed}", problem, seed=seed, **given)
        assert run.record["engine"] == alone.record["engine"] == "captured"
        assert run.record["seeds_together"] == 3
        near(run, alone, atol=1e-8)
        np.testing.assert_allclose(run.front.values, alone.front.values, rtol=0, atol=1e-7)


def test_a_stack_cut_short_goes_on(tmp_path: Path) -> None:
    def stop(at: Any) -> None:
        if at.epoch == 1:
            raise InterruptedError

    given: dict[str, Any] = {"engine": "captured", "precision": "fp64", "seeds": (1, 2)}
    problem = few_digits(train=310)
    whole = _go(tmp_path / "whole", problem, **given)
    with pytest.raises(InterruptedError):
        _go(tmp_path / "cut", problem, progress=stop, **given)
    for one, two in zip(_go(tmp_path / "cut", problem, resume=True, **given), whole, strict=True):
        near(one, two, atol=1e-8)


# ---------------------------------------------------------------- networks of one's own


class Own(nn.Module):
    """A network of one's own for the toy problem; `between` makes it stateful."""

    def __init__(self, *between: nn.Module) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.net = nn.Sequential(nn.Linear(6, 16), *between, nn.ReLU(), nn.Linear(16, 2))

    def forward(self, inputs: Tensor, ray: Tensor) -> Tensor:
        return self.net(torch.cat([inputs, ray.expand(len(inputs), -1)], dim=1))


class Synchronous(Own):
    """Reads a number back at every step, which a graph cannot hold."""

    def forward(self, inputs: Tensor, ray: Tensor) -> Tensor:
        return super().forward(inputs, ray) * (1.0 + 0.0 * float(inputs.abs().max().item()))


TOY: dict[str, Any] = {"settings": {"batch_size": 100}, "epochs": 3}


def test_batch_norm_is_captured_with_its_statistics(tmp_path: Path) -> None:
    model = Own(nn.BatchNorm1d(16))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EngineWarning)  # it may run eagerly inside of the graph
        eager, captured = (
            _go(tmp_path / e, "toy_convex", model=model, engine=e, precision="fp64", **TOY)
            for e in ("eager", "captured")
        )
    assert str(captured.record["engine"]).startswith("captured")
    assert int(captured.model.state_dict()["net.1.num_batches_tracked"]) == 3 * 6
    near(captured, eager, atol=1e-8)


def test_dropout_draws_anew_in_every_replay(tmp_path: Path) -> None:
    model = Own(nn.Dropout(0.5))
    runs = [
        _go(tmp_path / f"{at}", "toy_convex", model=model, engine="captured", seed=seed, **TOY)
        for at, seed in enumerate((1, 1, 2))
    ]
    assert str(runs[0].record["engine"]).startswith("captured")
    np.testing.assert_allclose(runs[0].front.values, runs[1].front.values, rtol=1e-4)
    assert not np.allclose(runs[0].front.values, runs[2].front.values, rtol=1e-4)
    eager = _go(tmp_path / "eager", "toy_convex", model=model, engine="eager", **TOY)
    np.testing.assert_allclose(_losses(runs[0]), _losses(eager), rtol=0.2)


def test_what_reads_numbers_back_falls_back_and_is_right(tmp_path: Path) -> None:
    given = TOY | {"model": Synchronous(), "precision": "fp64"}
    eager = _go(tmp_path / "eager", "toy_convex", engine="eager", **given)
    with pytest.warns(EngineWarning, match="cannot be captured|cannot be traced") as told:
        captured = _go(tmp_path / "captured", "toy_convex", engine="captured", **given)
    assert sum(issubclass(warning.category, EngineWarning) for warning in told) == 1
    assert str(captured.record["engine"]).startswith("eager: the step cannot be captured (")
    assert torch.rand(1, device="cuda") < 1  # random numbers can be drawn again
    near(captured, eager, atol=1e-8)
    # and the device is fit for the next capture
    after = _go(tmp_path / "after", "toy_convex", engine="captured", **TOY)
    assert after.record["engine"] == "captured"


# ---------------------------------------------------------------- preparing, and memory


def _work(model: nn.Module, rate: float = 0.01) -> TrainState:
    problem = load_problem("toy_convex")
    data = problem.split("train")
    there = (map_tensors(lambda t: t.cuda(), part) for part in (data.inputs, data.targets))
    parameters = {name: p.detach() for name, p in model.named_parameters()}
    adam = Optimizer(parameters, UpdateRule("adam", 0.0))
    adam.set_rates([rate])
    return TrainState(
        step=make_step(model, problem.objectives, Cosmos(), prepare=problem.prepare),
        parameters=parameters,
        optimizer=adam,
        method_state={},
        source=InMemory(Batch(*there)),
        batch_size=8,
        rays_per_batch=1,
        buffers=list(model.buffers()),
    )


@pytest.mark.parametrize("recorded", [False, True], ids=["eager", "traced"])
def test_preparing_trains_nothing(recorded: bool) -> None:
    model = Own(*(() if recorded else (nn.BatchNorm1d(16), nn.Dropout(0.5)))).to("cuda")
    work = _work(model)
    if recorded:
        work.step = TracedStep(work.step, model, "traced")
    engine = CudaGraphEngine(work)
    order = torch.randperm(300, device="cuda")  # 37 batches of 8 and one of 4
    rays = torch.rand(38, 2, device="cuda").softmax(dim=1)
    live = [*work.optimizer.tensors(), *work.buffers]
    before = [tensor.clone() for tensor in live]
    drawn = torch.get_rng_state(), torch.cuda.get_rng_state()
    engine.prepare(order, rays)
    assert engine.failure is None
    assert all(torch.equal(one, two) for one, two in zip(before, live, strict=True))
    assert torch.equal(drawn[0], torch.get_rng_state())
    assert torch.equal(drawn[1], torch.cuda.get_rng_state())
    found = engine.epoch(order, rays)
    assert found.shape == (38, 1, 2)
    if recorded:  # and then it trains as single steps do
        after = [tensor.clone() for tensor in live]
        for tensor, value in zip(live, before, strict=True):
            tensor.copy_(value)
        expected = EagerEngine(work).epoch(order, rays)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)
        for one, two in zip(live, after, strict=True):
            torch.testing.assert_close(one, two, rtol=1e-3, atol=1e-5)


def test_peak_memory_holds_bytes_not_floats(digits: ImageProblem, tmp_path: Path) -> None:
    whole = digits.split("train")
    many = (
        map_tensors(lambda t: t.repeat(200, *[1] * (t.ndim - 1)), part) for part in _parts(whole)
    )
    problem = dataclasses.replace(digits, splits={**digits.splits, "train": Batch(*many)})
    images = problem.split("train").inputs
    kept = images.numel()  # 149 MB as bytes, 596 as floats
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    settings = SETTINGS | {"batch_size": 256, "rays_per_batch": 1}
    run = _go(tmp_path / "run", problem, epochs=1, engine="captured", settings=settings)
    assert run.record["engine"] == "captured"
    peak = torch.cuda.max_memory_allocated() - before
    # a step's activations are some 20 MB, and 32 captured steps share them
    assert kept < peak < kept + 300 * 2**20


def _parts(batch: Batch) -> tuple[Any, Any]:
    return batch.inputs, batch.targets


def test_memory_is_given_back(tmp_path: Path) -> None:
    _go(tmp_path / "first", "toy_convex", engine="captured", settings={})
    gc.collect()
    before = torch.cuda.memory_allocated()
    for at in range(3):
        _go(tmp_path / f"{at}", "toy_convex", engine="captured", settings={})
    gc.collect()
    assert torch.cuda.memory_allocated() <= before + 2**20
