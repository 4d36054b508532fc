"""Samples that are read once and kept, where they take little memory."""

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, is_dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, default_collate, get_worker_info

from paretocosmos.errors import DataError
from paretocosmos.io.files import one_line
from paretocosmos.io.formatting import format_bytes
from paretocosmos.types import Batch, map_tensors

Collate = Callable[[Any], Any]
SEEDS = 2**63
# A prime, so that batches and samples do not lead to the same seed.
SHARE = 1_000_000_007


@dataclass(frozen=True)
class HowToRead:
    """How batches are read: the settings of a `DataLoader` beside what it reads and in which order.

    Attributes:
        workers: processes that read ahead; 0 reads in the training process.
        collate: from a list of samples to a batch; torch's own if `None`.
        prefetch: batches that each worker reads ahead; torch's default if `None`.
        begin_worker: called in each worker when it starts.
        context: how workers are started.
        timeout: seconds to wait for a worker; 0 waits for ever.
    """

    workers: int = 0
    collate: Collate | None = None
    prefetch: int | None = None
    begin_worker: Callable[[int], None] | None = None
    context: Any = None
    timeout: float = 0

    @classmethod
    def of(cls, loader: DataLoader[Any]) -> "HowToRead":
        """That of a loader one has."""
        usual = loader.collate_fn is default_collate
        workers = loader.num_workers
        return cls(
            workers,
            None if usual else loader.collate_fn,
            loader.prefetch_factor if workers else None,
            loader.worker_init_fn,
            loader.multiprocessing_context if workers else None,
            loader.timeout if workers else 0,
        )

    def loader(self, dataset: Any, order: "Order", *, pin: bool, keep: bool) -> DataLoader[Any]:
        """A loader that reads a dataset in an order; its workers may be kept between epochs."""
        return DataLoader(
            reader_of(dataset),
            batch_sampler=order,
            num_workers=self.workers,
            collate_fn=_Collated(self.collate),
            pin_memory=pin,
            prefetch_factor=self.prefetch,
            worker_init_fn=self.begin_worker,
            multiprocessing_context=self.context,
            timeout=self.timeout,
            generator=torch.Generator(),  # one of its own: the training's draws nothing for it
            persistent_workers=keep and self.workers > 0,
        )

    def without_workers(self) -> "HowToRead":
        """The same in this process."""
        return replace(self, workers=0, prefetch=None, context=None, timeout=0, begin_worker=None)


class Order:
    """The batches of an epoch as lists: a seed of what is random in a batch, then its samples."""

    def __init__(self) -> None:
        self.batches: Sequence[Tensor] = ()
        self.seed = 0

    def __iter__(self) -> Iterator[list[int]]:
        for place, rows in enumerate(self.batches):
            # one list at a time: as numbers of Python's, a million would take 30 MB
            asked = rows.tolist()
            # by its first sample too: processes that share a batch draw different numbers
            yield [(self.seed + place + SHARE * asked[0]) % SEEDS, *asked]

    def __len__(self) -> int:
        return len(self.batches)


@dataclass(frozen=True)
class Failed:
    """What could not be read, and why; sent by a worker in place of a batch."""

    what: str
    why: str

    def error(self, where: str) -> DataError:
        """The sentence about it."""
        return DataError(
            f"{self.what} of {where} cannot be read ({self.why}): fix it or leave it out"
        )


@dataclass(frozen=True)
class _Reader:
    """A dataset whose batches depend on their seed, not on the worker that reads them.

    So a training reads the same whatever the number of workers, and when it is resumed.
    """

    dataset: Any

    def __getitems__(self, asked: Sequence[int]) -> "list[Any] | Failed":
        seed, *rows = asked
        with _drawing(seed):
            many = getattr(self.dataset, "__getitems__", None)
            if many is not None:  # such as those of Hugging Face, which read rows together
                try:
                    return list(many(rows))
                except Exception as error:
                    return _failed(
                        f"one of the samples {rows[0]}, ... ({len(rows)} of them)", error
                    )
            found = []
            for row in rows:
                try:
                    found.append(self.dataset[row])
                except Exception as error:
                    return _failed(f"sample {row}", error)
        return found


def reader_of(dataset: Any) -> Any:
    """A dataset that is asked for whole batches."""
    return _Reader(dataset)


@dataclass(frozen=True)
class _Collated:
    collate: Collate | None

    def __call__(self, samples: Any) -> Any:
        if isinstance(samples, Failed):
            return samples
        try:
            return collated(samples, self.collate)
        except Exception as error:
            return _failed("a batch", error, hint="; `collate` makes batches of samples")


def collated(samples: Sequence[Any], collate: Collate | None) -> Any:
    """A list of samples as one batch; those that are dataclasses become mappings."""
    if collate is not None:
        return collate(samples)
    if is_dataclass(samples[0]) and not isinstance(samples[0], type):
        samples = [dict(vars(sample)) for sample in samples]
    return default_collate(list(samples))


def lost(where: str, error: Exception) -> DataError:
    """The sentence about a loader that failed, from the last line of what it says."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    worker = next((line for line in lines if "worker" in line.lower()), "")
    told = lines[-1] if lines else ""
    if isinstance(error, ConnectionError | EOFError) or reports_dead_worker(error):
        return DataError(
            f"a worker process that reads {where} has died ({worker or told}): it may have run "
            "out of memory or shared memory; use fewer `workers`"
        )
    who = f"{worker.rstrip('.')}: " if worker and worker != told else ""
    return Failed("a batch", f"{type(error).__name__}: {who}{told}").error(where)


def reports_dead_worker(error: Exception) -> bool:
    """Return whether this is torch's report that a worker of a loader has died.

    Torch raises it in a signal handler, so in whatever the training happens to be doing.

    >>> reports_dead_worker(RuntimeError("DataLoader worker (pid 7) is killed by signal: Killed."))
    True
    """
    text = str(error)
    died = "exited unexpectedly" in text or "killed by signal" in text
    return died and "worker" in text.lower()


def _failed(what: str, error: Exception, hint: str = "") -> Failed:
    return Failed(what, f"{type(error).__name__}: {one_line(error)}{hint}")


class Draws:
    """Random numbers of its own, for what is read bit by bit.

    Inside a block, torch, numpy and Python draw what follows from a seed, and go on where the block
    before stopped; outside nothing has changed.
    """

    def __init__(self, seed: int) -> None:
        self._seed: int | None = seed
        self._own = self._others = _states()

    def __enter__(self) -> None:
        self._others = _states()
        if self._seed is None:
            _set_states(self._own)
        else:
            _seed_all(self._seed)
            self._seed = None

    def __exit__(self, *_: object) -> None:
        self._own = _states()
        _set_states(self._others)


def _drawing(seed: int) -> AbstractContextManager[None]:
    """Inside, torch, numpy and Python draw what belongs to a seed; in a worker they may stay so."""
    if get_worker_info() is None:
        return Draws(seed)
    _seed_all(seed)
    return nullcontext()


def _states() -> tuple[Any, ...]:
    return torch.default_generator.get_state(), random.getstate(), np.random.get_state()


def _set_states(states: tuple[Any, ...]) -> None:
    torch.default_generator.set_state(states[0])
    random.setstate(states[1])
    np.random.set_state(states[2])


def _seed_all(seed: int) -> None:
    torch.default_generator.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed % 2**32)


class Rereadable(ABC):
    """What can be read again from its beginning, and is kept where it is small."""

    where: str
    _kept: Batch | str | None = None
    _tried = 0

    @abstractmethod
    def once(self) -> Iterator[Batch]:
        """All samples once, in order, with the same random numbers every time."""

    def held(self, most: int) -> Batch | str:
        """All samples as one batch, which is kept; or why not."""
        if self._kept is None or (isinstance(self._kept, str) and most > self._tried):
            self._kept, self._tried = self._collected(most), most
        return self._kept

    @torch.inference_mode(mode=False)  # losses of what is kept may be differentiated later
    def _collected(self, most: int) -> Batch | str:
        parts: list[Batch] = []
        size = 0
        for batch in self.once():
            size += bytes_of(batch)
            if size > most:
                return f"{self.where} takes more than {format_bytes(most)} in memory"
            parts.append(batch)
        try:
            return joined(parts, self.where)
        except DataError as error:
            return str(error)


def joined(parts: Sequence[Batch], where: str) -> Batch:
    """Batches as one."""
    if len(parts) == 1:
        return parts[0]
    try:
        inputs = map_tensors(lambda *t: torch.cat(t), *(part.inputs for part in parts))
        targets = map_tensors(lambda *t: torch.cat(t), *(part.targets for part in parts))
    except (RuntimeError, KeyError) as error:
        raise DataError(
            f"the batches of {where} must have the same shapes except for the number of samples "
            f"({one_line(error)}): make them so in `collate`"
        ) from error
    return Batch(inputs, targets)


def bytes_of(batch: Batch) -> int:
    """The memory of a batch."""
    size = 0

    def add(part: Tensor) -> Tensor:
        nonlocal size
        size += part.nbytes
        return part

    map_tensors(add, (batch.inputs, batch.targets))
    return size
