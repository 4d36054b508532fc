"""Batches that a source reads while the network trains."""

import time
from collections.abc import Generator, Sequence
from contextlib import closing
from functools import partial
from typing import Any

import torch
from torch import Tensor

from paretocosmos.config.plan import Plan
from paretocosmos.errors import ConfigurationError, DataError
from paretocosmos.problems import Source
from paretocosmos.problems.streams.checking import BatchChecks, LabelRange
from paretocosmos.runtime.distributed import Processes
from paretocosmos.training.engine.feed import BatchHandle
from paretocosmos.types import Batch, map_tensors

__all__ = ["Loaded"]


class Loaded:
    """A source as a feed: each process reads its own share, and all see all targets.

    Worker processes of the source read ahead; on a GPU the copy of a batch runs beside the step
    before. Time counts as waiting if the device has nothing else to do when the batch is there.

    Args:
        plan: what is trained, and where.
        source: of its training split.
        dtype: the type of floats on the device.
        processes: those that share the steps.
    """

    resident = False

    def __init__(
        self, plan: Plan, source: Source, dtype: torch.dtype, processes: Processes
    ) -> None:
        device = plan.device
        self.device, self.waited = torch.device("cpu"), 0.0
        self.labels: dict[str, LabelRange] = {}
        self.checks = BatchChecks(source.where, plan.problem.objectives, self.labels)
        self._source, self._there, self._dtype = source, device, dtype
        self._groups, self._processes = plan.training.groups, processes
        self._where = source.where
        self._used = torch.cuda.Event() if device.type == "cuda" else None
        if source.replicas not in (None, processes.count):
            raise ConfigurationError(
                f"{self._where} is read by {source.replicas} process(es) and trained on by "
                f"{processes.count}: give a dataset, or a loader with a DistributedSampler for "
                "all of them"
            )
        if processes.count > 1 and plan.training.accumulate > 1:
            raise ConfigurationError(
                "`accumulate` needs the training split in memory if several processes train, "
                f"found {plan.training.accumulate} and {self._where}: set it to 1, or gather=True"
            ).by({"accumulate": 1})

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
