"""A problem whose samples come from datasets and loaders."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import (
    DataLoader,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    Subset,
    TensorDataset,
)

from paretocosmos.errors import ConfigurationError, DataError, check_choice
from paretocosmos.problems.base import SPLITS, Problem, Source, Split, check_split, refuse_metrics
from paretocosmos.problems.streams.fields import Fields, Keys, list_targets
from paretocosmos.problems.streams.losses import (
    Loss,
    find_inputs,
    make_objectives,
    split_data,
)
from paretocosmos.problems.streams.reading import ReadOptions
from paretocosmos.problems.streams.sources import ByObjective, Indexed, Iterated, Length
from paretocosmos.types import Batch, Inputs, first, map_tensors


def make_source(
    data: Any,
    fields: Fields,
    options: ReadOptions,
    samples: int | None,
    *,
    batched: bool | None = None,
) -> Source:
    """Return the source of a split.

    Args:
        data: a map-style dataset, an iterable one, a loader, or any iterable of batches.
        fields: the inputs and targets among the parts of an item.
        options: of the loader of a dataset; a loader has its own.
        samples: in an epoch, where the data does not say.
        batched: whether an iterable yields batches; if `None`, an `IterableDataset` does not.
    """
    where = fields.where
    if isinstance(data, DataLoader):
        return _read_loader(data, fields, samples)
    # text is iterable too, letter by letter
    if isinstance(data, str | bytes) or not (_is_indexable(data) or isinstance(data, Iterable)):
        raise ConfigurationError(
            f"{where} must be a dataset, a loader or an iterable of batches, found {data!r}"
        )
    if _is_indexable(data):
        _refuse_samples(samples, where)
        return Indexed(data, fields, options)
    # an iterator returns itself, and would be empty in the second epoch
    if iter(data) is data:
        raise ConfigurationError(
            f"{where} must be iterable more than once, found {type(data).__name__}, which can be "
            "read only once: make it a class with `__iter__`, or an IterableDataset"
        )
    count = _get_length(data)
    inexact = f"{where} cannot be set back to a place in the middle"
    if batched is None:
        # by name: Hugging Face's class is not torch's, and its package need not be imported; the
        # loader of WebDataset is such a class too, but yields batches
        kinds = {kind.__name__ for kind in type(data).__mro__}
        batched = "IterableDataset" not in kinds or "WebLoader" in kinds
    if not batched:
        samples, one_pass = _count_samples(samples, count, where), samples is None
        return Iterated(
            data,
            fields,
            samples,
            batch_size=None,
            one_pass=one_pass,
            options=options,
            inexact=inexact,
        )
    # it yields batches itself, which `batch_size=None` passes on as they are
    if options.workers and isinstance(data, IterableDataset):
        data = DataLoader(data, batch_size=None, num_workers=options.workers)
    return _read_batches(data, fields, samples, inexact)


def holds_tensors(data: Any) -> bool:
    """Return True if a dataset is tensors in memory, which no transform changes."""
    if isinstance(data, DataLoader):
        # a collate function may change samples, and another sampler their order or number
        plain = ReadOptions.from_loader(data).collate is None and _find_order(data) == "shuffled"
        return plain and data.batch_size is not None and holds_tensors(data.dataset)
    return isinstance(data, TensorDataset) or (
        isinstance(data, Subset) and holds_tensors(data.dataset)
    )


def _read_loader(loader: DataLoader[Any], fields: Fields, samples: int | None) -> Source:
    """Return the dataset of a loader if we can draw its order ourselves, else its batches."""
    order = _find_order(loader)
    if order is not None and loader.batch_size is not None:
        _refuse_samples(samples, fields.where)
        replicas, shuffled = None, order == "shuffled"
        if isinstance(loader.sampler, DistributedSampler):
            # a loader's batch is the share of one process; ours is that of all together
            replicas, shuffled = loader.sampler.num_replicas, loader.sampler.shuffle
        return Indexed(
            loader.dataset,
            fields,
            ReadOptions.from_loader(loader),
            batch_size=loader.batch_size * (replicas or 1),
            shuffled=shuffled,
            drop_last=loader.drop_last,
            replicas=replicas,
        )
    inexact = None
    if isinstance(loader.dataset, IterableDataset):
        inexact = f"{fields.where} reads an IterableDataset, which begins anew"
    return _read_batches(loader, fields, samples, inexact)


def _read_batches(data: Any, fields: Fields, samples: int | None, inexact: str | None) -> Iterated:
    """Return the source of an iterable of batches; their size is that of the first one."""
    batches, one_pass = _get_length(data), samples is None
    wanted = _count_samples(samples, batches, fields.where)
    size = getattr(data, "batch_size", None)
    if not isinstance(size, int):
        # a list of batches has no size of its own, so the first one tells
        size = len(Iterated(data, fields, 1, batch_size=1, one_pass=True, inexact=None).first())
    count = wanted * size if one_pass else wanted
    return Iterated(data, fields, count, batch_size=size, one_pass=one_pass, inexact=inexact)


def _find_order(loader: DataLoader[Any]) -> str | None:
    """Return the order of a loader: shuffled, in order, distributed; `None` for any other."""
    sampler = loader.sampler
    if isinstance(loader.dataset, IterableDataset) or loader.batch_sampler is None:
        return None
    # a batch sampler defined elsewhere may do anything
    if type(loader.batch_sampler).__module__ != "torch.utils.data.sampler":
        return None
    if type(sampler) is RandomSampler:
        # with replacement, or of some samples only, an epoch is no permutation
        complete = not sampler.replacement and sampler.num_samples == _get_length(loader.dataset)
        return "shuffled" if complete else None
    # `type`, not `isinstance`: a subclass may draw in another way
    if type(sampler) is SequentialSampler:
        return "in order"
    return "distributed" if type(sampler) is DistributedSampler else None


def _is_indexable(data: Any) -> bool:
    if isinstance(data, IterableDataset):  # it inherits a `__getitem__` that only refuses
        return False
    return hasattr(data, "__getitem__") and _get_length(data) is not None


def _get_length(data: Any) -> int | None:
    try:
        return len(data)
    # a `__len__` that only refuses raises either
    except (TypeError, NotImplementedError):
        return None


def _count_samples(setting: int | None, length: int | None, where: str) -> int:
    """Return the samples, or batches, of an epoch: the setting, or the length of the data."""
    count = length if setting is None else setting
    if count is None:
        raise ConfigurationError(f"{where} has no length: set `samples` per epoch")
    if count < 1:
        raise ConfigurationError(f"`samples` per epoch must be 1 or more, found {count}")
    return count


def _refuse_samples(samples: int | None, where: str) -> None:
    if samples is not None:
        raise ConfigurationError(
            f"`samples` is for sources without a length, but {where} has one, found {samples}: "
            "leave it out"
        )


# Bytes of a split that is read into memory because somebody asks for all of it.
LARGEST = 4 * 2**30


@dataclass(frozen=True, kw_only=True, eq=False)
class DataProblem(Problem):
    """Data as it comes: a dataset or loader for each split, read while it is used.

    A split is a map-style dataset (torch's, Hugging Face's, or anything with `__getitem__` and
    `__len__`), an `IterableDataset`, a `DataLoader`, any other iterable of batches, or a `Batch`.
    A split may also be a mapping with a source of its own for each objective, by its name: a step
    takes one batch of each, and an objective is trained and scored on its own alone.

    What is validated or tested on is kept in memory where it takes at most 1 GB, else read anew
    whenever it is evaluated.

    Inputs that are bytes become floats from 0 to 1 on the device.

    Attributes:
        name: the name of the problem in runs.
        objectives: the J objectives.
        reference: ``[J]``, the point hypervolume is measured from: worse than any front. Left
            empty, `fit` takes four times the losses of the network with fresh weights.
        train: the data to train on; transforms of this dataset are for training only.
        val: the data to validate on.
        test: the data to test on.
        inputs: the inputs of the network: a key of a mapping or dataclass, a position in a tuple,
            or several names, which it takes as keywords; if `None`, the first of a tuple, or the
            part that is no target.
        targets: the targets of the objectives: a key, several names, or keys by the names that
            objectives use; those names if `None`, or the rest of a tuple in their order.
        outputs: how many numbers a network gives per sample, or how many per head.
        input_shape: the shape of one sample; read from the first one if left out.
        workers: processes that read a dataset ahead of the training; a loader has its own.
        collate: makes a batch from a list of samples; torch's default if `None`.
        samples: training samples in an epoch, where a stream has no length.
        batched: whether an iterable yields batches; if `None`, an `IterableDataset` yields samples
            and everything else batches.
        gather: `True` reads the training split into memory once, for the fastest engines: right
            where no transform is random. If `None`, only tensors are taken so.
        epoch: with a source for each objective, whether the longest or the shortest is an epoch.

    >>> from paretocosmos.objectives import MeanSquaredError
    >>> rows = [(torch.ones(3), torch.zeros(1))] * 8
    >>> problem = DataProblem(
    ...     name="zeros", objectives=(MeanSquaredError(),), reference=(1.0,),
    ...     train=rows, val=rows, test=rows,
    ... )
    >>> problem.input_shape, len(problem.split("val"))
    ((3,), 8)
    """

    reference: tuple[float, ...] = ()
    train: Any = field(repr=False)
    val: Any = field(repr=False)
    test: Any = field(repr=False)
    inputs: Keys | None = None
    targets: Keys | None = None
    outputs: int | Mapping[str, int] = 1
    input_shape: tuple[int, ...] = ()
    workers: int = 0
    collate: Callable[[Any], Any] | None = field(default=None, repr=False)
    samples: int | None = None
    batched: bool | None = None
    gather: bool | None = None
    epoch: Length = "longest"
    kept: dict[str, Any] = field(default_factory=dict, repr=False)
    """Sources that were made already, and splits in memory; a copy of the problem shares them."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.objectives or len(self.reference) not in (0, len(self.objectives)):
            raise ConfigurationError(
                f"`reference` needs one number per objective, here {len(self.objectives)}; found "
                f"{len(self.reference)}"
            )
        check_choice("epoch", self.epoch, ("longest", "shortest"))
        if type(self.workers) is not int or self.workers < 0:
            raise ConfigurationError(f"`workers` must be 0 or more, found {self.workers!r}")
        # all splits now: a mistake in `test` must not come up after the training
        for name in SPLITS:
            self.source(name)
        if not self.input_shape:
            # val rather than train, whose transforms may be slow or random
            source = self.source("val")
            parts = () if source is None else (*source.parts.values(), source)
            batch = parts[0].some(1) if parts else self.split("val")
            object.__setattr__(self, "input_shape", tuple(first(batch.inputs).shape[1:]))

    @classmethod
    def of(
        cls, data: Any, losses: Sequence[Loss] | Mapping[str, Loss], *, name: str = "data"
    ) -> "DataProblem":
        """Make a problem of data and loss functions; ``fit(network, data, losses)`` does.

        Args:
            data: a `Dataset`, a `DataLoader`, or a tuple of arrays or tensors, inputs first; a
                tenth of it validates and a tenth tests. Or a mapping from ``"train"``, ``"val"``
                and ``"test"`` to such data.
            losses: a list of functions of (outputs, target), torch's or your own, or of objectives.
                Where a sample has as many targets as there are losses, each loss has its own, in
                their order, and so where a network gives as many outputs; else all have the same.
                A mapping from names to losses finds targets and outputs by these names. In samples
                that are mappings, what no loss names is an input; the network takes several as
                keywords.
            name: how runs call it.
        """
        splits = split_data(data)
        objectives = make_objectives(losses, splits)
        inputs = find_inputs(splits, objectives)
        return cls(name=name, objectives=objectives, inputs=inputs, **splits)

    def source(self, name: Split) -> Source | None:
        check_split(name)
        if name not in self.kept:
            self.kept[name] = self._make_source(name)
            if name == "train":
                # already set where the split was read into memory, and no source is left to ask
                self.kept.setdefault("batch_size", getattr(self.kept[name], "batch_size", None))
        source = self.kept[name]
        return None if isinstance(source, Batch) else source

    def split(self, name: Split) -> Batch:
        """Return a split, read into memory; raise if it is too large."""
        source = self.source(name)
        if source is None:
            batch: Batch = self.kept[name]
            return batch
        return _read_all(source)

    @property
    def batch_size(self) -> int | None:
        size: int | None = self.kept["batch_size"]
        return size

    def prepare(self, inputs: Inputs, dtype: torch.dtype) -> Inputs:
        def convert(tensor: Tensor) -> Tensor:
            if tensor.dtype == torch.uint8:
                # dividing bytes gives float32 at once
                return (tensor if dtype == torch.float32 else tensor.to(dtype)) / 255
            return tensor.to(dtype) if tensor.is_floating_point() else tensor

        prepared: Inputs = map_tensors(convert, inputs)
        return prepared

    def _where(self, name: str) -> str:
        return f"`{name}` of `{self.name}`"

    def _make_source(self, name: Split) -> Source | Batch:
        """Return the source of a split, or the split if it is in memory."""
        data: Any = getattr(self, name)
        if isinstance(data, Batch):
            return data
        if isinstance(data, Mapping):
            return self._by_objective(name, data)
        source = self._make_part(data, self._where(name), name, None)
        tensors = self.gather is None and holds_tensors(data)
        if name == "train" and (self.gather or tensors):
            if source.batch_size is None or tensors:
                self.kept["batch_size"] = source.batch_size
                return _read_all(source)
            raise ConfigurationError(
                f"`gather` reads a dataset into memory, but {self._where(name)} is a loader: "
                "give its dataset"
            )
        return source

    def _by_objective(self, name: Split, data: Mapping[str, Any]) -> Source:
        for key in data:
            check_choice(f"objective in {self._where(name)}", key, self.names)
        absent = [f"`{objective}`" for objective in self.names if objective not in data]
        if absent:
            raise ConfigurationError(
                f"{self._where(name)} needs a source for each objective, found none for "
                f"{' and '.join(absent)}: add it, or give one source for all"
            )
        # metrics are computed only where a split is evaluated
        if self.metrics and name != "train":
            raise refuse_metrics(self._where(name))
        parts = {
            goal: self._make_part(data[goal], f"`{goal}` in {self._where(name)}", name, goal)
            for goal in self.names
        }
        return ByObjective(parts, self.epoch, self._where(name))

    def _make_part(self, data: Any, where: str, name: Split, task: str | None) -> Source:
        goals = [goal for goal in self.objectives if task in (None, goal.name)]
        tasks = len({goal.target for goal in goals})
        fields = Fields(where, self.inputs, self.targets, list_targets(goals), tasks)
        options = ReadOptions(workers=self.workers, collate=self.collate)
        # a split that is only evaluated is read to its end, whatever its number of samples
        samples = self.samples if name == "train" else None if _get_length(data) is not None else 1
        # a loader has settings of its own
        if isinstance(data, DataLoader):
            options = ReadOptions()
        return make_source(data, fields, options, samples, batched=self.batched)


def _read_all(source: Source) -> Batch:
    batch = source.held(LARGEST)
    if isinstance(batch, str):
        raise DataError(f"{batch}, but is needed as a whole: give fewer samples")
    return batch
