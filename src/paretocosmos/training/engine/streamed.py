"""A split on the host, streamed to the device batch by batch.

A thread gathers batches a few steps ahead into pinned memory, from where a stream of its own copies
them to the device, beside the training. The split may be memory-mapped: only what a batch needs is
read.
"""

import threading
import time
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, nullcontext
from queue import SimpleQueue

import torch
from torch import Tensor

from paretocosmos.errors import DataError
from paretocosmos.io.files import one_line
from paretocosmos.training.engine.feed import BatchHandle, Parts, Share, all_of_it
from paretocosmos.types import Batch

__all__ = ["Streamed"]

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
