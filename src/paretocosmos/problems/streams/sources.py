"""Sources of samples: by index, as a loader yields them, and one for each objective."""

import itertools
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from types import MappingProxyType
from typing import Any, Literal

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from paretocosmos.errors import ConfigurationError, DataError
from paretocosmos.problems.base import Source
from paretocosmos.problems.streams.fields import Fields
from paretocosmos.problems.streams.reading import (
    Draws,
    Failed,
    HowToRead,
    Order,
    Rereadable,
    collated,
    joined,
    lost,
    reader_of,
)
from paretocosmos.runtime.device import mixed_seed
from paretocosmos.runtime.torch_private import end_workers
from paretocosmos.types import Batch, map_tensors

# Samples of a batch where nobody has said how many.
TOGETHER = 128

Length = Literal["longest", "shortest"]
"""Which source an epoch is one pass over; shorter ones begin anew, longer ones stop."""


class ByObjective:
    """Several sources, one for each objective.

    A batch to train on has the inputs and targets of each by the objective's name. Where a network
    is evaluated, every objective is scored on its own source.

    Args:
        parts: the sources by the objectives' names.
        length: which of the sources an epoch is one pass over.
        where: what is read, for messages.
    """

    random_access = False

    def __init__(self, parts: Mapping[str, Source], length: Length, where: str) -> None:
        self.parts, self.where = parts, where
        steps = {name: part.samples / (part.batch_size or 1) for name, part in parts.items()}
        choose = max if length == "longest" else min
        lead = parts[choose(steps, key=lambda name: steps[name])]
        self.samples, self.batch_size = lead.samples, lead.batch_size
        self.shuffled = True
        self.replicas: int | None = 1
        self.inexact = next((p.inexact for p in parts.values() if p.inexact is not None), None)
        if len({part.batch_size is None for part in parts.values()}) > 1:
            raise ConfigurationError(
                f"the parts of {where} must be all loaders or all datasets, found both: wrap the "
                "datasets in loaders"
            )
        self._seed = 0

    def begin(self, seed: int, epoch: int) -> None:
        """Let all of them begin."""
        self._seed = mixed_seed(seed, epoch, 0)
        for part in self.parts.values():
            part.begin(seed, epoch)

    def read(self, pieces: Sequence[Tensor], *, pin: bool = False) -> Generator[Batch]:
        """One batch of each for every piece; each in an order of its own."""
        generator = torch.Generator().manual_seed(self._seed)
        with ExitStack() as held:
            every = {}
            for name, part in self.parts.items():
                sizes = [part.batch_size or piece.numel() for piece in pieces]
                rounds = -(-sum(sizes) // part.samples)
                orders = [
                    torch.randperm(part.samples, generator=generator)
                    if part.shuffled
                    else torch.arange(part.samples)
                    for _ in range(rounds)
                ]
                batches = part.read(torch.cat(orders)[: sum(sizes)].split(sizes), pin=pin)
                every[name] = held.enter_context(closing(batches))
            for _ in pieces:
                found = {name: next(batches) for name, batches in every.items()}
                yield _side_by_side(found)

    def once(self) -> Iterator[Batch]:
        """Refused: no sample has the targets of all objectives."""
        raise DataError(self._apart())

    def held(self, most: int) -> Batch | str:
        """Never: no sample has the targets of all objectives."""
        return self._apart()

    def _apart(self) -> str:
        return (
            f"{self.where} has a source for each objective, so that no sample has the targets of "
            "all: give one source with all of them"
        )

    def some(self, count: int, rows: Tensor | None = None) -> Batch:
        """The first samples of each, by objective."""
        found = {name: part.some(count) for name, part in self.parts.items()}
        return _side_by_side(found)

    def end(self) -> None:
        """Let go of all of them."""
        for part in self.parts.values():
            part.end()


def _side_by_side(batches: Mapping[str, Batch]) -> Batch:
    """A batch of each as one, by objective: mappings of what a batch has otherwise."""
    inputs: dict[str, Any] = {name: batch.inputs for name, batch in batches.items()}
    targets: dict[str, Any] = {name: batch.targets for name, batch in batches.items()}
    return Batch(inputs, targets)


class Indexed(Rereadable):
    """Samples by their index.

    Args:
        dataset: with `__getitem__` and `__len__`.
        fields: what of it are inputs and targets.
        how: how it is read.
        batch_size: samples in a batch; `None` for whatever is asked.
        shuffled: whether to read in the order that is asked for, or in that of the dataset.
        drop_last: whether an epoch leaves a last, short batch out.
        replicas: as for `Source`.
    """

    inexact: str | None = None
    random_access = True
    parts: Mapping[str, Source] = MappingProxyType({})

    def __init__(
        self,
        dataset: Any,
        fields: Fields,
        how: HowToRead,
        *,
        batch_size: int | None = None,
        shuffled: bool = True,
        drop_last: bool = False,
        replicas: int | None = None,
    ) -> None:
        self.dataset, self.fields, self.how = dataset, fields, how
        self.where = fields.where
        self.batch_size, self.replicas, self.shuffled = batch_size, replicas, shuffled
        self.samples = self._rows = len(dataset)
        if drop_last and batch_size is not None:
            self.samples = self._rows // batch_size * batch_size
        if not self.samples:
            least = "one at least" if not self._rows else f"{batch_size} for a batch"
            raise DataError(f"{self.where} has {self._rows or 'no'} samples: it needs {least}")
        self._seed, self._order = 0, Order()
        self._loader: tuple[DataLoader[Any], bool] | None = None

    def begin(self, seed: int, epoch: int) -> None:
        """Fix what transforms draw."""
        self._seed = mixed_seed(seed, epoch, 0)

    def read(self, pieces: Sequence[Tensor], *, pin: bool = False) -> Generator[Batch]:
        """The samples of every piece; workers are kept for the next epoch."""
        if self.shuffled and self.samples < self._rows:  # other samples are left out in every epoch
            drawn = torch.Generator().manual_seed(self._seed)
            chosen = torch.randperm(self._rows, generator=drawn)
            pieces = [chosen[piece] for piece in pieces]
        if self._loader is None or self._loader[1] != pin:
            self._loader = self.how.loader(self.dataset, self._order, pin=pin, keep=True), pin
        self._order.batches, self._order.seed = pieces, self._seed
        yield from self._batches(self._loader[0])

    def once(self) -> Iterator[Batch]:
        """All samples in order, with the same random numbers every time."""
        order = Order()
        order.batches = torch.arange(self._rows).split(self.batch_size or TOGETHER)
        yield from self._batches(self.how.loader(self.dataset, order, pin=False, keep=False))

    def some(self, count: int, rows: Tensor | None = None) -> Batch:
        """Rows, read in this process."""
        asked = range(min(count, self._rows)) if rows is None else rows.tolist()
        found = reader_of(self.dataset).__getitems__([0, *asked])
        if isinstance(found, Failed):
            raise found.error(self.where)
        try:
            return self.fields.batch(collated(found, self.how.collate))
        except (TypeError, ValueError, RuntimeError) as error:
            if isinstance(error, DataError):
                raise
            raise lost(self.where, error) from error

    def end(self) -> None:
        """Let go of the workers."""
        self._loader = None

    def _batches(self, loader: DataLoader[Any]) -> Iterator[Batch]:
        every = iter(loader)
        while True:
            try:
                found = next(every)
            except StopIteration:
                return
            except Exception as error:
                self.end()
                end_workers(every)
                raise lost(self.where, error) from error
            if isinstance(found, Failed):
                self.end()
                raise found.error(self.where)
            yield self.fields.batch(found)


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
    random_access = False
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
                end_workers(every)
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
