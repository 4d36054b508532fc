"""The contract of a source: samples that are read while they are used."""

from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Protocol

from torch import Tensor

from paretocosmos.types import Batch

__all__ = ["HELD", "Source"]

HELD = 2**30
"""Bytes of a split up to which it is read once and kept, where it is evaluated again and again."""


class Source(Protocol):
    """Samples of a split that are read while they are used.

    Attributes:
        where: what is read, for messages: "`train` of `pictures`".
        samples: in an epoch.
        batch_size: samples in a batch, where the source decides; `None` where the training does.
        shuffled: whether it is read in the order the training draws, or in that of its samples.
        replicas: how many processes share its samples; `None` where any number may.
        inexact: why a training that is resumed does not read what it would have read; `None` where
            it reads just that.
        parts: the sources of the objectives by their names, where each has its own; empty where
            all share this one. If there are any, the inputs and the targets of a batch to train on
            are mappings by these names, and what is evaluated is read from each of them.
    """

    where: str
    samples: int
    batch_size: int | None
    shuffled: bool
    replicas: int | None
    inexact: str | None
    parts: Mapping[str, "Source"]

    def begin(self, seed: int, epoch: int) -> None:
        """Fix what is random in the epoch that follows."""

    def read(self, pieces: Sequence[Tensor], *, pin: bool = False) -> Generator[Batch]:
        """One batch for each piece ``[B]`` of the sample indices of an epoch.

        A source without random access goes by the number of pieces alone.

        Args:
            pieces: which samples.
            pin: whether batches are to lie in pinned memory.
        """

    def once(self) -> Iterator[Batch]:
        """All samples once, in order, with the same random numbers every time."""

    def held(self, most: int) -> Batch | str:
        """All samples as one batch, which is kept; or why not.

        Args:
            most: bytes that they may take.
        """

    def some(self, count: int, rows: Tensor | None = None) -> Batch:
        """These rows, or the first so many samples."""

    def end(self) -> None:
        """Let go of worker processes and of what is under way."""
