"""Where batches come from: the contract, and a split that lies on the device.

A split that fits lies on the device, and a batch is picked there, inside the step. One that does
not is streamed (`streamed`). Both give the same numbers.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from typing import Any, Protocol

import torch
from torch import Tensor

from paretocosmos.types import Batch, map_tensors

__all__ = ["BatchHandle", "Feed", "Parts", "Resident", "Share", "all_given", "all_of_it"]

# Bytes of a sample's target up to which those of one kind are copied side by side.
SMALL_TARGET = 64

BatchHandle = Tensor | tuple[Any, ...]
"""What a feed hands to a step: the indices of its samples, or the samples, part by part."""


Share = Callable[[Tensor], Tensor]
"""The indices ``[..., B]`` of a batch to those whose inputs a process needs."""


def all_of_it(index: Tensor) -> Tensor:
    """The share of a process that trains alone."""
    return index


class Feed(Protocol):
    """A split to train on, batch by batch.

    Attributes:
        resident: whether samples lie on the device, so that a CUDA graph can pick them.
        device: where indices belong.
        waited: seconds the training stood still for want of data, so far.
    """

    resident: bool
    device: torch.device
    waited: float

    def __len__(self) -> int:
        """Samples."""

    def run(self, pieces: Sequence[Tensor]) -> Generator[BatchHandle]:
        """What belongs to indices ``[..., B]``, in order, each good until the next; to be closed.

        Pieces of several steps are for a resident feed alone.
        """

    def batch_at(self, given: BatchHandle) -> Batch:
        """The batch, on the device."""


def all_given(feed: Feed, pieces: Sequence[Tensor]) -> list[BatchHandle]:
    """What a feed gives for some pieces, to keep, and no thread left at work."""
    with closing(feed.run(pieces)) as every:
        return [map_tensors(torch.clone, given) for given in every]


class Parts:
    """A split as the tensors a batch is gathered from.

    Small targets of one kind lie side by side: however many tasks, they are gathered once. Larger
    ones, which may be memory-mapped, are not copied.

    Args:
        data: the split.
        share: which of a batch's indices are those of the inputs a step gets; it gets all targets.
    """

    def __init__(self, data: Batch, share: Share = all_of_it) -> None:
        self._inputs, self.samples, self._share = data.inputs, len(data), share
        self.tensors: list[Tensor] = []
        map_tensors(self._add, data.inputs)
        self._count = len(self.tensors)
        kinds: dict[object, list[str]] = {}
        for name, target in data.targets.items():
            small = target[:1].numel() * target.element_size() <= SMALL_TARGET
            kinds.setdefault((target.dtype, target.shape) if small else name, []).append(name)
        self._kinds = list(kinds.values())
        for names in self._kinds:
            targets = [data.targets[name] for name in names]
            self._add(targets[0] if len(names) == 1 else torch.stack(targets, dim=1))

    def indices(self, index: Tensor) -> list[Tensor]:
        """Which samples ``[..., B]`` a batch takes of every tensor."""
        own, rest = self._share(index), len(self.tensors) - self._count
        return [own] * self._count + [index] * rest

    def _add(self, tensor: Tensor) -> Tensor:
        self.tensors.append(tensor)
        return tensor

    def batch(self, taken: Sequence[Tensor]) -> Batch:
        """What was taken of every tensor as inputs and targets."""
        axes = taken[0].ndim - self.tensors[0].ndim + 1
        rest = iter(taken)
        inputs = map_tensors(lambda _: next(rest), self._inputs)
        targets: dict[str, Tensor] = {}
        for names, part in zip(self._kinds, rest, strict=True):
            parts = (part,) if len(names) == 1 else part.unbind(axes)
            targets |= dict(zip(names, parts, strict=True))
        return Batch(inputs, targets)


class Resident:
    """A split on the device of its tensors; what it gives is the indices themselves."""

    resident = True

    def __init__(self, data: Batch, share: Share = all_of_it) -> None:
        self._parts = Parts(data, share)
        self.device, self.waited = self._parts.tensors[0].device, 0.0

    def __len__(self) -> int:
        return self._parts.samples

    def run(self, pieces: Sequence[Tensor]) -> Generator[BatchHandle]:
        """The indices, which are there."""
        yield from pieces

    def batch_at(self, given: BatchHandle) -> Batch:
        """Samples by their index ``[..., B]``."""
        assert isinstance(given, Tensor)
        pairs = zip(self._parts.tensors, self._parts.indices(given), strict=True)
        return self._parts.batch([_taken(tensor, index) for tensor, index in pairs])


def _taken(tensor: Tensor, index: Tensor) -> Tensor:
    taken = tensor.index_select(0, index.flatten())
    return taken if index.ndim == 1 else taken.unflatten(0, index.shape)
