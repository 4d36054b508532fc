"""Batches that a source reads while the network trains."""

import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from functools import partial
from queue import SimpleQueue
from typing import Any, Protocol

import torch
from torch import Tensor

from paretocosmos.errors import ConfigurationError, DataError
from paretocosmos.io.files import one_line
from paretocosmos.objectives import Objective
from paretocosmos.problems import Source
from paretocosmos.problems.streams.fields import BatchChecks, LabelRange
from paretocosmos.runtime.distributed import Processes
from paretocosmos.types import Batch, map_tensors

# Bytes of a sample's target up to which those of one kind are copied side by side.
SMALL_TARGET = 64

BatchHandle = Tensor | tuple[Any, ...]
"""What a feed hands to a step: the indices of its samples, or the samples, part by part."""


Share = Callable[[Tensor], Tensor]
"""The indices ``[..., B]`` of a batch to those whose inputs a process needs."""


def all_of_it(index: Tensor) -> Tensor:
    """The share of a process that trains alone."""
    return index


class Feed(Protocol):
    """A split to train on, batch by batch.

    Attributes:
        resident: whether samples lie on the device, so that a CUDA graph can pick them.
        device: where indices belong.
        waited: seconds the training stood still for want of data, so far.
    """

    resident: bool
    device: torch.device
    waited: float

    def __len__(self) -> int:
        """Samples."""

    def run(self, pieces: Sequence[Tensor]) -> Generator[BatchHandle]:
        """What belongs to indices ``[..., B]``, in order, each good until the next; to be closed.

        Pieces of several steps are for a resident feed alone.
        """

    def batch_at(self, given: BatchHandle) -> Batch:
        """The batch, on the device."""


def all_given(feed: Feed, pieces: Sequence[Tensor]) -> list[BatchHandle]:
    """What a feed gives for some pieces, to keep, and no thread left at work."""
    with closing(feed.run(pieces)) as every:
        return [map_tensors(torch.clone, given) for given in every]


class Parts:
    """A split as the tensors a batch is gathered from.

    Small targets of one kind lie side by side: however many tasks, they are gathered once. Larger
    ones, which may be memory-mapped, are not copied.

    Args:
        data: the split.
        share: which of a batch's indices are those of the inputs a step gets; it gets all targets.
    """

    def __init__(self, data: Batch, share: Share = all_of_it) -> None:
        self._inputs, self.samples, self._share = data.inputs, len(data), share
        self.tensors: list[Tensor] = []
        map_tensors(self._add, data.inputs)
        self._count = len(self.tensors)
        kinds: dict[object, list[str]] = {}
        for name, target in data.targets.items():
            small = target[:1].numel() * target.element_size() <= SMALL_TARGET
            kinds.setdefault((target.dtype, target.shape) if small else name, []).append(name)
        self._kinds = list(kinds.values())
        for names in self._kinds:
            targets = [data.targets[name] for name in names]
            self._add(targets[0] if len(names) == 1 else torch.stack(targets, dim=1))

    def indices(self, index: Tensor) -> list[Tensor]:
        """Which samples ``[..., B]`` a batch takes of every tensor."""
        own, rest = self._share(index), len(self.tensors) - self._count
        return [own] * self._count + [index] * rest

    def _add(self, tensor: Tensor) -> Tensor:
        self.tensors.append(tensor)
        return tensor

    def batch(self, taken: Sequence[Tensor]) -> Batch:
        """What was taken of every tensor as inputs and targets."""
        axes = taken[0].ndim - self.tensors[0].ndim + 1
        rest = iter(taken)
        inputs = map_tensors(lambda _: next(rest), self._inputs)
        targets: dict[str, Tensor] = {}
        for names, part in zip(self._kinds, rest, strict=True):
            parts = (part,) if len(names) == 1 else part.unbind(axes)
            targets |= dict(zip(names, parts, strict=True))
        return Batch(inputs, targets)


class Resident:
    """A split on the device of its tensors; what it gives is the indices themselves."""

    resident = True

    def __init__(self, data: Batch, share: Share = all_of_it) -> None:
        self._parts = Parts(data, share)
        self.device, self.waited = self._parts.tensors[0].device, 0.0

    def __len__(self) -> int:
        return self._parts.samples

    def run(self, pieces: Sequence[Tensor]) -> Generator[BatchHandle]:
        """The indices, which are there."""
        yield from pieces

    def batch_at(self, given: BatchHandle) -> Batch:
        """Samples by their index ``[..., B]``."""
        assert isinstance(given, Tensor)
        pairs = zip(self._parts.tensors, self._parts.indices(given), strict=True)
        return self._parts.batch([_taken(tensor, index) for tensor, index in pairs])


def _taken(tensor: Tensor, index: Tensor) -> Tensor:
    taken = tensor.index_select(0, index.flatten())
    return taken if index.ndim == 1 else taken.unflatten(0, index.shape)


# Batches there is room for: those the device works on, and those that are ready before it asks.
SLOTS = 8
# Steps the training thread may be ahead of the device.
AHEAD = 2
THREAD = "paretocosmos-feed"


class Streamed:
    """A split on the host, of which the device sees a few batches at a time.

    Args:
        data: on the host.
        device: where batches go; a CPU too, which needs no copy of them.
        dtype: the type its floats get there.
        share: as for `Parts`.
    """

    resident = False

    def __init__(
        self, data: Batch, device: torch.device, dtype: torch.dtype, share: Share = all_of_it
    ) -> None:
        self._parts, self._dtype = Parts(data, share), dtype
        self.device, self.waited = torch.device("cpu"), 0.0
        self._there = device
        self._aside = torch.cuda.Stream(device) if device.type == "cuda" else None
        self._slots: list[_Slot] = []

    def __len__(self) -> int:
        return self._parts.samples

    def batch_at(self, given: BatchHandle) -> Batch:
        """The batch its parts make."""
        floats = self._dtype
        return self._parts.batch([t.to(floats) if t.is_floating_point() else t for t in given])

    def run(self, pieces: Sequence[Tensor]) -> Generator[BatchHandle]:
        """Batches in order, gathered ahead of time; threads end with it, however it ends."""
        free: SimpleQueue[_Slot] = SimpleQueue()
        ready: SimpleQueue[_Slot | BaseException] = SimpleQueue()
        ended = threading.Event()
        for slot in self._room(pieces):
            free.put(slot)
        given = (pieces, free, ready, ended)
        thread = threading.Thread(target=self._gather, args=given, name=THREAD, daemon=True)
        thread.start()
        taken: deque[_Slot] = deque()
        try:
            for _ in pieces:
                if len(taken) > AHEAD:
                    taken[0].used.synchronize()
                    free.put(taken.popleft())
                slot = self._next(ready, taken[-1] if taken else None)
                taken.append(slot)
                slot.copied.wait()
                yield slot.parts()
                slot.used.record()
        finally:
            ended.set()
            free.put(self._slots[0])  # the thread may be waiting for one
            thread.join()
            if self._aside is not None:  # nothing reads or writes a slot any more
                self._aside.synchronize()
                torch.cuda.current_stream(self._there).synchronize()

    def _room(self, pieces: Sequence[Tensor]) -> "list[_Slot]":
        """Slots for the largest of these pieces, kept from one epoch to the next."""
        rows = max((index.numel() for index in pieces), default=0)
        if not self._slots or self._slots[0].rows < rows:
            self._slots.clear()
            self._slots += [_Slot(self._parts.tensors, rows, self._there) for _ in range(SLOTS)]
            if self._aside is not None:  # what lay in their memory before is still read
                self._aside.wait_stream(torch.cuda.current_stream(self._there))
        return self._slots

    def _gather(
        self,
        pieces: Sequence[Tensor],
        free: "SimpleQueue[_Slot]",
        ready: "SimpleQueue[_Slot | BaseException]",
        ended: threading.Event,
    ) -> None:
        """What the thread does: a slot that is free gets the next batch, until all are done."""
        aside: AbstractContextManager[object] = nullcontext()
        if self._aside is not None:
            aside = torch.cuda.stream(self._aside)
        try:
            with aside:
                for index in pieces:
                    slot = free.get()
                    if ended.is_set():
                        return
                    slot.fill(self._parts.tensors, self._parts.indices(index))
                    ready.put(slot)
        except BaseException as error:  # whatever it is, the training must not wait for ever
            ready.put(error)

    def _next(self, ready: "SimpleQueue[_Slot | BaseException]", before: "_Slot | None") -> "_Slot":
        """The next slot; waiting for it is measured from when the device has nothing else to do."""
        found = None if ready.empty() else ready.get()
        if found is None or (isinstance(found, _Slot) and not found.copied.query()):
            if before is not None:
                before.used.synchronize()
            started = time.perf_counter()
            found = found or ready.get()
            if isinstance(found, _Slot):
                found.copied.synchronize()
            self.waited += time.perf_counter() - started
        if isinstance(found, _Slot):
            return found
        raise DataError(
            "the training data could not be read in the background "
            f"({type(found).__name__}: {one_line(found)}); check that its files still exist and "
            "are intact, and continue with resume=True"
        ).by({"resume": True}) from found


class _Slot:
    """Room for a batch: where it is gathered on the host, and where the device reads it."""

    def __init__(self, tensors: Sequence[Tensor], rows: int, device: torch.device) -> None:
        self.rows, cuda = rows, device.type == "cuda"
        self._here = [
            torch.empty((rows, *t.shape[1:]), dtype=t.dtype, pin_memory=cuda) for t in tensors
        ]
        self._there = [torch.empty_like(t, device=device) for t in self._here] if cuda else None
        self.copied: torch.cuda.Event | _Past = torch.cuda.Event() if cuda else _Past()
        self.used: torch.cuda.Event | _Past = torch.cuda.Event() if cuda else _Past()
        self._shapes: list[torch.Size] = []

    def fill(self, tensors: Sequence[Tensor], indices: Sequence[Tensor]) -> None:
        """Gather samples and send them on their way, on the current stream."""
        self._shapes = [index.shape for index in indices]
        for place, tensor, index in zip(self._here, tensors, indices, strict=True):
            torch.index_select(tensor, 0, index.flatten(), out=place[: index.numel()])
        if self._there is not None:
            for here, there, index in zip(self._here, self._there, indices, strict=True):
                there[: index.numel()].copy_(here[: index.numel()], non_blocking=True)
        self.copied.record()

    def parts(self) -> tuple[Tensor, ...]:
        """What was filled in, on the device, with the shapes of the indices."""
        there = self._here if self._there is None else self._there
        filled = zip(there, self._shapes, strict=True)
        return tuple(part[: shape.numel()].unflatten(0, shape) for part, shape in filled)


class _Past:
    """The event of a CPU: all that was asked for is done."""

    def record(self) -> None:
        """Nothing is left to be done."""

    def wait(self) -> None:
        """Nor to wait for."""

    def synchronize(self) -> None:
        """Likewise."""

    def query(self) -> bool:
        """Whether it is done."""
        return True


class Loaded:
    """A source as a feed: each process reads its own share, and all see all targets.

    Worker processes of the source read ahead; on a GPU the copy of a batch runs beside the step
    before. Time counts as waiting if the device has nothing else to do when the batch is there.

    Args:
        source: of the training split.
        objectives: what is traded, by which batches are checked.
        device: where steps run.
        dtype: the type of floats there.
        groups: rays per batch.
        processes: those that share the steps.
    """

    resident = False

    def __init__(
        self,
        source: Source,
        objectives: Sequence[Objective],
        *,
        device: torch.device,
        dtype: torch.dtype,
        groups: int,
        processes: Processes,
    ) -> None:
        self.device, self.waited = torch.device("cpu"), 0.0
        self.labels: dict[str, LabelRange] = {}
        self.checks = BatchChecks(source.where, objectives, self.labels)
        self._source, self._there, self._dtype = source, device, dtype
        self._groups, self._processes = groups, processes
        self._where = source.where
        self._used = torch.cuda.Event() if device.type == "cuda" else None
        if source.replicas not in (None, processes.count):
            raise ConfigurationError(
                f"{self._where} is read by {source.replicas} process(es) and trained on by "
                f"{processes.count}: give a dataset, or a loader with a DistributedSampler for "
                "all of them"
            )

    def __len__(self) -> int:
        return self._source.samples

    def begin(self, seed: int, epoch: int) -> None:
        """Fix what is random in the next epoch."""
        self._source.begin(seed, epoch)

    def run(self, pieces: Sequence[Tensor]) -> Generator[BatchHandle]:
        """Batches in order, on the device."""
        if not self._source.shuffled:
            sizes = [len(piece) for piece in pieces]
            pieces = torch.arange(sum(sizes)).split(sizes)
        own = [self._processes.share_of_index(piece) for piece in pieces]
        with closing(self._source.read(own, pin=self._used is not None)) as batches:
            for place, piece in enumerate(pieces):
                started = time.perf_counter()
                batch = next(batches)
                if self._used is None or self._used.query():
                    self.waited += time.perf_counter() - started
                yield self._checked(batch, place + 1, len(piece))
                if self._used is not None:
                    self._used.record()

    def batch_at(self, given: BatchHandle) -> Batch:
        """The batch, which is there."""
        inputs, targets = given
        return Batch(inputs, targets)

    def _checked(self, batch: Batch, place: int, samples: int) -> Any:
        """A batch on the device, with as many samples as groups divide, and nothing bad in it."""
        named = self.checks.check(batch, place)
        there = partial(_moved, device=self._there, dtype=self._dtype)
        inputs, targets = map_tensors(there, batch.inputs), map_tensors(there, batch.targets)
        if self._processes.count > 1:
            return inputs, self._processes.gather(targets, samples)
        if any(len(part) % self._groups for part in named.values()):
            inputs, targets = (map_tensors(self._even, part) for part in (inputs, targets))
            if any(len(part) < self._groups for part in named.values()):
                raise DataError(
                    f"batch {place} of {self._where} has fewer samples than the "
                    f"{self._groups} `groups` of rays: make batches larger, or set `groups`"
                )
        return inputs, targets

    def _even(self, part: Tensor) -> Tensor:
        return part[: len(part) // self._groups * self._groups]


def _moved(part: Tensor, *, device: torch.device, dtype: torch.dtype) -> Tensor:
    return part.to(device, dtype if part.is_floating_point() else None, non_blocking=True)
