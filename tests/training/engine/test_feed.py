"""Feeds: the same batches, whether a split lies on the device or is streamed to it."""

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from queue import SimpleQueue
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from paretocosmos.errors import DataError
from paretocosmos.training.engine import (
    AHEAD,
    SLOTS,
    THREAD,
    BatchSource,
    InMemory,
    SplitTensors,
    Streamed,
    batch_source,
    collect_handles,
    make_batch_source,
)
from paretocosmos.types import Batch

SAMPLES = 50
CPU = torch.device("cpu")


def _feeders() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == THREAD]


@pytest.fixture(autouse=True)
def _no_thread_left() -> Iterator[None]:
    yield
    assert _feeders() == []


def _streamed(data: Batch) -> BatchSource:
    return Streamed(data, CPU, torch.float32)


FEEDS = pytest.mark.parametrize("make", [InMemory, _streamed], ids=["resident", "streamed"])
Make = Callable[[Batch], BatchSource]


def _data() -> Batch:
    """Inputs by name; targets alone of their kind, of one kind, and too large to be joined."""
    return Batch(
        {"x": torch.randn(SAMPLES, 1, 3, 3), "z": torch.arange(SAMPLES)},
        {
            "a": torch.randn(SAMPLES),
            "label": torch.arange(SAMPLES) % 7,
            "b": torch.randn(SAMPLES),
            "mask": torch.randint(0, 255, (SAMPLES, 9, 9), dtype=torch.uint8),
            "other": torch.randint(0, 255, (SAMPLES, 9, 9), dtype=torch.uint8),
        },
    )


def _by_hand(data: Batch, index: Tensor) -> dict[str, Tensor]:
    return {name: part[index] for name, part in [*data.inputs.items(), *data.targets.items()]}


def _named(batch: Batch) -> dict[str, Tensor]:
    assert isinstance(batch.inputs, dict)
    return {**batch.inputs, **batch.targets}


def _same(found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name].dtype == value.dtype
        assert torch.equal(found[name], value), name


# ---------------------------------------------------------------- what is in a batch


@FEEDS
@pytest.mark.parametrize("lead", [(), (3,)], ids=["alone", "stacked"])
def test_batches_are_the_samples_of_their_indices(make: Make, lead: tuple[int, ...]) -> None:
    data = _data()
    feed = make(data)
    orders = [torch.stack([torch.randperm(SAMPLES) for _ in range(3)]) for _ in range(2)]
    for order in orders if lead else [one[0] for one in orders]:  # two epochs, one feed
        pieces = order.split(4, dim=-1)  # the last one short, and more than there are slots
        assert len(pieces) > SLOTS
        with closing(feed.run(pieces)) as every:
            for given, index in zip(every, pieces, strict=True):
                _same(_named(feed.batch_at(given)), _by_hand(data, index))
    assert len(feed) == SAMPLES
    assert feed.device == CPU


@pytest.mark.parametrize(("large", "kind"), [(False, InMemory), (True, Streamed)])
def test_what_does_not_fit_is_streamed(
    monkeypatch: pytest.MonkeyPatch, large: bool, kind: type
) -> None:
    monkeypatch.setattr(
        "paretocosmos.training.engine.fits_on_device", lambda *given, **named: not large
    )
    feed = make_batch_source(Batch(torch.randn(9, 2), {}), CPU, torch.float64)
    assert isinstance(feed, kind)
    assert feed.resident == (not large)
    (given,) = collect_handles(feed, [torch.tensor([8, 1])])
    inputs = feed.batch_at(given).inputs
    assert inputs.dtype == torch.float64


# ---------------------------------------------------------------- memory-mapped data


@FEEDS
def test_what_is_memory_mapped_is_not_copied(make: Make, tmp_path: Path) -> None:
    numbers = np.random.default_rng(0).integers(0, 256, (SAMPLES, 3, 16, 16), dtype=np.uint8)
    np.save(tmp_path / "images.npy", numbers)
    images, mask = (
        torch.from_numpy(np.load(tmp_path / "images.npy", mmap_mode="c")) for _ in range(2)
    )
    data = Batch(images, {"mask": mask, "twin": mask, "label": torch.arange(SAMPLES)})
    places = {part.data_ptr() for part in SplitTensors(data).tensors}
    assert places == {images.data_ptr(), mask.data_ptr(), data.targets["label"].data_ptr()}
    feed, index = make(data), torch.tensor([[3, 1], [49, 0]])
    (given,) = collect_handles(feed, [index])
    found = feed.batch_at(given)
    assert isinstance(found.inputs, Tensor)
    assert torch.equal(found.inputs, torch.from_numpy(numbers)[index])
    assert torch.equal(found.targets["twin"], torch.from_numpy(numbers)[index])


# ---------------------------------------------------------------- ahead of time, and no further


class Fills:
    """Counts what the thread fills in; it may fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count, self.fails_at = 0, -1
        self.changed = threading.Condition()
        self.error: BaseException = OSError("the disk\nis gone")
        inside = batch_source._Slot.fill

        def fill(slot: Any, tensors: Any, index: Any) -> None:
            if self.count == self.fails_at:
                raise self.error
            inside(slot, tensors, index)
            with self.changed:
                self.count += 1
                self.changed.notify_all()

        monkeypatch.setattr(batch_source._Slot, "fill", fill)

    def wait_for(self, count: int) -> None:
        """Wait until the thread has filled so many slots."""
        with self.changed:
            self.changed.wait_for(lambda: self.count >= count)


@pytest.fixture
def fills(monkeypatch: pytest.MonkeyPatch) -> Fills:
    return Fills(monkeypatch)


def test_batches_are_ready_ahead_and_never_written_over_in_use(fills: Fills) -> None:
    data = _data()
    feed, pieces = _streamed(data), torch.arange(SAMPLES).split(2)
    with closing(feed.run(pieces)) as every:
        for at, given in enumerate(every):
            # all slots but those the device may still read
            full = min(at + SLOTS - min(at, AHEAD), len(pieces))
            fills.wait_for(full)
            assert fills.count == full
            _same(_named(feed.batch_at(given)), _by_hand(data, pieces[at]))
    assert fills.count == len(pieces)


class Handover:
    """The queue of filled slots, which the test finds empty or not as it likes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.empty = 0.0, True
        clock = SimpleNamespace(perf_counter=lambda: self.now)
        monkeypatch.setattr(batch_source, "time", clock)
        test = self

        class Queue(SimpleQueue[Any]):
            def empty(self) -> bool:
                return test.empty

            def get(self, *args: Any) -> Any:
                if threading.current_thread().name != THREAD:
                    test.now += 1
                return super().get(*args)

        monkeypatch.setattr(batch_source, "SimpleQueue", Queue)


@pytest.fixture
def handover(monkeypatch: pytest.MonkeyPatch) -> Handover:
    return Handover(monkeypatch)


def test_waiting_for_a_slow_thread_is_counted(handover: Handover) -> None:
    feed, pieces = _streamed(_data()), torch.arange(SAMPLES).split(5)
    collect_handles(feed, pieces)
    assert feed.waited == len(pieces)  # a second for each
    collect_handles(feed, pieces)
    assert feed.waited == 2 * len(pieces)


# ---------------------------------------------------------------- however it ends


@pytest.mark.parametrize("at", [0, 3, 9])
@pytest.mark.parametrize(
    "error", [OSError("the disk\nis gone"), SystemExit("the disk is gone")], ids=["os", "exit"]
)
def test_what_goes_wrong_in_the_thread_is_one_sentence(
    fills: Fills, at: int, error: BaseException
) -> None:
    fills.fails_at, fills.error = at, error
    feed, done = _streamed(_data()), 0
    says = rf"\({type(error).__name__}: the disk is gone\)"
    with (  # noqa: PT012
        pytest.raises(DataError, match=says) as raised,
        closing(feed.run(torch.arange(SAMPLES).split(5))) as every,
    ):
        for _ in every:
            done += 1
    assert done == at
    assert raised.value.__cause__ is error
    assert "\n" not in str(raised.value)
    fills.fails_at = -1  # and the feed goes on afterwards
    assert len(collect_handles(feed, torch.arange(SAMPLES).split(5))) == 10


@pytest.mark.parametrize("error", [KeyboardInterrupt, ArithmeticError])
@pytest.mark.parametrize("at", [0, 4])
def test_no_thread_outlives_an_error_in_the_training(
    fills: Fills, at: int, error: type[BaseException]
) -> None:
    feed = _streamed(_data())
    with (  # noqa: PT012
        pytest.raises(error),
        closing(feed.run(torch.arange(SAMPLES).split(2))) as every,
    ):
        for step, _ in enumerate(every):
            assert _feeders() == [THREAD]
            if step == at:
                raise error
    assert _feeders() == []
    assert fills.count < SAMPLES // 2
