"""Streaming to a real GPU: never too early, never too late; skipped where there is none."""

import dataclasses
import gc
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.small import few_digits, watch
from tests.training.engine.cuda import NEEDS_CUDA, SETTINGS, near

from paretocosmos import Run, evaluate, fit
from paretocosmos.errors import DataError
from paretocosmos.problems.images.problem import ImageProblem
from paretocosmos.runtime import device as machine
from paretocosmos.training.engine import SLOTS, THREAD, Streamed, batch_source
from paretocosmos.training.progress import Progress
from paretocosmos.types import Batch, map_tensors

pytestmark = NEEDS_CUDA

CUDA = torch.device("cuda")
CYCLES = 3_000_000  # some milliseconds in which the device is busy


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    yield
    torch.cuda.synchronize()
    assert not [thread for thread in threading.enumerate() if thread.name == THREAD]


@pytest.fixture
def streams(monkeypatch: pytest.MonkeyPatch) -> None:
    """No split is small enough to lie on the device."""
    monkeypatch.setattr(machine, "SHARE", 0.0)


@pytest.fixture(scope="module")
def digits() -> ImageProblem:
    return few_digits(train=310)  # nine batches of 32 and one of 22


def _data(samples: int = 500) -> Batch:
    draw = torch.Generator().manual_seed(1)
    images = torch.randint(0, 256, (samples, 3, 64, 64), generator=draw, dtype=torch.uint8)
    targets = {name: torch.randn(samples, generator=draw) for name in ("a", "b")}
    return Batch(images, {**targets, "label": torch.arange(samples)})


def _parts(batch: Batch) -> tuple[Any, Any]:
    return batch.inputs, batch.targets


# ---------------------------------------------------------------- the feed


@pytest.mark.parametrize("lead", [(), (3,)], ids=["alone", "stacked"])
@pytest.mark.parametrize("late", ["device", "copy", "neither"])
@pytest.mark.parametrize("own_stream", [False, True])
def test_a_batch_is_whole_when_it_is_read(
    lead: tuple[int, ...], late: str, own_stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read long after it was asked for, while others arrive; or arriving long after."""
    if late == "copy":  # which sleeps on its own stream
        watch(monkeypatch, batch_source._Slot, "fill", lambda *_: torch.cuda._sleep(CYCLES))
    data = _data()
    feed = Streamed(data, CUDA, torch.float64)
    with machine.on_capture_stream(CUDA) if own_stream else nullcontext():
        for _ in range(2):
            order = torch.stack([torch.randperm(500) for _ in range(3)])
            pieces = (order if lead else order[0]).split(9, dim=-1)
            assert len(pieces) > 2 * SLOTS
            kept = []
            with closing(feed.run(pieces)) as every:
                for given in every:
                    if late == "device":
                        torch.cuda._sleep(CYCLES)
                    batch = feed.batch_at(given)
                    kept.append([map_tensors(torch.clone, part) for part in _parts(batch)])
            for (images, targets), index in zip(kept, pieces, strict=True):
                assert images.device.type == "cuda"
                assert torch.equal(images.cpu(), data.inputs[index])
                assert torch.equal(targets["label"].cpu(), index)
                for name in ("a", "b"):
                    assert torch.equal(targets[name].cpu(), data.targets[name][index].double())


def test_a_busy_device_is_not_waiting_for_data() -> None:
    feed, pieces = Streamed(_data(), CUDA, torch.float32), torch.arange(500).split(5)
    _through(feed, pieces[:10], CYCLES)
    before, started = feed.waited, time.perf_counter()
    _through(feed, pieces, CYCLES)
    took = time.perf_counter() - started
    assert feed.waited - before < 0.2 * took


def test_an_idle_device_is(monkeypatch: pytest.MonkeyPatch) -> None:
    watch(monkeypatch, batch_source._Slot, "fill", lambda *_: time.sleep(0.005))
    feed, started = Streamed(_data(), CUDA, torch.float32), time.perf_counter()
    _through(feed, torch.arange(500).split(5), 1000)
    took = time.perf_counter() - started
    assert 0.7 * took < feed.waited <= took


def _through(feed: Streamed, pieces: Any, cycles: int) -> None:
    with closing(feed.run(pieces)) as every:
        for _ in every:
            torch.cuda._sleep(cycles)
    torch.cuda.synchronize()


# ---------------------------------------------------------------- whole trainings


Both = Callable[..., tuple[Any, Any]]


@pytest.fixture
def both(tmp_path: Path) -> Both:
    """A training with its data on the device, and streamed."""

    def train(problem: Any, **given: Any) -> tuple[Any, Any]:
        given = {"epochs": 2, "device": "cuda", "settings": SETTINGS, **given}
        resident = fit(problem, preset="paper", out=tmp_path / "resident", **given)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(machine, "SHARE", 0.0)
            return resident, fit(problem, preset="paper", out=tmp_path / "streamed", **given)

    return train


def _check(one: Run, two: Run, atol: float) -> None:
    assert (one.record["data"], two.record["data"]) == ("on the device", "streamed")
    near(one, two, atol=atol)
    np.testing.assert_allclose(one.front.values, two.front.values, rtol=0, atol=10 * atol)
    assert one.record["share_waiting"] == 0
    assert 0 <= two.record["share_waiting"] < 1
    assert two.record["samples_per_second"] > 0
    assert two.record["peak_memory"] > 0


@pytest.mark.parametrize("engine", ["eager", "traced", "captured"])
def test_a_streamed_training_is_a_resident_one(
    both: Both, digits: ImageProblem, engine: str
) -> None:
    runs = both(digits, engine=engine, precision="fp64")
    assert [run.record["engine"] for run in runs] == [engine] * 2
    _check(*runs, atol=1e-8)


def test_what_waits_says_so(
    monkeypatch: pytest.MonkeyPatch, streams: None, tmp_path: Path, digits: ImageProblem
) -> None:
    seen: list[Progress] = []
    watch(monkeypatch, batch_source._Slot, "fill", lambda *_: time.sleep(0.01))
    given: dict[str, Any] = {"engine": "captured", "settings": SETTINGS, "epochs": 2}
    run = fit(
        digits, preset="paper", device="cuda", out=tmp_path / "run", progress=seen.append, **given
    )
    assert run.record["engine"] == "captured"
    assert run.record["share_waiting"] > 0.5
    assert all(0.5 < at.waiting < 1 for at in seen)
    assert all((at.memory or 0) > 0 for at in seen)


def test_the_split_never_lies_on_the_device(
    streams: None, tmp_path: Path, digits: ImageProblem
) -> None:
    parts = _parts(digits.split("train"))
    many = (map_tensors(lambda t: t.repeat(2000, *[1] * (t.ndim - 1)), part) for part in parts)
    problem = dataclasses.replace(digits, splits={**digits.splits, "train": Batch(*many)})
    images = problem.split("train").inputs
    gc.collect()
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    settings = SETTINGS | {"batch_size": 256}
    run = fit(
        problem,
        preset="paper",
        epochs=1,
        engine="captured",
        settings=settings,
        device="cuda",
        out=tmp_path / "r",
    )
    assert run.record["engine"] == "captured"
    assert run.record["peak_memory"] - before < images.numel()  # 357 MB; it needs some 50


def test_lost_data_is_one_sentence_and_the_device_is_fit_for_more(
    streams: None, tmp_path: Path, digits: ImageProblem
) -> None:
    given: dict[str, Any] = {"engine": "captured", "settings": SETTINGS, "device": "cuda"}
    calls = itertools.count(1)

    def fail(*_: object) -> None:
        if next(calls) == 10:
            raise OSError("the disk is gone")

    with pytest.MonkeyPatch.context() as patched:
        watch(patched, batch_source._Slot, "fill", fail)
        with pytest.raises(DataError, match="the disk is gone"):
            fit(digits, preset="paper", epochs=1, out=tmp_path / "cut", **given)
    again = fit(digits, preset="paper", epochs=1, out=tmp_path / "again", **given)
    assert again.record["engine"] == "captured"


def test_a_split_on_the_host_is_evaluated_as_on_the_device(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, digits: ImageProblem
) -> None:
    run = fit(
        digits, preset="paper", epochs=1, settings=SETTINGS, device="cuda", out=tmp_path / "run"
    )
    expected = [evaluate(run.model, digits, split=split) for split in ("train", "test")]
    monkeypatch.setattr(machine, "SHARE", 0.0)
    found = [evaluate(run.model, digits, split=split) for split in ("train", "test")]
    for one, two in zip(found, expected, strict=True):
        np.testing.assert_allclose(one.values, two.values, rtol=1e-6)
