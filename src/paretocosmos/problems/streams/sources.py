"""Which source a dataset, a loader or an iterable is."""

from collections.abc import Iterable
from typing import Any

from torch.utils.data import (
    DataLoader,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    Subset,
    TensorDataset,
)

from paretocosmos.errors import ConfigurationError
from paretocosmos.problems._source import Source
from paretocosmos.problems.streams.fields import Fields
from paretocosmos.problems.streams.indexed import Indexed
from paretocosmos.problems.streams.iterated import Iterated
from paretocosmos.problems.streams.reading import HowToRead

__all__ = ["has_length", "holds_tensors", "source_of"]


def source_of(
    data: Any, fields: Fields, how: HowToRead, samples: int | None, *, batched: bool | None = None
) -> Source:
    """The source of a split.

    Args:
        data: a map-style dataset, an iterable one, a loader, or any iterable of batches.
        fields: what of it are inputs and targets.
        how: how a dataset is read; a loader has settings of its own.
        samples: in an epoch, where the data does not say.
        batched: whether an iterable yields batches; if `None`, an `IterableDataset` does not.
    """
    where = fields.where
    if isinstance(data, DataLoader):
        return _of_loader(data, fields, samples)
    if isinstance(data, str | bytes) or not (_indexable(data) or isinstance(data, Iterable)):
        raise ConfigurationError(
            f"{where} must be a dataset, a loader or an iterable of batches, found {data!r}"
        )
    if _indexable(data):
        _refuse_samples(samples, where)
        return Indexed(data, fields, how)
    if iter(data) is data:
        raise ConfigurationError(
            f"{where} must be iterable more than once, found {type(data).__name__}, which can be "
            "read only once: make it a class with `__iter__`, or an IterableDataset"
        )
    count = _length(data)
    inexact = f"{where} cannot be set back to a place in the middle"
    if batched is False or (batched is None and _of_samples(data)):
        samples, whole = _samples(samples, count, where), samples is None
        return Iterated(
            data, fields, samples, batch_size=None, whole=whole, how=how, inexact=inexact
        )
    if how.workers and isinstance(data, IterableDataset):
        data = DataLoader(data, batch_size=None, num_workers=how.workers)
    return _of_batches(data, fields, samples, inexact)


def holds_tensors(data: Any) -> bool:
    """Whether a dataset is tensors in memory, which no transform changes."""
    if isinstance(data, DataLoader):
        plain = HowToRead.of(data).collate is None and _plain(data) == "shuffled"
        return plain and data.batch_size is not None and holds_tensors(data.dataset)
    return isinstance(data, TensorDataset) or (
        isinstance(data, Subset) and holds_tensors(data.dataset)
    )


def _of_loader(loader: DataLoader[Any], fields: Fields, samples: int | None) -> Source:
    """A loader whose order we can draw ourselves is taken apart; others are iterated."""
    plain = _plain(loader)
    if plain is not None and loader.batch_size is not None:
        _refuse_samples(samples, fields.where)
        replicas, shuffled = None, plain == "shuffled"
        if isinstance(loader.sampler, DistributedSampler):
            replicas, shuffled = loader.sampler.num_replicas, loader.sampler.shuffle
        return Indexed(
            loader.dataset,
            fields,
            HowToRead.of(loader),
            batch_size=loader.batch_size * (replicas or 1),
            shuffled=shuffled,
            drop_last=loader.drop_last,
            replicas=replicas,
        )
    inexact = None
    if isinstance(loader.dataset, IterableDataset):
        inexact = f"{fields.where} reads an IterableDataset, which begins anew"
    return _of_batches(loader, fields, samples, inexact)


def _of_batches(data: Any, fields: Fields, samples: int | None, inexact: str | None) -> Iterated:
    """Whatever yields batches: its first one says how many samples they have."""
    batches, whole = _length(data), samples is None
    wanted = _samples(samples, batches, fields.where)
    size = getattr(data, "batch_size", None)
    if not isinstance(size, int):
        size = len(Iterated(data, fields, 1, batch_size=1, whole=True, inexact=None).first())
    count = wanted * size if whole else wanted
    return Iterated(data, fields, count, batch_size=size, whole=whole, inexact=inexact)


def _plain(loader: DataLoader[Any]) -> str | None:
    """How a loader orders a map-style dataset: shuffled, in order, for processes."""
    sampler = loader.sampler
    if isinstance(loader.dataset, IterableDataset) or loader.batch_sampler is None:
        return None
    if type(loader.batch_sampler).__module__ != "torch.utils.data.sampler":
        return None
    if type(sampler) is RandomSampler:
        whole = not sampler.replacement and sampler.num_samples == _length(loader.dataset)
        return "shuffled" if whole else None
    if type(sampler) is SequentialSampler:
        return "in order"
    return "distributed" if type(sampler) is DistributedSampler else None


def has_length(data: Any) -> bool:
    """Whether data says how much of it there is."""
    return _length(data) is not None


def _indexable(data: Any) -> bool:
    if isinstance(data, IterableDataset):  # it inherits a `__getitem__` that only refuses
        return False
    return hasattr(data, "__getitem__") and _length(data) is not None


def _of_samples(data: Any) -> bool:
    """Whether an iterable gives samples: torch's kind, and what calls itself so.

    WebDataset's loader is an `IterableDataset` too, and gives batches as torch's loader does.
    """
    names = {kind.__name__ for kind in type(data).__mro__}
    return "IterableDataset" in names and "WebLoader" not in names


def _length(data: Any) -> int | None:
    try:
        return len(data)
    except (TypeError, NotImplementedError):
        return None


def _samples(asked: int | None, counted: int | None, where: str) -> int:
    found = counted if asked is None else asked
    if found is None:
        raise ConfigurationError(f"{where} has no length: set `samples` per epoch").by(
            {"samples": None}
        )
    if found < 1:
        raise ConfigurationError(f"`samples` per epoch must be 1 or more, found {found}")
    return found


def _refuse_samples(samples: int | None, where: str) -> None:
    if samples is not None:
        raise ConfigurationError(
            f"`samples` is for sources without a length, found {samples} and {where}, which has "
            "one: leave it out"
        )
