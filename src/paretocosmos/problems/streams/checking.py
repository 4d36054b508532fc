"""What every batch of a source must be: like the first, without NaN, its labels in the classes."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from paretocosmos.errors import DataError, ParetoCosmosError
from paretocosmos.io.files import one_line
from paretocosmos.objectives import CrossEntropy, Objective
from paretocosmos.types import Batch, Outputs, Targets

__all__ = ["BatchChecks", "LabelRange", "check_labels", "label_range"]

LabelRange = tuple[int, int | None]
"""How many classes a head has, and the label that means there is none."""

TARGET = "target "
"""What the names of targets begin with, where inputs are named too."""


class BatchChecks:
    """Looks at batches on the CPU, before a network sees them.

    Args:
        where: what they are read from.
        objectives: what they are for.
        labels: what each target may have, where it is classes.
    """

    def __init__(
        self,
        where: str,
        objectives: Sequence[Objective],
        labels: Mapping[str, LabelRange],
    ) -> None:
        self._where, self._labels = where, labels
        self._may_lack = {one.target for one in objectives if one.missing is not None}
        self._like: dict[str, tuple[torch.dtype, torch.Size]] | None = None
        self._other: str | None = None  # how the last one differs in its sizes from the first

    def check(self, batch: Batch, place: int | None = None) -> dict[str, Tensor]:
        """Refuse a batch in a sentence, or give its parts by their names.

        Args:
            batch: on the CPU.
            place: its number, from 1; `None` for all samples as one.
        """
        said = self._where if place is None else f"batch {place} of {self._where}"
        named = _flat(batch)
        self._check_like(named, said)
        self._check_numbers(named, said)
        return named

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Inside, what fails on a batch of other sizes than the first is said to fail for that."""
        try:
            yield
        except (RuntimeError, ValueError, IndexError) as error:
            if self._other is None or isinstance(error, ParetoCosmosError):
                raise
            raise DataError(
                f"{self._other}, and the network cannot take it ({one_line(error)}): make all "
                "batches alike in the dataset or `collate`"
            ) from error

    def _check_like(self, named: Mapping[str, Tensor], said: str) -> None:
        found = {name: (part.dtype, part.shape[1:]) for name, part in named.items()}
        self._other = None
        if self._like is None or found == self._like:
            self._like = self._like or found
            return
        before = self._like
        kinds, usual = (
            {name: (dtype, len(shape)) for name, (dtype, shape) in of.items()}
            for of in (found, before)
        )
        self._other = f"{said} has {_told(found)}, where the first had {_told(before)}"
        if kinds != usual:
            raise DataError(
                f"{self._other}: all batches must have the same parts, of the same types"
            )

    def _check_numbers(self, named: Mapping[str, Tensor], said: str) -> None:
        for name, part in named.items():
            is_target = name.startswith(TARGET)
            target = name.removeprefix(TARGET).rpartition("/")[2] if is_target else None
            # a sum is not a number if a summand is not
            counts = part.is_floating_point() and target not in self._may_lack
            if counts and bool(part.sum().isnan()):
                way = "; or set ignore_nan=True on the objective" if is_target else ""
                raise DataError(f"{said} has NaN in its {name}: fix the data{way}")
            if target is not None and target in self._labels:
                check_labels(part, self._labels[target], f"`{target}`", said)


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
    return _named("inputs", batch.inputs) | _named(TARGET, batch.targets)


def _named(name: str, part: Tensor | Mapping[str, Any]) -> dict[str, Tensor]:
    if isinstance(part, Tensor):
        return {name: part}
    found: dict[str, Tensor] = {}
    for key, inner in part.items():
        found |= _named(f"{name}{'' if name == TARGET else '/'}{key}", inner)
    return found


def _told(parts: Mapping[str, tuple[torch.dtype, torch.Size]]) -> str:
    return ", ".join(
        f"{name} {tuple(shape)} {str(dtype).removeprefix('torch.')}"
        for name, (dtype, shape) in parts.items()
    )
