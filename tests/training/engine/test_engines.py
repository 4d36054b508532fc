"""Engines by name; what they run is one and the same epoch, and preparing one trains nothing."""

import copy
import itertools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
import torch
from torch import Tensor, nn

from paretocosmos.methods import Cosmos, Gram, State
from paretocosmos.nn.backbones import Mlp
from paretocosmos.nn.conditioning import Concat
from paretocosmos.objectives import MeanSquaredError
from paretocosmos.training.engine import (
    ENGINES,
    BatchHandle,
    BatchSource,
    CudaGraphEngine,
    EagerEngine,
    Engine,
    InMemory,
    Optimizer,
    Streamed,
    TracedStep,
    TrainState,
    UpdateRule,
    choose_engine,
    engines,
    make_step,
)
from paretocosmos.types import Batch, map_tensors

SAMPLES, FEATURES, J = 70, 3, 2
OBJECTIVES = (MeanSquaredError(name="a", target="a"), MeanSquaredError(name="b", target="b"))


class Averaging(Cosmos):
    """COSMOS with a state: the running mean of the losses."""

    def init(self, objectives: int) -> State:
        return {"mean": torch.zeros(objectives)}

    def weights(
        self, losses: Tensor, rays: Tensor, gram: Gram, state: State
    ) -> tuple[Tensor, State]:
        mean = 0.9 * state["mean"] + 0.1 * losses.mean(dim=-2)
        weights, _ = super().weights(losses, rays, gram, {})
        return weights / (1 + mean).unsqueeze(-2), {"mean": mean}


def _plain() -> nn.Module:
    torch.manual_seed(1)
    return Concat(Mlp((FEATURES,), 2, hidden=(6,)), J)


def _stateful() -> nn.Module:
    """With running statistics and randomness."""
    torch.manual_seed(1)
    layers = (nn.Linear(FEATURES, 6), nn.BatchNorm1d(6), nn.Dropout(0.4), nn.Linear(6, 2))
    return Concat(nn.Sequential(*layers), J)


def _streamed(data: Batch) -> BatchSource:
    return Streamed(data, torch.device("cpu"), torch.float32)


def _work(
    model: nn.Module,
    batch_size: int = 16,
    rays_per_batch: int = 2,
    samples: int = SAMPLES,
    feed: Callable[[Batch], BatchSource] = InMemory,
) -> TrainState:
    draw = torch.Generator().manual_seed(5)
    numbers = torch.randn(samples, FEATURES + 4, generator=draw)
    parameters = {name: p.detach() for name, p in model.named_parameters()}
    adam = Optimizer(parameters, UpdateRule("adam", 0.01))
    adam.set_rates([0.01])
    method = Averaging(penalty=2.0)
    return TrainState(
        step=make_step(model, OBJECTIVES, method),
        parameters=parameters,
        optimizer=adam,
        method_state=dict(method.init(J)),
        source=feed(Batch(numbers[:, :FEATURES], {"a": numbers[:, 3:5], "b": numbers[:, 5:]})),
        batch_size=batch_size,
        rays_per_batch=rays_per_batch,
        buffers=list(model.buffers()),
    )


def _drawn(work: TrainState, epoch: int = 0) -> tuple[Tensor, Tensor]:
    draw, samples = torch.Generator().manual_seed(epoch), len(work.source)
    steps = -(-samples // work.batch_size)
    rays = torch.rand(steps * work.rays_per_batch, J, generator=draw).softmax(dim=-1)
    return torch.randperm(samples, generator=draw), rays


def _everything(work: TrainState) -> list[Tensor]:
    live = [
        *work.optimizer.tensors(),
        *work.method_state.values(),
        *work.buffers,
        torch.get_rng_state(),
    ]
    return [tensor.clone() for tensor in live]


def _fill(place: Tensor, value: Tensor) -> Tensor:
    assert place.shape == value.shape  # a graph has fixed places
    return place.copy_(value)


class Replayed:
    """Stands in for a CUDA graph: does what it was captured from, on what is copied into it."""

    made = 0

    def __init__(self, work: TrainState, place: BatchHandle, rays: Tensor, *places: object) -> None:
        type(self).made += 1
        self.work, self.place, self.rays = work, place, rays.clone()
        self.losses: Tensor | None = None

    def replay(self, given: BatchHandle, rays: Tensor) -> Tensor:
        map_tensors(_fill, self.place, given)
        _fill(self.rays, rays)
        steps: Any = [(self.place, self.rays)]
        if isinstance(self.place, Tensor):
            steps = self.work.split_epoch(self.place, self.rays)
        look = self.work.source.batch_at
        found = torch.stack([self.work.compute_step(look(one), ray) for one, ray in steps])
        self.losses = found if self.losses is None else self.losses.copy_(found)
        return self.losses


@pytest.fixture
def no_cuda(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Lets `CudaGraphEngine` run without a GPU, its graphs replaced."""
    cuda = MagicMock(OutOfMemoryError=torch.cuda.OutOfMemoryError)  # streams, pools and the like
    monkeypatch.setattr(engines, "torch", SimpleNamespace(**{**vars(torch), "cuda": cuda}))
    monkeypatch.setattr(engines, "release_workspaces", MagicMock())
    monkeypatch.setattr(engines, "CapturedSteps", Replayed)
    monkeypatch.setattr(Replayed, "made", 0)
    return monkeypatch


# ---------------------------------------------------------------- by name


def test_engines_by_name() -> None:
    assert ENGINES == ("auto", "eager", "traced", "compiled", "captured")
    for known in (True, False):
        for engine in ("eager", "traced", "compiled"):
            model = _plain()
            work = _work(model)
            step = work.step
            chosen = choose_engine(engine, work, model, traceable=known, steps=1)
            assert isinstance(chosen, EagerEngine)
            assert chosen.failure is None
            assert chosen.name == engine
            assert (work.step is step) == (engine == "eager")
            if engine != "eager":
                assert isinstance(work.step, TracedStep)
                assert work.step.mode == engine


@pytest.mark.parametrize(
    ("traceable", "steps", "name"),
    [(True, 300, "traced"), (True, 299, "eager"), (False, 300, "eager")],
)
def test_auto_records_what_is_known_and_worth_it(traceable: bool, steps: int, name: str) -> None:
    model = _plain()
    assert choose_engine("auto", _work(model), model, traceable=traceable, steps=steps).name == name


# ---------------------------------------------------------------- one and the same epoch


def _made(engine: str, model: nn.Module, work: TrainState) -> Engine:
    if engine != "captured":
        return choose_engine(engine, work, model, traceable=True, steps=1)
    work.step = TracedStep(work.step, model, "traced")
    return CudaGraphEngine(work)


def _check_epochs(engine: Engine, work: TrainState, other: TrainState) -> None:
    """Two epochs are those of an engine that prepared nothing."""
    states = []
    for own, runs in ((work, engine), (other, EagerEngine(other))):
        torch.manual_seed(7)
        losses = [runs.epoch(*_drawn(own, epoch)) for epoch in range(2)]
        states.append([*losses, *_everything(own)])
    for one, two in zip(*states, strict=True):
        assert torch.equal(one, two)


FEEDS = pytest.mark.parametrize("feed", [InMemory, _streamed], ids=["resident", "streamed"])


@FEEDS
@pytest.mark.parametrize("engine", ["eager", "traced", "captured"])
@pytest.mark.parametrize("make", [_plain, _stateful])
def test_preparing_trains_nothing(
    no_cuda: pytest.MonkeyPatch,
    engine: str,
    make: Callable[[], nn.Module],
    feed: Callable[[Batch], BatchSource],
) -> None:
    model = make()
    twin = copy.deepcopy(model)
    work, other = _work(model, feed=feed), _work(twin)
    prepared = _made(engine, model, work)
    before = _everything(work)
    prepared.prepare(*_drawn(work))
    for one, two in zip(before, _everything(work), strict=True):
        assert torch.equal(one, two)
    recorded = engine != "eager" and make is _plain  # batch norm changes its buffers
    assert (prepared.failure is None) == (engine in ("eager", "captured") or recorded)
    _check_epochs(prepared, work, other)


# ---------------------------------------------------------------- cutting an epoch for graphs


CUTS = [
    (samples, batch, rays_per_batch)
    for samples, batch, rays_per_batch in itertools.product(
        (1, 5, 16, 70, 129, 1000), (1, 4, 16, 60), (1, 2, 4)
    )
    if batch % rays_per_batch == 0
]


@pytest.mark.parametrize("lead", [(), (3,)], ids=["alone", "stacked"])
@pytest.mark.parametrize(("samples", "batch", "rays_per_batch"), CUTS)
def test_pieces_cover_the_epoch_once_and_in_order(
    samples: int, batch: int, rays_per_batch: int, lead: tuple[int, ...]
) -> None:
    model = _plain()
    work = _work(model, batch, rays_per_batch, samples)
    order = torch.randperm(samples).expand(*lead, samples)
    steps = -(-samples // batch)
    rays = torch.rand(*lead, steps * rays_per_batch, J)
    pieces = CudaGraphEngine(work)._split_epoch(order, rays)
    # step by step: what every piece holds is what the whole epoch holds, with its rays
    found = [step for index, ray, _ in pieces for step in work.split_epoch(index, ray)]
    expected = list(work.split_epoch(order, rays))
    assert len(found) == len(expected)
    for one, two in zip(found, expected, strict=True):
        assert torch.equal(one[0], two[0])
        assert torch.equal(one[1], two[1])
    # streamed samples come step by step
    alone = CudaGraphEngine(_work(model, batch, rays_per_batch, samples, _streamed))._split_epoch(
        order, rays
    )
    assert len(alone) == len(expected)
    for (index, ray, key), two in zip(alone, expected, strict=True):
        assert torch.equal(index, two[0])
        assert torch.equal(ray, two[1])
        assert key == (index.shape[-1], 1)
    # and few graphs hold them: long runs, single steps, and the short batch
    shapes = {(index.shape[-1], ray.shape[-2]): key for index, ray, key in pieces}
    assert len(set(shapes.values())) == len(shapes) <= 3
    if pieces:
        joined = torch.cat([index for index, _, _ in pieces], dim=-1)
        assert torch.equal(joined, order[..., : joined.shape[-1]])
        assert samples - joined.shape[-1] < rays_per_batch


def test_a_deep_network_is_captured_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    work = _work(_plain(), 2, 1, 200)
    drawn = _drawn(work)
    lengths = {key[1] for _, _, key in CudaGraphEngine(work)._split_epoch(*drawn)}
    assert lengths == {32, 1}
    monkeypatch.setattr("paretocosmos.training.engine.engines.DEEP", len(work.parameters))
    assert [key for _, _, key in CudaGraphEngine(work)._split_epoch(*drawn)] == [(2, 1)] * 100


@FEEDS
@pytest.mark.parametrize(("samples", "batch"), [(70, 16), (64, 16), (10, 16), (200, 2), (67, 2)])
def test_captured_epochs_are_those_of_single_steps(
    no_cuda: pytest.MonkeyPatch, samples: int, batch: int, feed: Callable[[Batch], BatchSource]
) -> None:
    model = _plain()
    twin = copy.deepcopy(model)
    work, other = _work(model, batch, 2, samples, feed), _work(twin, batch, 2, samples)
    engine = CudaGraphEngine(work)
    engine.prepare(*_drawn(work))
    made = Replayed.made
    for epoch in range(3):
        found = engine.epoch(*_drawn(work, epoch))
        assert torch.equal(found, EagerEngine(other).epoch(*_drawn(other, epoch)))
    for one, two in zip(_everything(work), _everything(other), strict=True):
        assert torch.equal(one, two)
    assert Replayed.made == made <= 3  # none is captured while training
    assert engine.failure is None
    assert engine.name == "captured, eager"


@pytest.mark.parametrize("make", [_plain, _stateful])
@pytest.mark.parametrize("at", [1, 2])
def test_what_cannot_be_captured_goes_on_step_by_step(
    no_cuda: pytest.MonkeyPatch, make: Callable[[], nn.Module], at: int
) -> None:
    class Failing(Replayed):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            if self.made == at:
                raise RuntimeError("operation not permitted\nwhen stream is capturing")

    no_cuda.setattr(engines, "CapturedSteps", Failing)
    model = make()
    twin = copy.deepcopy(model)
    work, other = _work(model), _work(twin)
    engine = _made("captured", model, work)
    engine.prepare(*_drawn(work))
    says = "(RuntimeError: operation not permitted when stream is capturing)"
    assert engine.failure == f"the step cannot be captured {says}"
    assert engine.name == ("traced" if make is _plain else "eager")
    _check_epochs(engine, work, other)


def test_a_gpu_that_is_full_is_no_reason_to_go_on(no_cuda: pytest.MonkeyPatch) -> None:
    def full(*given: object) -> None:
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    no_cuda.setattr(engines, "CapturedSteps", full)
    model = _plain()
    work = _work(model)
    engine = CudaGraphEngine(work)
    with pytest.raises(torch.cuda.OutOfMemoryError):
        engine.prepare(*_drawn(work))
