"""A source with random access: a map-style dataset, read in the order that the training draws."""

from collections.abc import Generator, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from paretocosmos.errors import DataError
from paretocosmos.problems._source import Source
from paretocosmos.problems.streams.fields import Fields
from paretocosmos.problems.streams.held import Rereadable
from paretocosmos.problems.streams.reading import (
    Failed,
    HowToRead,
    Order,
    collated,
    lost,
    reader_of,
)
from paretocosmos.runtime.device import mixed_seed
from paretocosmos.types import Batch

__all__ = ["Indexed"]

# Samples that are read together where nothing is trained.
TOGETHER = 128


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
                raise lost(self.where, error) from error
            if isinstance(found, Failed):
                self.end()
                raise found.error(self.where)
            yield self.fields.batch(found)
