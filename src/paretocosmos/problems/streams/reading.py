"""Read batches of a dataset so that they depend on a seed alone, and keep small data in memory."""

import itertools
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, is_dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset, default_collate

from paretocosmos.errors import DataError
from paretocosmos.io.files import one_line
from paretocosmos.types import Batch, map_tensors

Collate = Callable[[Any], Any]
# Seeds stay within signed 64-bit numbers.
SEEDS = 2**63
# A prime, so that batches and samples do not lead to the same seed.
SEED_STEP = 1_000_000_007


@dataclass(frozen=True)
class ReadOptions:
    """The settings of a `DataLoader` without its dataset and its order.

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
    def from_loader(cls, loader: DataLoader[Any]) -> "ReadOptions":
        """Return the settings of a loader."""
        is_default = loader.collate_fn is default_collate
        workers = loader.num_workers
        return cls(
            workers,
            None if is_default else loader.collate_fn,
            # torch refuses these settings where there are no workers
            loader.prefetch_factor if workers else None,
            loader.worker_init_fn,
            loader.multiprocessing_context if workers else None,
            loader.timeout if workers else 0,
        )

    def make_loader(
        self, dataset: Any, order: "Order", *, pin: bool, keep: bool
    ) -> DataLoader[Any]:
        """Return a loader of a dataset in an order; `keep` its workers between epochs."""
        reader: Any = SeededReader(dataset)  # a dataset by its methods, not by its type
        return DataLoader(
            reader,
            batch_sampler=order,
            num_workers=self.workers,
            collate_fn=_Collator(self.collate),
            pin_memory=pin,
            prefetch_factor=self.prefetch,
            worker_init_fn=self.begin_worker,
            multiprocessing_context=self.context,
            timeout=self.timeout,
            generator=torch.Generator(),  # one of its own: the training's draws nothing for it
            persistent_workers=keep and self.workers > 0,
        )

    def batch_samples(self, stream: Iterable[Any], size: int, *, pin: bool) -> Iterable[Any]:
        """Return a stream of samples as one of batches, by workers if it is torch's."""
        if isinstance(stream, IterableDataset):
            return DataLoader(
                stream,
                batch_size=size,
                num_workers=self.workers,
                collate_fn=self.collate,
                pin_memory=pin,
            )
        samples = iter(stream)
        chunks = iter(lambda: list(itertools.islice(samples, size)), [])
        return (collate_samples(chunk, self.collate) for chunk in chunks)


class Order:
    """A batch sampler that yields lists: the seed of a batch, then the indices of its samples."""

    def __init__(self) -> None:
        self.batches: Sequence[Tensor] = ()
        self.seed = 0

    def __iter__(self) -> Iterator[list[int]]:
        for number, rows in enumerate(self.batches):
            # one list at a time: as numbers of Python's, a million would take 30 MB
            indices = rows.tolist()
            # by its first sample too: processes that share a batch draw different numbers
            yield [(self.seed + number + SEED_STEP * indices[0]) % SEEDS, *indices]

    def __len__(self) -> int:
        return len(self.batches)


@dataclass(frozen=True)
class ReadFailure:
    """A failure to read, sent by a worker in place of a batch, since errors lose their types.

    Attributes:
        item: the sample or batch that could not be read.
        reason: the error, in one line.
    """

    item: str
    reason: str

    def to_error(self, where: str) -> DataError:
        """Return the error to raise in the training process."""
        return DataError(
            f"{self.item} of {where} cannot be read ({self.reason}): fix it or leave it out"
        )


@dataclass(frozen=True)
class SeededReader:
    """A dataset whose batches depend on their seed, not on the worker that reads them.

    So a training reads the same whatever the number of workers, and when it is resumed.
    """

    dataset: Any

    def __getitems__(self, seed_and_rows: Sequence[int]) -> "list[Any] | ReadFailure":
        seed, *rows = seed_and_rows
        with SeededDraws(seed):
            many = getattr(self.dataset, "__getitems__", None)
            if many is not None:  # such as those of Hugging Face, which read rows together
                try:
                    return list(many(rows))
                except Exception as error:
                    return _describe_failure(
                        f"one of the samples {rows[0]}, ... ({len(rows)} of them)", error
                    )
            samples = []
            for row in rows:
                try:
                    samples.append(self.dataset[row])
                except Exception as error:
                    return _describe_failure(f"sample {row}", error)
        return samples


@dataclass(frozen=True)
class _Collator:
    collate: Collate | None

    def __call__(self, samples: Any) -> Any:
        # passed on to the training process, which raises
        if isinstance(samples, ReadFailure):
            return samples
        try:
            return collate_samples(samples, self.collate)
        except Exception as error:
            return _describe_failure("a batch", error, hint="; `collate` makes batches of samples")


def collate_samples(samples: Sequence[Any], collate: Collate | None) -> Any:
    """Return a list of samples as one batch; dataclasses become mappings."""
    if collate is not None:
        return collate(samples)
    if is_dataclass(samples[0]) and not isinstance(samples[0], type):
        samples = [dict(vars(sample)) for sample in samples]
    return default_collate(list(samples))


def explain_loader_error(where: str, error: Exception) -> DataError:
    """Return the error about a loader that failed, from the last line of its message."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    # torch puts the traceback of a worker into the message, with the reason in its last line
    worker = next((line for line in lines if "worker" in line.lower()), "")
    message = lines[-1] if lines else ""
    # a worker that is killed closes its pipe
    if isinstance(error, ConnectionError | EOFError) or reports_dead_worker(error):
        return DataError(
            f"a worker process that reads {where} has died ({worker or message}): it may have run "
            "out of memory or shared memory; use fewer `workers`"
        )
    prefix = f"{worker.rstrip('.')}: " if worker and worker != message else ""
    reason = f"{type(error).__name__}: {prefix}{message}"
    return ReadFailure("a batch", reason).to_error(where)


def reports_dead_worker(error: Exception) -> bool:
    """Return True if this is torch's report that a worker of a loader has died.

    Torch raises it in a signal handler, so in whatever the training happens to be doing.

    >>> reports_dead_worker(RuntimeError("DataLoader worker (pid 7) is killed by signal: Killed."))
    True
    """
    text = str(error)
    died = "exited unexpectedly" in text or "killed by signal" in text
    return died and "worker" in text.lower()


def _describe_failure(item: str, error: Exception, hint: str = "") -> ReadFailure:
    return ReadFailure(item, f"{type(error).__name__}: {one_line(error)}{hint}")


class SeededDraws:
    """A context with random numbers of its own, which may be entered again and again.

    Inside, torch, numpy and Python draw numbers that follow from a seed, and go on where the
    previous block stopped; outside nothing has changed.
    """

    def __init__(self, seed: int) -> None:
        self._seed: int | None = seed
        self._inside = self._outside = _get_states()

    def __enter__(self) -> None:
        self._outside = _get_states()
        if self._seed is None:
            _set_states(self._inside)
        else:
            torch.default_generator.manual_seed(self._seed)
            random.seed(self._seed)
            # NumPy takes no larger seeds
            np.random.seed(self._seed % 2**32)
            self._seed = None

    def __exit__(self, *_: object) -> None:
        self._inside = _get_states()
        _set_states(self._outside)


def _get_states() -> tuple[Any, ...]:
    # of the CPU alone, where transforms draw
    return torch.default_generator.get_state(), random.getstate(), np.random.get_state()


def _set_states(states: tuple[Any, ...]) -> None:
    torch.default_generator.set_state(states[0])
    random.setstate(states[1])
    np.random.set_state(states[2])


def join_batches(batches: Sequence[Batch], where: str) -> Batch:
    """Concatenate batches."""
    if len(batches) == 1:
        return batches[0]
    try:
        inputs = map_tensors(lambda *t: torch.cat(t), *(batch.inputs for batch in batches))
        targets = map_tensors(lambda *t: torch.cat(t), *(batch.targets for batch in batches))
    except (RuntimeError, KeyError) as error:
        raise DataError(
            f"the batches of {where} must have the same shapes except for the number of samples "
            f"({one_line(error)}): make them so in `collate`"
        ) from error
    return Batch(inputs, targets)
