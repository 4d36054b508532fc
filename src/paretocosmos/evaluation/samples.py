"""The samples of a split, on which a network is evaluated often, and a cache of its outputs."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar, final

import numpy as np
import torch
from torch import Tensor, nn

from paretocosmos.errors import DataError
from paretocosmos.objectives import Objective
from paretocosmos.problems import HELD, Problem, Source, Split, scored_on
from paretocosmos.problems.streams import BatchChecks, LabelRange, join_batches
from paretocosmos.runtime.device import fits_on_device
from paretocosmos.types import Batch, list_tensors, map_tensors

Value = TypeVar("Value")

NO_LABELS: Mapping[str, LabelRange] = MappingProxyType({})


@final
class Samples:
    """Samples with their targets on a device, to iterate over in batches as often as needed.

    A split in memory is one batch, and so is one that takes little memory, which is read once. Any
    other is read anew every time.

    Args:
        data: a split in memory, or the source that its samples are read from.
        objectives: what is scored on them.
        device: where the network is.
        dtype: of its floats.
        labels: what each target may have, where it is classes, as far as that is known.
        name: tells samples of one problem from one another, in an `OutputCache`.
    """

    def __init__(
        self,
        data: Batch | Source,
        objectives: tuple[Objective, ...],
        device: torch.device,
        dtype: torch.dtype,
        labels: Mapping[str, LabelRange] = NO_LABELS,
        name: str = "",
    ) -> None:
        self.name, self._objectives, self._device, self._dtype = name, objectives, device, dtype
        self._source: Source | None = None
        self._checks: BatchChecks | None = None
        self.whole: Batch | None = None
        """All samples, where they are in memory."""
        if not isinstance(data, Batch):
            self._source = data
            self._checks = BatchChecks(data.where, objectives, labels)
            loaded = data.held(HELD)
            if isinstance(loaded, str):  # the reason why it is not in memory
                self._count: int | None = None
                return
            self._checks.check(loaded)
            data = loaded
        self.whole, self._count = move_to_evaluate(data, device, dtype), len(data)

    def __iter__(self) -> Iterator[Batch]:
        if self.whole is not None:
            yield self.whole
            return
        count = 0
        for batch in self._read():
            count += len(batch)
            # one batch at a time: the split may be larger than memory
            yield move_to_evaluate(batch, self._device, self._dtype)
        self._check_count(count)

    def __len__(self) -> int:
        if self._count is None:
            self._check_count(sum(len(batch) for batch in self._read()))
        assert self._count is not None
        return self._count

    @property
    def explained(self) -> Callable[[], AbstractContextManager[None]]:
        """A context in which the error of a network that fails on the last batch is explained."""
        return nullcontext if self._checks is None else self._checks.explain_errors

    def slice(self, rows: slice) -> "Samples":
        """Return some of the samples, where all are in memory."""
        assert self.whole is not None
        batch = slice_rows(self.whole, rows)
        name = f"{self.name}[{rows.start}:{rows.stop}]"
        return Samples(batch, self._objectives, self._device, self._dtype, name=name)

    def spread(self, most: int) -> Batch:
        """Return so many samples at most, evenly spread.

        Of those that are read, what little memory holds. Batches of other sizes than the first
        are left out.
        """
        if self.whole is not None:
            return thin_batch(self.whole, most)
        first_batch = next(self._read())
        size = sum(t.nbytes for t in list_tensors(first_batch.inputs, first_batch.targets))
        most = max(2, min(most, HELD * len(first_batch) // max(1, size)))
        step, start, chosen = -(-len(self) // most), 0, list[Batch]()
        for batch in self._read():
            rows = slice(-start % step, None, step)  # every `step`th sample of all batches
            start += len(batch)
            # clones, or a few samples would keep the memory of the batch
            samples = map_batch(slice_rows(batch, rows), torch.clone)
            if len(samples) and (not chosen or _list_sizes(samples) == _list_sizes(chosen[0])):
                chosen.append(samples)
        assert self._source is not None
        return move_to_evaluate(join_batches(chosen, self._source.where), self._device, self._dtype)

    def _read(self) -> Iterator[Batch]:
        """Read all batches of a split that is not in memory, and check each."""
        assert self._source is not None
        assert self._checks is not None
        for index, batch in enumerate(self._source.once(), start=1):
            self._checks.check(batch, index)
            yield batch

    def _check_count(self, count: int) -> None:
        """Check that there are as many samples every time, so that fronts can be compared."""
        if self._count not in (None, count):
            assert self._source is not None
            raise DataError(
                f"{self._source.where} has {count:,} samples this time and had {self._count:,} "
                "before: let it give the same ones whenever it is iterated"
            )
        self._count = count


Share = tuple[tuple[Objective, ...], Samples]
"""Objectives and the samples that they are scored on."""

Shares = Sequence[Share]
"""A split to evaluate on: all objectives on the same samples, or each on its own."""


def load_samples(
    problem: Problem,
    split: Split,
    device: torch.device,
    dtype: torch.dtype,
    labels: Mapping[str, LabelRange] = NO_LABELS,
) -> list[Share]:
    """Load a split to evaluate on: all objectives on the same samples, or each on its own.

    Args:
        problem: whose split.
        split: its name.
        device: where the network is.
        dtype: of its floats.
        labels: what each target may have, where it is classes, as far as that is known.
    """
    return [
        (objectives, Samples(data, objectives, device, dtype, labels, name=f"{split} {index}"))
        for index, (objectives, data) in enumerate(scored_on(problem, split))
    ]


def load_samples_for(model: nn.Module, problem: Problem, split: Split) -> list[Share]:
    """Load a split to evaluate on, to the device of a network."""
    parameter = next(model.parameters(), torch.zeros(()))
    return load_samples(problem, split, parameter.device, parameter.dtype)


def to_device(tensor: Tensor, *, device: torch.device, dtype: torch.dtype | None) -> Tensor:
    """Move a tensor to a device, as that type if it holds floats."""
    return tensor.to(device, dtype if tensor.is_floating_point() else None)


def move_batch(batch: Batch, device: torch.device, dtype: torch.dtype | None = None) -> Batch:
    """Move a batch to a device, its floats as that type."""
    return map_batch(batch, partial(to_device, device=device, dtype=dtype))


def move_to_evaluate(batch: Batch, device: torch.device, dtype: torch.dtype | None = None) -> Batch:
    """Move samples to a device, or their targets alone if the samples do not fit."""
    if fits_on_device(batch, device, dtype):
        return move_batch(batch, device, dtype)
    moved = partial(to_device, device=device, dtype=dtype)
    return Batch(batch.inputs, map_tensors(moved, batch.targets))


def thin_batch(batch: Batch, most: int) -> Batch:
    """Return so many samples at most, evenly spread; not a copy, since a split may be large."""
    # a stride, since neighbours in a file are often alike
    return slice_rows(batch, slice(None, None, -(-len(batch) // most)))


def slice_rows(batch: Batch, rows: slice) -> Batch:
    """Return some samples of a batch; not a copy."""
    return map_batch(batch, lambda tensor: tensor[rows])


def _list_sizes(batch: Batch) -> list[torch.Size]:
    """List the sizes of a sample's tensors."""
    return [tensor.shape[1:] for tensor in list_tensors(batch.inputs, batch.targets)]


def map_batch(batch: Batch, function: Callable[[Tensor], Tensor]) -> Batch:
    """Apply a function to all tensors of a batch."""
    return Batch(map_tensors(function, batch.inputs), map_tensors(function, batch.targets))


@final
class OutputCache:
    """Outputs of a network at rays and what follows from them; the least recently used ones go.

    It is passed to whatever evaluates that network. The rays of a key are those that went through
    the network together, so whatever is chosen by cached outputs is what would be chosen without,
    bit for bit.

    Args:
        room: numbers to hold at most, a fourth of the bytes; with 0 everything is computed anew.
    """

    def __init__(self, room: int = 64_000_000) -> None:
        self.room, self._used = room, 0
        self._entries: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Hashable, compute: Callable[[], Value]) -> Value:
        """Return a value, computed if it is not cached.

        Args:
            key: what the value depends on beside the network and the data, such as the split.
            compute: computes the value.
        """
        if key in self._entries:
            self._entries.move_to_end(key)
            cached: Value = self._entries[key][0]
            return cached
        value = compute()
        size = _count_numbers(value)
        if size <= self.room:  # a larger one would push out all others and then itself
            self._entries[key] = value, size
            self._used += size
            while self._used > self.room:
                self._used -= self._entries.popitem(last=False)[1][1]
        return value


NO_CACHE = OutputCache(0)
"""Holds nothing."""


def key_rays(rays: Tensor) -> Hashable:
    """Return a key for rays ``[N, J]``."""
    return tuple(rays.shape), rays.cpu().numpy().tobytes()


def _count_numbers(value: object) -> int:
    """Count the numbers in tensors and arrays, however they are packed."""
    if isinstance(value, Tensor | np.ndarray):
        return int(np.prod(value.shape))
    if isinstance(value, dict):
        return sum(map(_count_numbers, value.values()))
    return sum(map(_count_numbers, value)) if isinstance(value, tuple | list) else 1
