"""Batch sources: a split on the device, one streamed from the host, or one that is read meanwhile.

A split that fits lies on the device, and a batch is picked there, inside the step. One that does
not is streamed: a thread gathers batches a few steps ahead into pinned memory, from where a stream
of its own copies them to the device, beside the training. The split may be memory-mapped: only what
a batch needs is read. Both give the same numbers.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from queue import SimpleQueue
from typing import Any

import torch
from torch import Tensor

from paretocosmos.errors import ConfigurationError, DataError
from paretocosmos.io.files import one_line
from paretocosmos.objectives import Objective
from paretocosmos.problems import Source
from paretocosmos.problems.streams import BatchChecks, LabelRange
from paretocosmos.runtime.distributed import Processes
from paretocosmos.types import Batch, map_tensors

# Bytes of a sample's target up to which those of one kind are copied side by side: labels, not
# images or masks, of which a copy in memory would be too large.
SMALL_TARGET = 64

BatchHandle = Tensor | tuple[Any, ...]
"""What a source hands to a step: the indices of its samples, or the samples, tensor by tensor."""

Share = Callable[[Tensor], Tensor]
"""The indices ``[..., B]`` of a batch to those whose inputs a process needs."""


def collect_handles(source: "BatchSource", pieces: Sequence[Tensor]) -> list[BatchHandle]:
    """Return copies of a source's handles for some pieces, and leave no thread at work."""
    with closing(source.run(pieces)) as handles:
        return [map_tensors(torch.clone, handle) for handle in handles]


class SplitTensors:
    """A split as the tensors a batch is gathered from.

    Small targets of one kind lie side by side: however many tasks, they are gathered once. Larger
    ones, which may be memory-mapped, are not copied.

    Args:
        data: the split.
        share: which of a batch's indices are those of the inputs a step gets; it gets all targets.
    """

    def __init__(self, data: Batch, share: Share | None = None) -> None:
        self._inputs, self.samples, self._share = data.inputs, len(data), share
        self.inputs: list[Tensor] = []
        map_tensors(self._add_input, data.inputs)
        kinds: dict[object, list[str]] = {}
        # a large target is a kind of its own, under its name
        for name, target in data.targets.items():
            small = target[:1].numel() * target.element_size() <= SMALL_TARGET
            kinds.setdefault((target.dtype, target.shape) if small else name, []).append(name)
        self._kinds = list(kinds.values())
        self.targets: list[Tensor] = []
        for names in self._kinds:
            targets = [data.targets[name] for name in names]
            self.targets.append(targets[0] if len(names) == 1 else torch.stack(targets, dim=1))

    def _add_input(self, tensor: Tensor) -> Tensor:
        self.inputs.append(tensor)
        return tensor

    @property
    def tensors(self) -> list[Tensor]:
        """The inputs' tensors, then the targets'."""
        return [*self.inputs, *self.targets]

    def indices(self, index: Tensor) -> list[Tensor]:
        """Return which samples ``[..., B]`` a batch takes of every tensor."""
        of_inputs = index if self._share is None else self._share(index)
        return [of_inputs] * len(self.inputs) + [index] * len(self.targets)

    def to_batch(self, gathered: Sequence[Tensor]) -> Batch:
        """Arrange what was gathered of every tensor as inputs and targets."""
        rest = iter(gathered)  # in the order of `tensors`: the inputs, then the kinds of targets
        inputs = (
            next(rest)
            if isinstance(self._inputs, Tensor)
            else map_tensors(lambda _: next(rest), self._inputs)
        )
        # targets side by side have an axis after the samples', which an axis of seeds may precede
        axis = gathered[0].ndim - self.inputs[0].ndim + 1
        targets: dict[str, Tensor] = {}
        for names, target in zip(self._kinds, rest, strict=True):
            columns = (target,) if len(names) == 1 else target.unbind(axis)
            targets.update(zip(names, columns, strict=True))
        return Batch(inputs, targets)


class InMemory:
    """A split on the device of its tensors; its handles are the indices themselves."""

    resident = True

    def __init__(self, data: Batch, share: Share | None = None) -> None:
        self._split = SplitTensors(data, share)
        self._tensors = self._split.tensors
        self.device, self.waited = self._tensors[0].device, 0.0

    def __len__(self) -> int:
        return self._split.samples

    def run(self, pieces: Sequence[Tensor]) -> Generator[BatchHandle]:
        """Yield the indices: there is nothing to prepare."""
        yield from pieces

    def batch_at(self, handle: BatchHandle) -> Batch:
        """Pick samples by their index ``[..., B]``."""
        assert isinstance(handle, Tensor)
        # `index_select` takes an index with one axis
        gathered = [
            tensor.index_select(0, index.flatten())
            for tensor, index in zip(self._tensors, self._split.indices(handle), strict=True)
        ]
        if handle.ndim > 1:  # of stacked seeds
            gathered = [rows.unflatten(0, (*handle.shape[:-1], -1)) for rows in gathered]
        return self._split.to_batch(gathered)


# Batches in memory at once: those the device works on, and those that are ready before it asks.
SLOTS = 8
# Steps the training thread may be ahead of the device, each of which holds a slot.
AHEAD = 2
THREAD = "paretocosmos-feed"


class Streamed:
    """A split on the host, of which the device sees a few batches at a time.

    Args:
        data: on the host.
        device: where batches go; a CPU needs no copy of them.
        dtype: the type its floats get there.
        share: as for `SplitTensors`.
    """

    resident = False

    def __init__(
        self, data: Batch, device: torch.device, dtype: torch.dtype, share: Share | None = None
    ) -> None:
        self._split, self._dtype = SplitTensors(data, share), dtype
        # indices stay on the CPU, which gathers
        self.device, self.waited = torch.device("cpu"), 0.0
        self._target = device
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None
        self._slots: list[_Slot] = []

    def __len__(self) -> int:
        return self._split.samples

    def batch_at(self, handle: BatchHandle) -> Batch:
        """Arrange a handle's tensors as a batch, floats in the step's type."""
        dtype = self._dtype
        return self._split.to_batch([t.to(dtype) if t.is_floating_point() else t for t in handle])

    def run(self, pieces: Sequence[Tensor]) -> Generator[BatchHandle]:
        """Yield batches in order, gathered ahead of time; the thread ends with the generator."""
        free: SimpleQueue[_Slot] = SimpleQueue()
        filled: SimpleQueue[_Slot | BaseException] = SimpleQueue()
        ended = threading.Event()
        for slot in self._get_slots(pieces):
            free.put(slot)
        arguments = (pieces, free, filled, ended)
        thread = threading.Thread(target=self._gather, args=arguments, name=THREAD, daemon=True)
        thread.start()
        in_use: deque[_Slot] = deque()
        try:
            for _ in pieces:
                if len(in_use) > AHEAD:
                    in_use[0].used.synchronize()
                    free.put(in_use.popleft())
                slot = self._next(filled, in_use[-1] if in_use else None)
                in_use.append(slot)
                slot.copied.wait()  # the current stream waits, not this thread
                yield slot.parts()
                slot.used.record()
        finally:
            ended.set()
            free.put(self._slots[0])  # the thread may be waiting for one
            thread.join()
            if self._stream is not None:  # nothing reads or writes a slot any more
                self._stream.synchronize()
                torch.cuda.current_stream(self._target).synchronize()

    def _get_slots(self, pieces: Sequence[Tensor]) -> "list[_Slot]":
        """Return slots for the largest of these pieces, kept from one epoch to the next."""
        # pinned memory is slow to allocate, so that slots are kept and only ever grow
        rows = max((index.numel() for index in pieces), default=0)
        if not self._slots or self._slots[0].rows < rows:
            self._slots.clear()
            self._slots += [_Slot(self._split.tensors, rows, self._target) for _ in range(SLOTS)]
            if self._stream is not None:  # what lay in their memory before is still read
                self._stream.wait_stream(torch.cuda.current_stream(self._target))
        return self._slots

    def _gather(
        self,
        pieces: Sequence[Tensor],
        free: "SimpleQueue[_Slot]",
        filled: "SimpleQueue[_Slot | BaseException]",
        ended: threading.Event,
    ) -> None:
        """Fill free slots with the next batches; this runs in the thread."""
        on_stream: AbstractContextManager[object] = nullcontext()
        if self._stream is not None:
            on_stream = torch.cuda.stream(self._stream)
        try:
            with on_stream:
                for index in pieces:
                    slot = free.get()
                    if ended.is_set():
                        return
                    slot.fill(self._split.tensors, self._split.indices(index))
                    filled.put(slot)
        except BaseException as error:  # whatever it is, the training must not wait for ever
            filled.put(error)

    def _next(
        self, filled: "SimpleQueue[_Slot | BaseException]", previous: "_Slot | None"
    ) -> "_Slot":
        """Return the next slot; waiting counts from when the device has nothing else to do."""
        slot = None if filled.empty() else filled.get()
        if slot is None or (isinstance(slot, _Slot) and not slot.copied.query()):
            # the device is busy until then: no time is lost yet
            if previous is not None:
                previous.used.synchronize()
            started = time.perf_counter()
            slot = slot or filled.get()
            if isinstance(slot, _Slot):
                slot.copied.synchronize()
            self.waited += time.perf_counter() - started
        if isinstance(slot, _Slot):
            return slot
        raise DataError(
            "the training data could not be read in the background "
            f"({type(slot).__name__}: {one_line(slot)}); check that its files still exist and "
            "are intact, and continue with resume=True"
        ) from slot


class _Slot:
    """Memory for a batch: where it is gathered on the host, and where the device reads it."""

    def __init__(self, tensors: Sequence[Tensor], rows: int, device: torch.device) -> None:
        self.rows, cuda = rows, device.type == "cuda"
        self._host = [
            torch.empty((rows, *t.shape[1:]), dtype=t.dtype, pin_memory=cuda) for t in tensors
        ]
        self._target = [torch.empty_like(t, device=device) for t in self._host] if cuda else None
        # on a CPU everything is done at once
        make: type[Any] = torch.cuda.Event if cuda else torch.cpu.Event
        self.copied, self.used = make(), make()
        self._shapes: list[torch.Size] = []

    def fill(self, tensors: Sequence[Tensor], indices: Sequence[Tensor]) -> None:
        """Gather samples and send them on their way, on the current stream."""
        self._shapes = [index.shape for index in indices]
        for buffer, tensor, index in zip(self._host, tensors, indices, strict=True):
            # `out`: a new tensor would not be pinned, and its copy to the device would block
            torch.index_select(tensor, 0, index.flatten(), out=buffer[: index.numel()])
        if self._target is not None:
            for host, device, index in zip(self._host, self._target, indices, strict=True):
                device[: index.numel()].copy_(host[: index.numel()], non_blocking=True)
        self.copied.record()

    def parts(self) -> tuple[Tensor, ...]:
        """Return what was gathered, on the device, in the shapes of the indices."""
        tensors = self._host if self._target is None else self._target
        filled = zip(tensors, self._shapes, strict=True)
        return tuple(rows[: shape.numel()].unflatten(0, shape) for rows, shape in filled)


class FromLoader:
    """A `Source` of a problem: each process reads its own share, and all see all targets.

    Worker processes of the source read ahead; on a GPU the copy of a batch runs beside the step
    before. Time counts as waiting if the device has nothing else to do when the batch is there.

    Args:
        source: of the training split.
        objectives: what is traded, by which batches are checked.
        device: where steps run.
        dtype: the type of floats there.
        rays_per_batch: rays per batch.
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
        rays_per_batch: int,
        processes: Processes,
    ) -> None:
        self.device, self.waited = torch.device("cpu"), 0.0
        self.labels: dict[str, LabelRange] = {}
        self.checks = BatchChecks(source.where, objectives, self.labels)
        self._source, self._target, self._dtype = source, device, dtype
        self._rays_per_batch, self._processes = rays_per_batch, processes
        self._where = source.where
        self._used = torch.cuda.Event() if device.type == "cuda" else None
        # a loader with its own sampler has divided the data already
        if source.replicas not in (None, processes.count):
            raise ConfigurationError(
                f"{self._where} is read by {source.replicas} process(es) and trained on by "
                f"{processes.count}: give a dataset, or a loader with a DistributedSampler for "
                "all of them"
            )

    def __len__(self) -> int:
        return self._source.samples

    def begin(self, seed: int, epoch: int) -> None:
        """Seed what is random in the next epoch."""
        self._source.begin(seed, epoch)

    def run(self, pieces: Sequence[Tensor]) -> Generator[BatchHandle]:
        """Yield batches in order, on the device."""
        if not self._source.shuffled:  # the loader chooses samples: of the order, only sizes count
            sizes = [len(piece) for piece in pieces]
            pieces = torch.arange(sum(sizes)).split(sizes)
        shares = [self._processes.share_of_index(piece) for piece in pieces]
        with closing(self._source.read(shares, pin=self._used is not None)) as batches:
            for number, piece in enumerate(pieces, start=1):
                started = time.perf_counter()
                batch = next(batches)
                if self._used is None or self._used.query():
                    self.waited += time.perf_counter() - started
                yield self._check_and_move(batch, number, len(piece))
                if self._used is not None:
                    self._used.record()

    def batch_at(self, handle: BatchHandle) -> Batch:
        """Return the handle's samples as a batch."""
        inputs, targets = handle
        return Batch(inputs, targets)

    def _check_and_move(self, batch: Batch, number: int, samples: int) -> Any:
        """Return a checked batch on the device, of as many samples as the groups divide."""
        named = self.checks.check(batch, number)

        def move(tensor: Tensor) -> Tensor:
            # labels stay whole numbers, which cross-entropy needs
            dtype = self._dtype if tensor.is_floating_point() else None
            return tensor.to(self._target, dtype, non_blocking=True)

        inputs, targets = map_tensors(move, batch.inputs), map_tensors(move, batch.targets)
        # the loss is of the whole batch, for which every process needs all targets
        if self._processes.count > 1:
            return inputs, self._processes.gather(targets, samples)
        # groups of one batch must be of one size, since their losses are computed by one vmap
        if any(len(task) % self._rays_per_batch for task in named.values()):
            inputs, targets = map_tensors(self._trim, inputs), map_tensors(self._trim, targets)
            if any(len(task) < self._rays_per_batch for task in named.values()):
                raise DataError(
                    f"batch {number} of {self._where} has fewer samples than the "
                    f"{self._rays_per_batch} `rays_per_batch`: make batches "
                    "larger, or draw fewer rays"
                )
        return inputs, targets

    def _trim(self, rows: Tensor) -> Tensor:
        return rows[: len(rows) // self._rays_per_batch * self._rays_per_batch]


BatchSource = InMemory | Streamed | FromLoader
"""A split to train on, batch by batch.

Its `run` yields a handle for indices ``[..., B]``, in order, each good until the next; close it.
`batch_at` turns a handle into a batch on the device. `resident` says whether samples lie on the
device, so that a CUDA graph can pick them, and pieces may be those of several steps; `device` is
where indices belong, and `waited` counts the seconds the training stood still for want of data.
"""
