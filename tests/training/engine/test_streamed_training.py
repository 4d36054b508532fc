"""Whole trainings on streamed data against the same on data that lies on the device."""

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.small import few_digits
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from paretocosmos import Problem, Run, fit
from paretocosmos.errors import DataError
from paretocosmos.evaluation import evaluate as evaluation
from paretocosmos.evaluation import samples
from paretocosmos.objectives import MeanSquaredError
from paretocosmos.problems import Split
from paretocosmos.problems.images import ImageProblem
from paretocosmos.runs import find_newest_checkpoint, load_tensors
from paretocosmos.training import engine
from paretocosmos.training.engine import TrainState, batch_source
from paretocosmos.training.engine.batch_source import THREAD
from paretocosmos.training.loop import Progress
from paretocosmos.types import Batch, Inputs, first

IMAGES: dict[str, Any] = {
    "batch_size": 32,
    "rays_per_batch": 2,
    "rays": 5,
    "evaluate_every": 1,
    "reference": (4.0, 4.0),
}
TABLE: dict[str, Any] = {"batch_size": 100, "rays": 5}  # five of 100 and one of 12


@pytest.fixture(scope="module")
def digits() -> ImageProblem:
    return few_digits(train=141)  # four batches of 32 and one of 13, which gives 12


Both = Callable[..., tuple[Any, Any]]


def _stream(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (engine, samples):
        monkeypatch.setattr(module, "fits_on_device", lambda *given, **named: False)


@pytest.fixture
def both(tmp_path: Path) -> Both:
    """A training with its data on the device, and streamed."""

    def train(problem: Any, **given: Any) -> tuple[Any, Any]:
        given = {"epochs": 2, "device": "cpu", **given}
        resident = fit(problem, preset="paper", out=tmp_path / "resident", **given)
        with pytest.MonkeyPatch.context() as patched:
            _stream(patched)
            return resident, fit(problem, preset="paper", out=tmp_path / "streamed", **given)

    return train


def _same(resident: Run, streamed: Run) -> None:
    assert (resident.record["data"], streamed.record["data"]) == ("on the device", "streamed")
    assert streamed.front == resident.front
    assert streamed.front_val == resident.front_val
    one, two = (load_tensors(find_newest_checkpoint(run.folder))[0] for run in (resident, streamed))
    assert one.keys() == two.keys()
    for name, value in one.items():
        assert torch.equal(value, two[name]), name
    for before, after in zip(
        resident.record["evaluations"], streamed.record["evaluations"], strict=True
    ):
        assert before["losses"] == after["losses"]
    assert resident.record["share_waiting"] == 0
    assert 0 <= streamed.record["share_waiting"] < 1
    assert not [thread for thread in threading.enumerate() if thread.name == THREAD]


@pytest.mark.parametrize("engine", ["eager", "traced"])
def test_streamed_images_train_the_same_network(
    both: Both, digits: ImageProblem, engine: str
) -> None:
    runs = both(digits, settings=IMAGES, engine=engine)
    _same(*runs)
    assert [run.record["engine"] for run in runs] == [engine] * 2


@pytest.mark.parametrize("precision", ["tf32", "fp64"])
def test_streamed_rows_train_the_same_network(both: Both, precision: str) -> None:
    _same(*both("toy_convex", settings=TABLE | {"rays_per_batch": 4}, precision=precision))


def test_streamed_seeds_train_together(both: Both) -> None:
    resident, streamed = both("toy_convex", settings=TABLE, seeds=(1, 2, 3))
    for one, two in zip(resident, streamed, strict=True):
        _same(one, two)
        assert two.record["seeds_together"] == 3


def test_several_networks_share_one_feed(both: Both, digits: ImageProblem) -> None:
    settings = {**IMAGES, "rays_per_batch": 1}
    del settings["rays"]
    _same(*both(digits, method="single_task", settings=settings, epochs=1))


# ---------------------------------------------------------------- when it goes wrong


def test_data_that_goes_away_ends_the_training_and_can_be_resumed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, both: Both
) -> None:
    resident, _ = both("toy_convex", settings=TABLE)
    _stream(monkeypatch)
    inside, calls = batch_source._Slot.fill, 0

    def fill(slot: Any, tensors: Any, index: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == 12:  # after two to prepare and six of the first epoch
            raise OSError("the disk is gone")
        inside(slot, tensors, index)

    monkeypatch.setattr(batch_source._Slot, "fill", fill)
    given: dict[str, Any] = {"epochs": 2, "device": "cpu", "settings": TABLE}
    with pytest.raises(DataError, match="OSError: the disk is gone"):
        fit("toy_convex", preset="paper", out=tmp_path / "cut", **given)
    assert not [thread for thread in threading.enumerate() if thread.name == THREAD]
    assert load_tensors(find_newest_checkpoint(tmp_path / "cut"))[1]["epoch"] == 1
    _same(resident, fit("toy_convex", preset="paper", out=tmp_path / "cut", resume=True, **given))


def test_an_interrupted_training_leaves_no_thread(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _stream(monkeypatch)
    inside, steps = TrainState.compute_step, 0

    def advance(self: TrainState, batch: Batch, rays: Tensor) -> Tensor:
        nonlocal steps
        steps += 1
        if steps == 3:
            raise KeyboardInterrupt
        return inside(self, batch, rays)

    monkeypatch.setattr(TrainState, "compute_step", advance)
    with pytest.raises(KeyboardInterrupt):
        fit(
            "toy_convex",
            preset="paper",
            epochs=2,
            settings=TABLE,
            device="cpu",
            out=tmp_path / "run",
        )
    assert not [thread for thread in threading.enumerate() if thread.name == THREAD]


# ---------------------------------------------------------------- memory-mapped, and not copied


@dataclass(frozen=True, kw_only=True, eq=False)
class Mapped(Problem):
    """Images in a memory-mapped file; a network sees a few of their pixels."""

    images: Tensor

    def split(self, name: Split) -> Batch:
        wanted = torch.linspace(0, 1, len(self.images))
        return Batch(self.images, {"low": wanted, "high": 1 - wanted})

    def prepare(self, inputs: Inputs, dtype: torch.dtype) -> Inputs:
        return first(inputs)[:, 0, :2, :2].flatten(1).to(dtype) / 255


class Sizes(TorchDispatchMode):
    """The largest tensor that any operation of this thread fills, in bytes."""

    largest = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        before = {t.untyped_storage().data_ptr() for t in args if isinstance(t, Tensor)}
        made = isinstance(result, Tensor) and func is not torch.ops.aten.empty.memory_format
        if made and result.untyped_storage().data_ptr() not in before:
            self.largest = max(self.largest, result.untyped_storage().nbytes())
        return result


@pytest.mark.parametrize("stream", [False, True], ids=["resident", "streamed"])
def test_a_memory_mapped_split_is_never_copied_whole(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, stream: bool
) -> None:
    shape = (300, 3, 64, 64)
    numbers = np.lib.format.open_memmap(
        tmp_path / "images.npy", mode="w+", dtype=np.uint8, shape=shape
    )
    numbers[:, 0, :2, :2] = np.random.default_rng(0).integers(0, 256, (300, 2, 2))
    images = torch.from_numpy(numbers)
    problem = Mapped(
        name="mapped",
        objectives=tuple(MeanSquaredError(name=n, target=n) for n in ("low", "high")),
        reference=(2.0, 2.0),
        input_shape=(4,),
        outputs=1,
        images=images,
    )
    if stream:
        _stream(monkeypatch)
    # a chunk of ten samples to evaluate, so that only training could be large
    monkeypatch.setattr(evaluation, "CHUNK_IMAGES", 10 * 5 * math.prod(shape[1:]))
    settings = {"batch_size": 32, "rays": 5, "hidden": (8,)}
    with Sizes() as sizes:  # type: ignore[no-untyped-call]
        run = fit(
            problem,
            preset="paper",
            epochs=1,
            settings=settings,
            engine="eager",
            device="cpu",
            out=tmp_path / "run",
        )
    assert run.record["data"] == ("streamed" if stream else "on the device")
    batch = 32 * math.prod(shape[1:])  # which another thread gathers where it is streamed
    assert sizes.largest < batch if stream else sizes.largest == batch


# ---------------------------------------------------------------- what it says of itself


@pytest.mark.system
def test_progress_and_record_say_what_it_costs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, digits: ImageProblem
) -> None:
    _stream(monkeypatch)
    inside = batch_source._Slot.fill

    def slow(slot: Any, tensors: Any, index: Any) -> None:
        time.sleep(0.03)  # longer than a step
        inside(slot, tensors, index)

    monkeypatch.setattr(batch_source._Slot, "fill", slow)
    seen: list[Progress] = []
    run = fit(
        digits,
        preset="paper",
        epochs=3,
        settings=IMAGES | {"evaluate_every": 2},
        device="cpu",
        out=tmp_path / "run",
        progress=seen.append,
    )
    seconds = np.diff([0.0, *(at.seconds for at in seen)])
    for at, own in zip(seen, seconds, strict=True):
        assert at.unit == "images"
        assert at.samples_per_second == pytest.approx(141 / own)
        assert 0 < at.waiting < 1
        assert at.memory is not None
        assert at.memory > 50 * 2**20  # torch alone
        assert at.seconds_left > 0
    record = run.record
    assert record["samples_per_second"] == pytest.approx(3 * 141 / record["seconds_training"])
    waited = sum(at.waiting * own for at, own in zip(seen, seconds, strict=True))
    assert record["share_waiting"] == pytest.approx(waited / record["seconds_training"])
    assert record["peak_memory"] >= (seen[-1].memory or 0)
