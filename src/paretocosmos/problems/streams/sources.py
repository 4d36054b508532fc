"""Sources of samples: by index, as a loader yields them, and one for each objective."""

import itertools
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from types import MappingProxyType
from typing import Any, Literal

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from paretocosmos.errors import ConfigurationError, DataError
from paretocosmos.io.formatting import format_bytes
from paretocosmos.problems.base import Source
from paretocosmos.problems.streams.fields import Fields
from paretocosmos.problems.streams.reading import (
    Order,
    ReadFailure,
    ReadOptions,
    SeededDraws,
    SeededReader,
    collate_samples,
    explain_loader_error,
    join_batches,
)
from paretocosmos.runtime.device import mix_seed
from paretocosmos.runtime.torch_private import end_workers
from paretocosmos.types import Batch, list_tensors, map_tensors

# Samples of a batch where no size is set.
DEFAULT_BATCH = 128

Length = Literal["longest", "shortest"]
"""The source whose one pass is an epoch; shorter ones begin anew, longer ones stop."""


class ByObjective:
    """Several sources, one for each objective.

    A batch to train on has the inputs and targets of each by the objective's name. Where a network
    is evaluated, every objective is scored on its own source.

    Args:
        parts: the sources by the objectives' names.
        length: the source whose one pass is an epoch.
        where: the name for messages.
    """

    random_access = False

    def __init__(self, parts: Mapping[str, Source], length: Length, where: str) -> None:
        self.parts, self.where = parts, where
        # in steps, not samples: batches may differ in size between the sources
        steps = {name: source.samples / (source.batch_size or 1) for name, source in parts.items()}
        choose = max if length == "longest" else min
        lead = parts[choose(steps, key=lambda name: steps[name])]
        self.samples, self.batch_size = lead.samples, lead.batch_size
        self.shuffled = True
        self.replicas: int | None = 1
        self.inexact = next((p.inexact for p in parts.values() if p.inexact is not None), None)
        # batches of a dataset have the training's size, those of a loader its own
        if len({source.batch_size is None for source in parts.values()}) > 1:
            raise ConfigurationError(
                f"the sources of {where} must all be loaders or all be datasets, found both: wrap "
                "the datasets in loaders"
            )
        self._seed = 0

    def begin(self, seed: int, epoch: int) -> None:
        """Seed all of them for an epoch."""
        self._seed = mix_seed(seed, epoch, 0)
        for source in self.parts.values():
            source.begin(seed, epoch)

    def read(self, pieces: Sequence[Tensor], *, pin: bool = False) -> Generator[Batch]:
        """Yield one batch of each for every piece; each in an order of its own."""
        generator = torch.Generator().manual_seed(self._seed)
        with ExitStack() as stack:
            streams = {}
            for name, source in self.parts.items():
                sizes = [source.batch_size or piece.numel() for piece in pieces]
                # rounded up: a short source goes round until the epoch is over
                rounds = -(-sum(sizes) // source.samples)
                orders = [
                    torch.randperm(source.samples, generator=generator)
                    if source.shuffled
                    else torch.arange(source.samples)
                    for _ in range(rounds)
                ]
                batches = source.read(torch.cat(orders)[: sum(sizes)].split(sizes), pin=pin)
                # closed even where the training stops early: workers must not go on reading
                streams[name] = stack.enter_context(closing(batches))
            for _ in pieces:
                yield _combine({name: next(batches) for name, batches in streams.items()})

    def once(self) -> Iterator[Batch]:
        """Raise: no sample has the targets of all objectives."""
        raise DataError(self._explain())

    def held(self, most: int) -> Batch | str:
        """Return the reason why not: no sample has the targets of all objectives."""
        return self._explain()

    def _explain(self) -> str:
        return (
            f"{self.where} has a source for each objective, so that no sample has the targets of "
            "all: give one source with all of them"
        )

    def some(self, count: int, rows: Tensor | None = None) -> Batch:
        """Return the first samples of each, by objective."""
        # not `rows`: an index into one source means nothing in another
        return _combine({name: source.some(count) for name, source in self.parts.items()})

    def end(self) -> None:
        """Stop all of them."""
        for source in self.parts.values():
            source.end()


def _combine(batches: Mapping[str, Batch]) -> Batch:
    """Return a batch whose inputs and targets are mappings by objective."""
    inputs: dict[str, Any] = {name: batch.inputs for name, batch in batches.items()}
    targets: dict[str, Any] = {name: batch.targets for name, batch in batches.items()}
    return Batch(inputs, targets)


class Rereadable(ABC):
    """A source that can be read again from its beginning, and is kept if it is small."""

    where: str
    fields: Fields
    _kept: Batch | str | None = None
    _tried = 0

    @abstractmethod
    def once(self) -> Iterator[Batch]:
        """Yield all samples once, in order, with the same random numbers every time."""

    @abstractmethod
    def end(self) -> None:
        """Stop worker processes and drop an epoch that is under way."""

    def read_items(self, stream: Iterable[Any]) -> Iterator[Batch]:
        """Yield the batches of one pass; raise a DataError for anything that fails in it."""
        items: Any = None
        while True:
            try:
                items = iter(stream) if items is None else items
                item = next(items)
            except StopIteration:
                return
            except DataError:
                raise
            except Exception as error:
                self.end()
                end_workers(items)
                raise explain_loader_error(self.where, error) from error
            if isinstance(item, ReadFailure):
                self.end()
                raise item.to_error(self.where)
            yield self.fields.batch(item)

    def held(self, most: int) -> Batch | str:
        """Return all samples as one batch, which is kept; or the reason why not."""
        # a refusal holds for its limit: with more room it is tried again
        if self._kept is None or (isinstance(self._kept, str) and most > self._tried):
            self._kept, self._tried = self._read_all(most), most
        return self._kept

    @torch.inference_mode(mode=False)  # losses of what is kept may be differentiated later
    def _read_all(self, most: int) -> Batch | str:
        batches: list[Batch] = []
        size = 0
        for batch in self.once():
            size += sum(tensor.nbytes for tensor in list_tensors(batch.inputs, batch.targets))
            # at once: a huge split must not be read to its end for nothing
            if size > most:
                return f"{self.where} takes more than {format_bytes(most)} in memory"
            batches.append(batch)
        try:
            return join_batches(batches, self.where)
        except DataError as error:
            return str(error)


class Indexed(Rereadable):
    """A source of samples by their index.

    Args:
        dataset: with `__getitem__` and `__len__`.
        fields: the inputs and targets among the parts of a sample.
        options: of the loader.
        batch_size: samples in a batch; `None` for any size.
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
        options: ReadOptions,
        *,
        batch_size: int | None = None,
        shuffled: bool = True,
        drop_last: bool = False,
        replicas: int | None = None,
    ) -> None:
        self.dataset, self.fields, self.options = dataset, fields, options
        self.where = fields.where
        self.batch_size, self.replicas, self.shuffled = batch_size, replicas, shuffled
        self.samples = self._rows = len(dataset)
        if drop_last and batch_size is not None:
            # only full batches, as in the loader
            self.samples = self._rows // batch_size * batch_size
        if not self.samples:
            least = "at least one" if not self._rows else f"{batch_size} for a batch"
            raise DataError(f"{self.where} has {self._rows or 'no'} samples: it needs {least}")
        self._seed, self._order = 0, Order()
        # made at the first use, so that no workers start in vain; with whether it pins memory
        self._loader: tuple[DataLoader[Any], bool] | None = None

    def begin(self, seed: int, epoch: int) -> None:
        """Seed the transforms."""
        self._seed = mix_seed(seed, epoch, 0)

    def read(self, pieces: Sequence[Tensor], *, pin: bool = False) -> Generator[Batch]:
        """Yield the samples of every piece; workers are kept for the next epoch."""
        if self.shuffled and self.samples < self._rows:  # other samples are left out in every epoch
            generator = torch.Generator().manual_seed(self._seed)
            chosen = torch.randperm(self._rows, generator=generator)
            pieces = [chosen[piece] for piece in pieces]
        # kept, since workers are expensive to start; only `pin` cannot be changed later
        if self._loader is None or self._loader[1] != pin:
            loader = self.options.make_loader(self.dataset, self._order, pin=pin, keep=True)
            self._loader = loader, pin
        # the loader asks its sampler anew in every epoch
        self._order.batches, self._order.seed = pieces, self._seed
        yield from self.read_items(self._loader[0])

    def once(self) -> Iterator[Batch]:
        """Yield all samples in order, with the same random numbers every time."""
        # with a loader of its own, since an epoch of the training may be under way
        order = Order()
        order.batches = torch.arange(self._rows).split(self.batch_size or DEFAULT_BATCH)
        loader = self.options.make_loader(self.dataset, order, pin=False, keep=False)
        yield from self.read_items(loader)

    def some(self, count: int, rows: Tensor | None = None) -> Batch:
        """Return rows, read in this process."""
        indices = range(min(count, self._rows)) if rows is None else rows.tolist()
        # the seed 0: a look at the data is the same every time, and draws nothing from the training
        samples = SeededReader(self.dataset).__getitems__([0, *indices])
        if isinstance(samples, ReadFailure):
            raise samples.to_error(self.where)
        try:
            return self.fields.batch(collate_samples(samples, self.options.collate))
        except (TypeError, ValueError, RuntimeError) as error:
            if isinstance(error, DataError):
                raise
            raise explain_loader_error(self.where, error) from error

    def end(self) -> None:
        """Stop the workers."""
        self._loader = None


class Iterated(Rereadable):
    """A source of the batches that a loader or another iterable yields.

    Args:
        stream: batches; or samples, if `options` are given.
        fields: the inputs and targets among the parts of an item.
        samples: in an epoch.
        batch_size: samples in a batch; `None` for a stream of samples.
        one_pass: whether an epoch is one pass over the stream, which must not end before. Otherwise
            an epoch goes on where the last one stopped, and at its end the stream begins anew.
        options: of the loader, for a stream of samples.
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
        one_pass: bool,
        options: ReadOptions | None = None,
        inexact: str | None,
    ) -> None:
        self.stream, self.fields, self.where = stream, fields, fields.where
        self.samples = samples
        self.batch_size, self.inexact = batch_size, inexact
        self._one_pass, self._options, self._epoch = one_pass, options, 0
        # the pass that an epoch may leave unfinished
        self._endless: Iterator[Batch] | None = None

    def begin(self, seed: int, epoch: int) -> None:
        """Seed the loader's own generators, and tell a sampler which epoch it is."""
        self._epoch = epoch
        self._seed_stream(mix_seed(seed, epoch, 0), epoch)

    def _seed_stream(self, seed: int, epoch: int) -> None:
        sampler = getattr(self.stream, "sampler", None)
        batches = getattr(self.stream, "batch_sampler", None)
        # whatever may draw: a loader, its samplers and its dataset
        for owner in (self.stream, sampler, batches, getattr(self.stream, "dataset", None)):
            generator = getattr(owner, "generator", None)
            if isinstance(generator, torch.Generator):
                generator.manual_seed(seed)
            # `DistributedSampler` and Hugging Face's streams shuffle by the epoch
            set_epoch: Any = getattr(owner, "set_epoch", None)
            if callable(set_epoch):
                set_epoch(epoch)

    def read(self, pieces: Sequence[Tensor], *, pin: bool = False) -> Generator[Batch]:
        """Yield as many batches as there are pieces; after its last batch it begins anew."""
        # the last piece may be short
        size = max((piece.numel() for piece in pieces), default=1)
        if not self._one_pass:
            self._endless = self._endless or self._repeat(size, pin=pin)
            # from where the last epoch stopped
            yield from itertools.islice(self._endless, len(pieces))
            return
        a_pass = -(-self.samples // (self.batch_size or size))
        for start in range(0, len(pieces), a_pass):
            batches = self._batches(size, pin=pin)
            wanted = min(a_pass, len(pieces) - start)
            for number in range(wanted):
                batch = next(batches, None)
                if batch is None:
                    raise DataError(
                        f"{self.where} ended after {number:,} of {wanted:,} batches in epoch "
                        f"{self._epoch + 1}: its length must be the number of batches that it "
                        "yields, or set `samples` per epoch"
                    )
                yield batch

    def once(self) -> Iterator[Batch]:
        """Yield one pass over the stream, which must not end before its length says."""
        stream = self._batches(self.batch_size or DEFAULT_BATCH, pin=False)
        draws, batches, samples = SeededDraws(0), 0, 0
        # whatever the epoch, so that every evaluation reads the same
        self._seed_stream(0, 0)
        while True:
            # only while it reads: the caller's own draws between batches are left alone
            with draws:
                batch = next(stream, None)
            if batch is None:
                break
            batches, samples = batches + 1, samples + len(batch)
            yield batch
        if not batches:
            raise self._refuse_empty()
        count, expected, unit = samples, self.samples, "samples"
        if self.batch_size is not None:  # whose last one may be short
            count, expected, unit = batches, -(-self.samples // self.batch_size), "batches"
        if self._one_pass and count < expected:
            raise DataError(
                f"{self.where} ended after {count:,} of {expected:,} {unit}: its length must be "
                f"the number of {unit} that it yields"
            )

    def some(self, count: int, rows: Tensor | None = None) -> Batch:
        """Return the first samples; fewer, if the batches after them have other shapes."""
        batches: list[Batch] = []
        for batch in self._batches(self.batch_size or min(count, DEFAULT_BATCH), pin=False):
            if batches and _get_shapes(batch) != _get_shapes(batches[0]):
                break
            batches.append(batch)
            if sum(map(len, batches)) >= count:
                break
        if not batches:
            raise self._refuse_empty()
        joined = join_batches(batches, self.where)
        values = (joined.inputs, joined.targets)
        return Batch(*(map_tensors(lambda t: t[:count], value) for value in values))

    def first(self) -> Batch:
        """Return the first batch."""
        return next(self.once())  # which refuses an empty stream

    def end(self) -> None:
        """Drop a pass that is under way."""
        self._endless = None

    def _repeat(self, size: int, *, pin: bool) -> Iterator[Batch]:
        while True:
            # a stream without a batch would be repeated for ever
            empty = True
            for batch in self._batches(size, pin=pin):
                empty = False
                yield batch
            if empty:
                raise self._refuse_empty()

    def _batches(self, size: int, *, pin: bool) -> Iterator[Batch]:
        """Yield the batches of one pass; raise a DataError for anything that fails in it."""
        stream = self.stream
        if self._options is not None:
            stream = self._options.batch_samples(stream, size, pin=pin)
        yield from self.read_items(stream)

    def _refuse_empty(self) -> DataError:
        return DataError(
            f"{self.where} yields nothing: it must yield at least one sample whenever it is read"
        )


def _get_shapes(batch: Batch) -> object:
    # without the first axis, since the last batch may be short
    return [(t.dtype, t.shape[1:]) for t in list_tensors(batch.inputs, batch.targets)]
