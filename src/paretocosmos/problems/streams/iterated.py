"""A source without random access: a loader or an iterable, read in the order that it has."""

import itertools
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from paretocosmos.errors import DataError
from paretocosmos.problems._source import Source
from paretocosmos.problems.streams.fields import Fields
from paretocosmos.problems.streams.held import Rereadable, joined
from paretocosmos.problems.streams.reading import Draws, HowToRead, collated, lost
from paretocosmos.runtime.device import mixed_seed
from paretocosmos.types import Batch, map_tensors

__all__ = ["Iterated"]

# Samples of a batch where nobody has said how many.
TOGETHER = 128


class Iterated(Rereadable):
    """Batches as a loader gives them.

    Args:
        stream: batches; or samples, if `how` is given.
        fields: what of it are inputs and targets.
        samples: in an epoch.
        batch_size: samples in a batch; `None` for a stream of samples.
        whole: whether an epoch is one pass over the stream: then it must not end before. Otherwise
            an epoch goes on where the last one stopped, and at its end the stream begins anew.
        how: how samples are read and collated, for a stream of samples.
        inexact: as for `Source`.
    """

    shuffled = False
    replicas: int | None = 1
    parts: Mapping[str, Source] = MappingProxyType({})

    def __init__(
        self,
        stream: Iterable[Any],
        fields: Fields,
        samples: int,
        *,
        batch_size: int | None,
        whole: bool,
        how: HowToRead | None = None,
        inexact: str | None,
    ) -> None:
        self.stream, self.fields, self.where = stream, fields, fields.where
        self.samples = samples
        self.batch_size, self.inexact = batch_size, inexact
        self._whole, self._how, self._epoch = whole, how, 0
        self._going: Iterator[Batch] | None = None

    def begin(self, seed: int, epoch: int) -> None:
        """Seed the loader's own generators, and tell a sampler which epoch it is."""
        self._epoch = epoch
        self._tell(mixed_seed(seed, epoch, 0), epoch)

    def _tell(self, seed: int, epoch: int) -> None:
        sampler = getattr(self.stream, "sampler", None)
        batches = getattr(self.stream, "batch_sampler", None)
        for part in (self.stream, sampler, batches, getattr(self.stream, "dataset", None)):
            generator = getattr(part, "generator", None)
            if isinstance(generator, torch.Generator):
                generator.manual_seed(seed)
            tell: Any = getattr(part, "set_epoch", None)
            if callable(tell):
                tell(epoch)

    def read(self, pieces: Sequence[Tensor], *, pin: bool = False) -> Generator[Batch]:
        """As many batches as there are pieces; more than it has, and it begins anew."""
        size = max((piece.numel() for piece in pieces), default=1)
        if not self._whole:
            self._going = self._going or self._endless(size, pin=pin)
            yield from itertools.islice(self._going, len(pieces))
            return
        a_pass = -(-self.samples // (self.batch_size or size))
        for start in range(0, len(pieces), a_pass):
            every = self._batches(size, pin=pin)
            wanted = min(a_pass, len(pieces) - start)
            for place in range(wanted):
                batch = next(every, None)
                if batch is None:
                    raise DataError(
                        f"{self.where} ended after {place:,} of {wanted:,} batches in epoch "
                        f"{self._epoch + 1}: its length must be the number of batches that it "
                        "yields, or set `samples` per epoch"
                    )
                yield batch

    def once(self) -> Iterator[Batch]:
        """One pass over the stream, which must not end before its length says."""
        every, draws = self._batches(self.batch_size or TOGETHER, pin=False), Draws(0)
        batches = samples = 0
        self._tell(0, 0)
        while True:
            with draws:
                batch = next(every, None)
            if batch is None:
                break
            batches, samples = batches + 1, samples + len(batch)
            yield batch
        if not batches:
            raise DataError(_nothing(self.where))
        found, said, unit = samples, self.samples, "samples"
        if self.batch_size is not None:  # whose last one may be short
            found, said, unit = batches, -(-self.samples // self.batch_size), "batches"
        if self._whole and found < said:
            raise DataError(
                f"{self.where} ended after {found:,} of {said:,} {unit}: its length must be what "
                "it yields"
            )

    def some(self, count: int, rows: Tensor | None = None) -> Batch:
        """The first samples; fewer, if the batches after them have other shapes."""
        parts: list[Batch] = []
        for batch in self._batches(self.batch_size or min(count, TOGETHER), pin=False):
            if parts and _shapes(batch) != _shapes(parts[0]):
                break
            parts.append(batch)
            if sum(map(len, parts)) >= count:
                break
        if not parts:
            raise DataError(_nothing(self.where))
        found = joined(parts, self.where)
        return Batch(*(map_tensors(lambda t: t[:count], p) for p in (found.inputs, found.targets)))

    def first(self) -> Batch:
        """The first batch, as it is."""
        for batch in self.once():
            return batch
        raise AssertionError

    def end(self) -> None:
        """Let go of a stream that is under way."""
        self._going = None

    def _endless(self, size: int, *, pin: bool) -> Iterator[Batch]:
        while True:
            empty = True
            for batch in self._batches(size, pin=pin):
                empty = False
                yield batch
            if empty:
                raise DataError(_nothing(self.where))

    def _batches(self, size: int, *, pin: bool) -> Iterator[Batch]:
        """One pass; whatever goes wrong in it is a sentence."""
        stream = self.stream
        if self._how is not None:
            stream = _samples(stream, self._how, size, pin=pin)
        try:
            every = iter(stream)
        except Exception as error:
            raise lost(self.where, error) from error
        while True:
            try:
                found = next(every)
            except StopIteration:
                return
            except DataError:
                raise
            except Exception as error:
                self.end()
                raise lost(self.where, error) from error
            yield self.fields.batch(found)


def _samples(stream: Iterable[Any], how: HowToRead, size: int, *, pin: bool) -> Iterable[Any]:
    """A stream of samples in batches, by workers if it is torch's."""
    if isinstance(stream, torch.utils.data.IterableDataset):
        return DataLoader(
            stream,
            batch_size=size,
            num_workers=how.workers,
            collate_fn=how.collate,
            pin_memory=pin,
        )
    return _in_batches(iter(stream), how, size)


def _in_batches(samples: Iterator[Any], how: HowToRead, size: int) -> Iterator[Any]:
    while some := list(itertools.islice(samples, size)):
        yield collated(some, how.collate)


def _shapes(batch: Batch) -> object:
    parts: list[object] = []

    def note(part: Tensor) -> Tensor:
        parts.append((part.dtype, part.shape[1:]))
        return part

    map_tensors(note, (batch.inputs, batch.targets))
    return parts


def _nothing(where: str) -> str:
    return f"{where} yields nothing: it needs one sample at least, and must be iterable again"
