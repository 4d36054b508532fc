"""A source for every objective: each step takes a batch of each."""

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from typing import Any, Literal

import torch
from torch import Tensor

from paretocosmos.errors import ConfigurationError, DataError
from paretocosmos.problems._source import Source
from paretocosmos.runtime.device import mixed_seed
from paretocosmos.types import Batch

__all__ = ["ByObjective", "Length"]

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
