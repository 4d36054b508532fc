"""Sources of splits: what they read, in which order, and what they refuse."""

import itertools
import os
import random
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from tests.processes import run_python
from tests.streams import Pictures, Sample, Stream, Task, problem_of
from torch import Tensor
from torch.utils.data import (
    DataLoader,
    Dataset,
    DistributedSampler,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
)

from paretocosmos.errors import ConfigurationError, DataError
from paretocosmos.objectives import CrossEntropy, MeanSquaredError, accuracy
from paretocosmos.problems import Source, load_problem, samples_in, scored_on
from paretocosmos.problems.streams import problem as module
from paretocosmos.types import Batch


class Rows(Dataset[tuple[Tensor, Tensor]]):
    """Samples that say which row they are, with what the three generators draw."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, row: int) -> tuple[Tensor, Tensor]:
        drawn = [float(torch.rand(())), random.random(), float(np.random.rand())]
        return torch.tensor([float(row), *drawn]), torch.tensor(0)


def _source(train: Any, **given: Any) -> Source:
    rows = [(torch.zeros(4), torch.tensor(0))]
    source = problem_of(
        train, objectives=(CrossEntropy(),), reference=(1.0,), val=rows, test=rows, **given
    ).source("train")
    assert source is not None
    return source


def _read(source: Source, *sizes: int, epoch: int = 0) -> list[Tensor]:
    source.begin(7, epoch)
    found = []
    for batch in source.read(torch.arange(sum(sizes)).split(list(sizes))):
        assert isinstance(batch.inputs, Tensor)
        found.append(batch.inputs)
    source.end()
    return found


@pytest.mark.system
def test_rows_are_read_as_asked_and_drawn_the_same_by_any_number_of_workers() -> None:
    state = torch.get_rng_state(), random.getstate(), repr(np.random.get_state())
    alone = _read(_source(Rows(10)), 4, 4, 2)
    assert torch.cat(alone)[:, 0].tolist() == list(range(10))
    after = torch.get_rng_state(), random.getstate(), repr(np.random.get_state())
    assert torch.equal(state[0], after[0])
    assert state[1:] == after[1:]
    helped = _read(_source(Rows(10), workers=2), 4, 4, 2)
    assert all(torch.equal(one, two) for one, two in zip(alone, helped, strict=True))
    other = _read(_source(Rows(10)), 4, 4, 2, epoch=1)
    assert not (torch.cat(other)[:, 1:] == torch.cat(alone)[:, 1:]).any()


def test_processes_that_share_a_batch_draw_different_numbers() -> None:
    found = []
    for rows in torch.arange(8).split(4):
        source = _source(Rows(8))
        source.begin(7, 0)
        (batch,) = source.read([rows])
        assert isinstance(batch.inputs, Tensor)
        found.append(batch.inputs)
    assert torch.cat(found)[:, 0].tolist() == list(range(8))
    assert not (found[0][:, 1:] == found[1][:, 1:]).any()


def test_a_loader_that_shuffles_is_taken_apart() -> None:
    source = _source(DataLoader(Rows(10), batch_size=4, shuffle=True))
    assert (source.samples, source.batch_size, source.shuffled) == (10, 4, True)
    assert source.inexact is None
    ordered = _source(DataLoader(Rows(10), batch_size=4))
    assert not ordered.shuffled
    shared = _source(DataLoader(Rows(10), batch_size=2, sampler=DistributedSampler(Rows(10), 3, 0)))
    assert (shared.batch_size, shared.replicas) == (6, 3)


def test_a_short_last_batch_may_be_dropped_other_samples_every_epoch() -> None:
    source = _source(DataLoader(Rows(10), batch_size=4, shuffle=True, drop_last=True))
    assert source.samples == 8
    left_out = []
    for epoch in range(4):
        rows = torch.cat(_read(source, 4, 4, epoch=epoch))[:, 0].tolist()
        assert len(set(rows)) == 8
        left_out.append(set(range(10)) - {int(row) for row in rows})
    assert len({tuple(sorted(one)) for one in left_out}) > 1


def test_a_sampler_of_ones_own_is_seeded_by_the_epoch() -> None:
    weights = [1.0] * 10
    generator = torch.Generator()
    sampler = WeightedRandomSampler(weights, 10, generator=generator)
    source = _source(DataLoader(Rows(10), batch_size=5, sampler=sampler))
    one, two, other = (_read(source, 5, 5, epoch=epoch) for epoch in (3, 3, 4))
    assert torch.equal(torch.cat(one)[:, 0], torch.cat(two)[:, 0])
    assert not torch.equal(torch.cat(one)[:, 0], torch.cat(other)[:, 0])


class _Drawn(Stream):
    def __iter__(self) -> Iterator[Sample]:
        for sample in super().__iter__():
            noise = float(torch.rand(())) + random.random() + float(np.random.rand())
            yield sample | {"image": sample["image"] + noise}


@pytest.mark.system
@pytest.mark.parametrize("workers", [0, 1])
def test_what_is_evaluated_draws_the_same_every_time(workers: int) -> None:
    val = _Drawn(5) if workers == 0 else DataLoader(_Drawn(5), batch_size=2, num_workers=1)
    source = problem_of(Pictures(4), val=val).source("val")
    state = torch.get_rng_state(), random.getstate(), repr(np.random.get_state())
    one, two = (torch.cat([b.inputs for b in source.once()]) for _ in range(2))  # type: ignore[misc]
    assert torch.equal(one, two)
    assert not torch.equal(one, Pictures(5).x)
    after = torch.get_rng_state(), random.getstate(), repr(np.random.get_state())
    assert torch.equal(state[0], after[0])
    assert state[1:] == after[1:]


def test_a_stream_goes_on_where_the_epoch_before_stopped() -> None:
    source = problem_of(Stream(10), samples=8, inputs="image").source("train")
    assert source.inexact is not None
    whole = torch.cat([Pictures(10).x] * 2)
    found = []
    for epoch in range(2):
        source.begin(1, epoch)
        pieces = torch.arange(8).split(4)
        found += [batch.inputs for batch in source.read(pieces)]
    # batches of 4, 4 and 2; then the stream begins anew
    assert [len(part) for part in found if isinstance(part, Tensor)] == [4, 4, 2, 4]
    assert torch.equal(torch.cat([p for p in found if isinstance(p, Tensor)]), whole[:14])


def test_whole_splits_come_in_batches_or_as_one() -> None:
    problem = problem_of(Pictures(8), val=DataLoader(Pictures(10, 2), batch_size=4))
    source = problem.source("val")
    assert [len(batch) for batch in source.once()] == [4, 4, 2]
    together = problem.split("val")
    assert torch.equal(together.inputs, Pictures(10, 2).x)  # type: ignore[arg-type]
    assert samples_in(problem, "val") == 10
    ((_, one),) = scored_on(load_problem("toy_convex"), "val")
    assert isinstance(one, Batch)


def test_tensors_are_taken_into_memory_and_datasets_when_asked() -> None:
    x, y = torch.randn(6, 4), torch.zeros(6, dtype=torch.long)
    rows = Batch(x, {"label": y})
    given: dict[str, Any] = {
        "objectives": (CrossEntropy(),),
        "reference": (1.0,),
        "val": rows,
        "test": rows,
    }
    tensors = TensorDataset(x, y)
    for train in (tensors, DataLoader(tensors, batch_size=2, shuffle=True)):
        problem = problem_of(train, **given)
        assert problem.source("train") is None
        assert torch.equal(problem.split("train").inputs, x)  # type: ignore[arg-type]
    assert problem.batch_size == 2
    assert problem_of(Rows(4), gather=True, **given).source("train") is None
    with pytest.raises(ConfigurationError, match="gather"):
        problem_of(DataLoader(Rows(4)), gather=True, **given)


def test_a_split_too_large_for_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LARGEST", 100)
    with pytest.raises(DataError, match="`val` of `pictures` takes more than"):
        problem_of(Pictures(4)).split("val")


def test_bytes_become_floats_from_0_to_1() -> None:
    problem = problem_of(Pictures(4))
    kept = torch.tensor([0, 51, 255], dtype=torch.uint8)
    ready = problem.prepare(kept, torch.float64)
    assert ready.tolist() == pytest.approx([0, 0.2, 1])
    words = torch.tensor([3, 7])
    assert problem.prepare(words, torch.float32) is words


class _Dies(Pictures):
    def __getitem__(self, row: int) -> Sample:
        if row == 5:
            os._exit(3)
        return super().__getitem__(row)


class _Endless:
    """Batches without an end or a length."""

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        while True:
            yield torch.zeros(3, 4), torch.zeros(3, dtype=torch.long)


class _Lies(_Endless):
    """Fewer batches than it says."""

    def __len__(self) -> int:
        return 5

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        return itertools.islice(super().__iter__(), 2)


class _Empty(Stream):
    def __iter__(self) -> Iterator[Sample]:
        return iter(())


def _drain(train: Any, **given: Any) -> None:
    source = problem_of(train, **given).source("train")
    source.begin(1, 0)
    for _ in source.read(torch.arange(source.samples).split(source.batch_size or 2)):
        pass


@pytest.mark.system
def test_a_sample_that_cannot_be_read_is_named() -> None:
    for workers in (0, 1):
        with pytest.raises(DataError, match=r"sample 3 of `train` .*OSError: file is truncated"):
            _drain(Pictures(8, bad=3), workers=workers)
    batches = WeightedRandomSampler([0, 0, 0, 1.0], 4)
    with pytest.raises(DataError, match=r"OSError: .*file is truncated"):
        _drain(DataLoader(Pictures(4, bad=3), batch_size=2, sampler=batches))


@pytest.mark.system
def test_a_worker_that_dies_is_said_to_have_died() -> None:
    """In a process of its own, since torch raises the death once more whenever the signal comes."""
    code = (
        "from paretocosmos.errors import DataError\n"
        "from tests.problems.streams.test_data_problem import _Dies, _drain\n"
        "try:\n"
        "    _drain(_Dies(8), workers=1)\n"
        "except (DataError, RuntimeError) as error:\n"
        "    print(type(error).__name__, error, flush=True)\n"
    )
    done = run_python(code)
    # or torch's own error, where the signal came between two batches: `fit` tells it the same way
    assert re.search(r"DataError .*`train` of `pictures` has died|RuntimeError .*worker", done)


class WebLoader(Stream):
    """As WebDataset's: of torch's kind, though it gives batches."""

    def __iter__(self) -> Iterator[Any]:
        samples = list(super().__iter__())
        return iter([default_collate(samples[at : at + 4]) for at in range(0, len(samples), 4)])


def test_streams_as_other_libraries_have_them() -> None:
    found = problem_of(Pictures(4), val=WebLoader(10)).split("val")
    assert torch.equal(found.inputs, Pictures(10).x)  # type: ignore[arg-type]
    rows = [{"image": [0.0] * 6, "label": row % 2, "mean": 0.5} for row in range(4)]
    for count in (1, 4):  # torch makes six lists of a number each
        with pytest.raises(DataError, match=r"found list in `image`.*with_format"):
            problem_of(Pictures(4), val=rows[:count]).split("val")


def test_a_batch_that_cannot_be_made_is_refused() -> None:
    rows = [{"image": torch.zeros(3 + row), "label": row, "mean": 0.0} for row in range(4)]
    with pytest.raises(DataError, match=r"a batch of `train`.*collate"):
        _drain(rows)


@pytest.mark.parametrize(
    ("train", "given", "kind", "words"),
    [
        (_Endless(), {}, ConfigurationError, "no length: set `samples`"),
        (Stream(4), {}, ConfigurationError, "no length: set `samples`"),
        (Stream(4), {"samples": 0}, ConfigurationError, "found 0"),
        (Pictures(4), {"samples": 9}, ConfigurationError, "`samples`.*leave it out"),
        (iter(()), {}, ConfigurationError, "more than once"),
        (3, {}, ConfigurationError, "found 3"),
        ("folder", {}, ConfigurationError, "found 'folder'"),
        ([], {}, DataError, "no samples"),
        (_Empty(1), {"samples": 4}, DataError, "yields nothing"),
        (DataLoader(Pictures(2), batch_size=4, drop_last=True), {}, DataError, "2 samples"),
        (Pictures(4), {"workers": -1}, ConfigurationError, "`workers`"),
        (Pictures(4), {"epoch": "long"}, ConfigurationError, "did you mean `longest`"),
        (Pictures(4), {"reference": (1.0,)}, ConfigurationError, "`reference`"),
        ({"sign": Pictures(4)}, {}, ConfigurationError, "none for `size`"),
        ({"sing": Pictures(4)}, {}, ConfigurationError, "did you mean `sign`"),
    ],
)
def test_what_cannot_be_read_is_refused(
    train: Any, given: dict[str, Any], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        _drain(train, **given)


class _Short(Stream):
    def __len__(self) -> int:
        return 9


def test_what_is_evaluated_does_not_end_early() -> None:
    with pytest.raises(DataError, match="`val` of `pictures` ended after 8 of 9 samples"):
        problem_of(Pictures(4), val=_Short(8)).split("val")
    rows: Any = {"objectives": (CrossEntropy(),), "reference": (1.0,), "test": [0]}
    with pytest.raises(DataError, match="`val` of `pictures` ended after 2 of 5 batches"):
        problem_of([(torch.zeros(4), torch.tensor(0))], val=_Lies(), **rows).split("val")


def test_a_loader_that_ends_early_is_refused() -> None:
    rows = [(torch.zeros(4), torch.tensor(0))]
    with pytest.raises(DataError, match="ended after 2 of 5 batches in epoch 1"):
        _drain(_Lies(), objectives=(CrossEntropy(),), reference=(1.0,), val=rows, test=rows)


def test_every_objective_is_scored_on_its_own_source() -> None:
    tasks = {"sign": Task(3, "label"), "size": Task(2, "mean", 2)}
    problem = problem_of(tasks, val=tasks)
    found = []
    for (own,), source in scored_on(problem, "val"):
        assert not isinstance(source, Batch)
        (batch,) = source.once()
        found.append((own.name, len(batch), *batch.targets))
    assert found == [("sign", 3, "label"), ("size", 2, "mean")]
    with pytest.raises(DataError, match="`val` of `pictures` has a source for each objective"):
        problem.split("val")
    with pytest.raises(ConfigurationError, match=r"`metrics` .*leave them out"):
        problem_of(tasks, val=tasks, metrics={"accuracy": accuracy})
    with pytest.raises(ConfigurationError, match=r"`metrics` .*leave them out"):
        scored_on(problem_of(tasks, metrics={"accuracy": accuracy}), "train")
    with pytest.raises(ConfigurationError, match="found both"):
        problem_of({"sign": Task(4, "label"), "size": DataLoader(Task(4, "mean"))})


def test_the_shorter_task_begins_anew() -> None:
    def read(epoch: str) -> list[dict[str, Tensor]]:
        loaders = {
            "sign": DataLoader(Task(8, "label"), batch_size=2),
            "size": DataLoader(Task(4, "mean"), batch_size=1),
        }
        source = problem_of(loaders, epoch=epoch).source("train")
        assert tuple(source.parts) == ("sign", "size")
        source.begin(1, 0)
        size = source.batch_size
        assert size is not None
        steps = torch.arange(source.samples).split(size)
        return [batch.inputs for batch in source.read(steps)]  # type: ignore[misc]

    found = read("longest")
    assert [len(step["sign"]) for step in found] == [2] * 4
    assert len(torch.cat([step["size"] for step in found]).unique(dim=0)) == 4
    assert MeanSquaredError().missing is None
