"""Samples that are read once and kept, where they take little memory."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from paretocosmos.errors import DataError
from paretocosmos.io.files import one_line
from paretocosmos.io.formatting import format_bytes
from paretocosmos.types import Batch, map_tensors

__all__ = ["Rereadable", "bytes_of", "joined"]


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
