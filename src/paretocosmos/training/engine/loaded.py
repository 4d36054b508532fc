"""Batches that a source reads while the network trains."""

import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Any

import torch
from torch import Tensor

from paretocosmos.config.plan import Plan
from paretocosmos.errors import ConfigurationError, DataError
from paretocosmos.objectives import Objective
from paretocosmos.objectives.cross_entropy import CrossEntropy
from paretocosmos.problems import Source
from paretocosmos.runtime.distributed import Processes
from paretocosmos.training.engine.feed import BatchHandle
from paretocosmos.types import Batch, Outputs, Targets, map_tensors

__all__ = ["LabelRange", "Loaded", "check_labels", "label_range"]

LabelRange = tuple[int, int | None]
"""How many classes a head has, and the label that means there is none."""

TARGET = "target "
"""What the names of targets begin with, where inputs are named too."""


class Loaded:
    """A source as a feed: each process reads its own share, and all see all targets.

    Worker processes of the source read ahead; on a GPU the copy of a batch runs beside the step
    before. Time counts as waiting if the device has nothing else to do when the batch is there.

    Args:
        plan: what is trained, and where.
        source: of its training split.
        dtype: the type of floats on the device.
        processes: those that share the steps.
    """

    resident = False

    def __init__(
        self, plan: Plan, source: Source, dtype: torch.dtype, processes: Processes
    ) -> None:
        problem, device = plan.problem, plan.device
        self.device, self.waited = torch.device("cpu"), 0.0
        self.labels: dict[str, LabelRange] = {}
        self.other: str | None = None
        """How the batch in work differs in shape from the first one; `None` where it does not."""
        self._source, self._there, self._dtype = source, device, dtype
        self._groups, self._processes = plan.training.groups, processes
        self._where = f"`train` of `{problem.name}`"
        self._may_lack = {o.target for o in problem.objectives if o.missing is not None}
        self._like: dict[str, tuple[torch.dtype, torch.Size]] | None = None
        self._used = torch.cuda.Event() if device.type == "cuda" else None
        if source.replicas not in (None, processes.count):
            raise ConfigurationError(
                f"{self._where} is read by {source.replicas} process(es) and trained on by "
                f"{processes.count}: give a dataset, or a loader with a DistributedSampler for "
                "all of them"
            )
        if processes.count > 1 and plan.training.accumulate > 1:
            raise ConfigurationError(
                "`accumulate` needs the training split in memory if several processes train, "
                f"found {plan.training.accumulate} and {self._where}: set it to 1, or gather=True"
            ).by({"accumulate": 1})

    def __len__(self) -> int:
        return self._source.samples

    def begin(self, seed: int, epoch: int) -> None:
        """Fix what is random in the next epoch."""
        self._source.begin(seed, epoch)

    def run(self, pieces: Sequence[Tensor]) -> Generator[BatchHandle]:
        """Batches in order, on the device."""
        if not self._source.shuffled:
            sizes = [len(piece) for piece in pieces]
            pieces = torch.arange(sum(sizes)).split(sizes)
        own = [self._processes.share_of_index(piece) for piece in pieces]
        with closing(self._source.read(own, pin=self._used is not None)) as batches:
            for place, piece in enumerate(pieces):
                started = time.perf_counter()
                batch = next(batches)
                if self._used is None or self._used.query():
                    self.waited += time.perf_counter() - started
                yield self._checked(batch, place + 1, len(piece))
                if self._used is not None:
                    self._used.record()

    def batch_at(self, given: BatchHandle) -> Batch:
        """The batch, which is there."""
        inputs, targets = given
        return Batch(inputs, targets)

    def _checked(self, batch: Batch, place: int, samples: int) -> Any:
        """A batch on the device, with as many samples as groups divide, and nothing bad in it."""
        named = _flat(batch)
        self._check_like(named, place)
        self._check_numbers(named, place)
        there = partial(_moved, device=self._there, dtype=self._dtype)
        inputs, targets = map_tensors(there, batch.inputs), map_tensors(there, batch.targets)
        if self._processes.count > 1:
            return inputs, self._processes.gather(targets, samples)
        if any(len(part) % self._groups for part in named.values()):
            inputs, targets = (map_tensors(self._even, part) for part in (inputs, targets))
            if not all(len(part) for part in _flat(Batch(inputs, targets)).values()):
                raise DataError(
                    f"batch {place} of {self._where} has fewer samples than the "
                    f"{self._groups} `groups` of rays: make batches larger, or set `groups`"
                )
        return inputs, targets

    def _even(self, part: Tensor) -> Tensor:
        return part[: len(part) // self._groups * self._groups]

    def _check_like(self, named: Mapping[str, Tensor], place: int) -> None:
        found = {name: (part.dtype, part.shape[1:]) for name, part in named.items()}
        self.other = None
        if self._like is None or found == self._like:
            self._like = self._like or found
            return
        before = self._like
        kinds, usual = (
            {name: (dtype, len(shape)) for name, (dtype, shape) in of.items()}
            for of in (found, before)
        )
        self.other = (
            f"batch {place} of {self._where} has {_told(found)}, where the first had "
            f"{_told(before)}"
        )
        if kinds != usual:
            raise DataError(
                f"{self.other}: all batches must have the same parts, of the same types"
            )

    def _check_numbers(self, named: Mapping[str, Tensor], place: int) -> None:
        for name, part in named.items():
            is_target = name.startswith(TARGET)
            target = name.removeprefix(TARGET).rpartition("/")[2] if is_target else None
            # a sum is not a number if a summand is not
            counts = part.is_floating_point() and target not in self._may_lack
            if counts and bool(part.sum().isnan()):
                way = "; or set ignore_nan=True on the objective" if is_target else ""
                raise DataError(
                    f"batch {place} of {self._where} has NaN in its {name}: fix the data{way}"
                )
            if target in self.labels:
                check_labels(part, self.labels[target], f"`{target}`", f"batch {place} of train")


def label_range(objective: Objective, outputs: Outputs, targets: Targets) -> LabelRange | None:
    """What labels an objective may have, by the outputs of the network; `None` if any."""
    if not isinstance(objective, CrossEntropy):
        return None
    return objective.classes(outputs, targets), objective.ignore_index


def check_labels(labels: Tensor, allowed: LabelRange, target: str, where: str) -> None:
    """Refuse labels beyond the classes: an error in the middle of a step, fatal on a GPU."""
    classes, ignored = allowed
    if ignored is not None:
        labels = torch.where(labels == ignored, 0, labels)
    low, high = int(labels.min()), int(labels.max())
    if low < 0 or high >= classes:
        raise DataError(
            f"the labels of {target} must be 0 to {classes - 1}, one for each class of the head; "
            f"found {low if low < 0 else high} in {where}"
            + ("" if low >= 0 else f": if it marks a missing label, set ignore_index={low}")
        )


def _flat(batch: Batch) -> dict[str, Tensor]:
    """The parts of a batch by their names, those of every objective's own."""
    found: dict[str, Tensor] = {}

    def add(name: str, part: Tensor | Mapping[str, Any]) -> None:
        if isinstance(part, Tensor):
            found[name] = part
        else:
            for key, inner in part.items():
                add(f"{name}{'' if name == TARGET else '/'}{key}", inner)

    add("inputs", batch.inputs)
    add(TARGET, batch.targets)
    return found


def _told(parts: Mapping[str, tuple[torch.dtype, torch.Size]]) -> str:
    return ", ".join(
        f"{name} {tuple(shape)} {str(dtype).removeprefix('torch.')}"
        for name, (dtype, shape) in parts.items()
    )


def _moved(part: Tensor, *, device: torch.device, dtype: torch.dtype) -> Tensor:
    return part.to(device, dtype if part.is_floating_point() else None, non_blocking=True)
