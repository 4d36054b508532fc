"""The samples of a split, where a network is evaluated on them again and again."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from types import MappingProxyType
from typing import final

import torch
from torch import Tensor, nn

from paretocosmos.errors import DataError
from paretocosmos.evaluation.sweeping import there
from paretocosmos.objectives import Objective
from paretocosmos.problems import HELD, Problem, Source, Split, scored_on
from paretocosmos.problems.streams.fields import BatchChecks, LabelRange
from paretocosmos.problems.streams.reading import bytes_of, joined
from paretocosmos.runtime.device import fits
from paretocosmos.types import Batch, map_tensors

__all__ = [
    "Samples",
    "Share",
    "Shares",
    "bring",
    "move",
    "rows_of",
    "samples_for",
    "samples_of",
    "thinned",
]

NO_LABELS: Mapping[str, LabelRange] = MappingProxyType({})


@final
class Samples:
    """Samples with their targets on a device, as often as one asks: one batch, or one by one.

    A split in memory is one batch, and so is one that takes little memory, which is read once. Any
    other is read anew every time.

    Args:
        of: a split in memory, or where its samples are read from.
        objectives: what is scored on them.
        device: where the network is.
        dtype: of its floats.
        labels: what each target may have, where it is classes, as far as that is known.
    """

    def __init__(
        self,
        of: Batch | Source,
        objectives: tuple[Objective, ...],
        device: torch.device,
        dtype: torch.dtype,
        labels: Mapping[str, LabelRange] = NO_LABELS,
    ) -> None:
        self._objectives, self._device, self._dtype = objectives, device, dtype
        self._source: Source | None = None
        self._checks: BatchChecks | None = None
        self.whole: Batch | None = None
        """All samples, where they are in memory."""
        if not isinstance(of, Batch):
            self._source = of
            self._checks = BatchChecks(of.where, objectives, labels)
            held = of.held(HELD)
            if isinstance(held, str):
                self._count: int | None = None
                return
            self._checks.check(held)
            of = held
        self.whole, self._count = bring(of, device, dtype), len(of)

    def __iter__(self) -> Iterator[Batch]:
        if self.whole is not None:
            yield self.whole
            return
        count = 0
        for batch in self._read():
            count += len(batch)
            yield bring(batch, self._device, self._dtype)
        self._note(count)

    def __len__(self) -> int:
        if self._count is None:
            self._note(sum(len(batch) for batch in self._read()))
        assert self._count is not None
        return self._count

    @property
    def explained(self) -> Callable[[], AbstractContextManager[None]]:
        """A block in which a network that cannot take the last batch fails in a sentence."""
        return nullcontext if self._checks is None else self._checks.explained

    def part(self, own: slice) -> "Samples":
        """Some of the samples, where all are in memory."""
        assert self.whole is not None
        return Samples(rows_of(self.whole, own), self._objectives, self._device, self._dtype)

    def spread(self, most: int) -> Batch:
        """So many samples at most, evenly spread; of those that are read, what little memory holds.

        Batches of other sizes than the first are left out.
        """
        if self.whole is not None:
            return thinned(self.whole, most)
        first = next(self._read())
        most = max(2, min(most, HELD * len(first) // max(1, bytes_of(first))))
        step, start, parts = -(-len(self) // most), 0, list[Batch]()
        for batch in self._read():
            own = slice(-start % step, None, step)
            start += len(batch)
            some = _mapped(rows_of(batch, own), torch.clone)
            if len(some) and (not parts or _sizes(some) == _sizes(parts[0])):
                parts.append(some)
        assert self._source is not None
        return bring(joined(parts, self._source.where), self._device, self._dtype)

    def _read(self) -> Iterator[Batch]:
        """One pass over what is not in memory, every batch looked at."""
        assert self._source is not None
        assert self._checks is not None
        for place, batch in enumerate(self._source.once(), start=1):
            self._checks.check(batch, place)
            yield batch

    def _note(self, count: int) -> None:
        """How many there were: the same every time, so that fronts can be compared."""
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


def samples_of(
    problem: Problem,
    split: Split,
    device: torch.device,
    dtype: torch.dtype,
    labels: Mapping[str, LabelRange] = NO_LABELS,
) -> list[Share]:
    """A split to evaluate on: all objectives on the same samples, or each on its own.

    Args:
        problem: whose split.
        split: its name.
        device: where the network is.
        dtype: of its floats.
        labels: what each target may have, where it is classes, as far as that is known.
    """
    return [
        (objectives, Samples(of, objectives, device, dtype, labels))
        for objectives, of in scored_on(problem, split)
    ]


def samples_for(model: nn.Module, problem: Problem, split: Split) -> list[Share]:
    """The same where a network is."""
    parameter = next(model.parameters(), torch.zeros(()))
    return samples_of(problem, split, parameter.device, parameter.dtype)


def move(batch: Batch, device: torch.device, dtype: torch.dtype | None = None) -> Batch:
    """A batch on a device, its floats as that type."""
    return _mapped(batch, partial(there, device=device, dtype=dtype))


def bring(batch: Batch, device: torch.device, dtype: torch.dtype | None = None) -> Batch:
    """Samples to evaluate on a device: moved there, or their targets alone if they do not fit."""
    if fits(batch, device, dtype):
        return move(batch, device, dtype)
    moved = partial(there, device=device, dtype=dtype)
    return Batch(batch.inputs, map_tensors(moved, batch.targets))


def thinned(batch: Batch, most: int) -> Batch:
    """So many samples at most, evenly spread; not a copy, since a split may be large."""
    return rows_of(batch, slice(None, None, -(-len(batch) // most)))


def rows_of(batch: Batch, own: slice) -> Batch:
    """Some samples of a batch; not a copy."""
    return _mapped(batch, lambda part: part[own])


def _sizes(batch: Batch) -> list[torch.Size]:
    found: list[torch.Size] = []

    def note(part: Tensor) -> Tensor:
        found.append(part.shape[1:])
        return part

    _mapped(batch, note)
    return found


def _mapped(batch: Batch, function: Callable[[Tensor], Tensor]) -> Batch:
    return Batch(map_tensors(function, batch.inputs), map_tensors(function, batch.targets))
