"""What every batch of a source must be: like the first, without NaN, its labels in the classes."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, is_dataclass
from typing import Any

import torch
from torch import Tensor

from paretocosmos.errors import ConfigurationError, DataError, ParetoCosmosError, unknown
from paretocosmos.io.files import one_line
from paretocosmos.objectives import CrossEntropy, Objective
from paretocosmos.types import Batch, Outputs, Targets

Key = str | int
"""A name in a mapping or dataclass, or a place in a tuple."""

Keys = Key | Sequence[str] | Mapping[str, Key]
"""One key, several names, or keys by the names they get."""

# Targets that objectives read beside their own.
BESIDE = ("weight", "sensitive")


def wanted_by(objectives: Sequence[Objective]) -> tuple[str, ...]:
    """The names of the targets that objectives compare with, then those they read beside."""
    own = [objective.target for objective in objectives]
    named = (getattr(o, name, None) for o in objectives for name in BESIDE)
    return tuple(dict.fromkeys([*own, *(n for n in named if isinstance(n, str)), *BESIDE]))


@dataclass(frozen=True)
class Fields:
    """Which parts of what a loader yields are inputs, and which are targets.

    Args:
        where: what is read, for messages: "`train` of `pictures`".
        inputs: one key, or several, which a network then takes as keywords; what is no target if
            `None`, the first of a tuple.
        targets: one key, or several by the names they get; those objectives ask for if `None`.
        wanted: the targets that objectives ask for.
        tasks: how many of these are compared with, the first ones.

    >>> fields = Fields("`train`", None, None, ("label", "weight"), 1)
    >>> sorted(fields.batch((torch.zeros(2, 3), torch.ones(2))).targets)
    ['label']
    """

    where: str
    inputs: Keys | None
    targets: Keys | None
    wanted: tuple[str, ...]
    tasks: int

    def batch(self, found: object) -> Batch:
        """What was yielded as a batch."""
        if isinstance(found, Batch):
            return found
        parts = self._parts(found)
        targets = self._targets(parts)
        taken = {id(parts[key]) for key in targets.values()}
        inputs = self._inputs(parts, taken)
        named = {name: self._tensor(parts[key], key) for name, key in targets.items()}
        batch = Batch(
            self._tensor(parts[inputs], inputs)
            if isinstance(inputs, str | int)
            else {name: self._tensor(parts[key], key) for name, key in inputs.items()},
            named,
        )
        self._check_lengths(batch)
        return batch

    def _parts(self, found: object) -> dict[Key, Any]:
        """Everything that was yielded, by its name or place."""
        if isinstance(found, tuple) and hasattr(found, "_asdict"):  # a named tuple
            found = found._asdict()
        if is_dataclass(found) and not isinstance(found, type):
            own: dict[Any, Any] = vars(found)
            return dict(own)
        if isinstance(found, Mapping):
            return dict(found)
        if isinstance(found, list | tuple):
            parts = dict[Key, Any](enumerate(found))
            if len(parts) == 2 and isinstance(parts[1], Mapping):  # inputs, targets by name
                return {0: parts[0], **parts[1]}
            return parts
        raise DataError(
            f"{self.where} must yield pairs, mappings or dataclasses of tensors, found "
            f"{type(found).__name__}: yield `(inputs, target)` or a mapping"
        )

    def _targets(self, parts: Mapping[Key, Any]) -> dict[str, Key]:
        """The keys of the targets, by the names that objectives know them by."""
        if self.targets is not None:
            one = self.wanted[0] if isinstance(self.targets, int) else None
            return self._known(self.targets, parts, "targets", one)
        named = {name: name for name in self.wanted if name in parts}
        if named:
            return dict[str, Key](named)
        own = self.wanted[: self.tasks]
        if 0 in parts and len(parts) == 1 + len(own):  # (inputs, target, ...) in their order
            return dict(zip(own, range(1, len(parts)), strict=True))
        raise ConfigurationError(
            f"the objectives compare with {_listed(own)}, and {self.where} yields "
            f"{_listed(parts)}: say with `targets` which of these they are, such as "
            f"targets={{{own[0]!r}: {list(parts)[-1]!r}}}"
        )

    def _inputs(self, parts: Mapping[Key, Any], taken: set[int]) -> Key | dict[str, Key]:
        """The key of the inputs, or the keys of several."""
        if isinstance(self.inputs, str | int):
            self._known(self.inputs, parts, "inputs", "")
            return self.inputs
        if self.inputs is not None:
            return self._known(self.inputs, parts, "inputs", None)
        if 0 in parts:
            return 0
        left = [key for key, part in parts.items() if id(part) not in taken]
        if len(left) == 1:
            return left[0]
        raise ConfigurationError(
            f"{self.where} yields {_listed(parts)}: say with `inputs` which of these the network "
            "takes, one name or several"
        )

    def _known(
        self, keys: Keys, parts: Mapping[Key, Any], what: str, one: str | None
    ) -> dict[str, Key]:
        """Keys by name, all of which were yielded."""
        if isinstance(keys, str | int):
            named: dict[str, Key] = {str(keys) if one is None else one: keys}
        elif isinstance(keys, Mapping):
            named = dict(keys)
        else:
            named = {str(key): key for key in keys}
        for key in named.values():
            if key not in parts:
                names = [str(part) for part in parts]
                raise unknown(f"key in `{what}` of what {self.where} yields", str(key), names)
        return named

    def _tensor(self, part: object, key: Key) -> Tensor:
        if isinstance(part, Tensor):
            return part
        refusal = DataError(
            f"{self.where} must yield tensors, found {type(part).__name__} in `{key}`: convert it "
            'in the dataset (`with_format("torch")` of Hugging Face\'s) or in `collate`'
        )
        if _of_tensors(part):  # torch collates lists by their places, not by samples
            raise refusal
        try:
            return torch.as_tensor(part)
        except (TypeError, ValueError, RuntimeError) as error:
            raise refusal from error

    def _check_lengths(self, batch: Batch) -> None:
        inputs = batch.inputs if isinstance(batch.inputs, Mapping) else {"inputs": batch.inputs}
        parts = {**inputs, **{f"target {name}": part for name, part in batch.targets.items()}}
        shapes = {name: tuple(part.shape) for name, part in parts.items()}
        if not all(shapes.values()) or len({shape[0] for shape in shapes.values()}) > 1:
            told = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
            raise DataError(
                f"{self.where} must yield batches whose parts have the same first axis (the "
                f"samples), found {told}"
            )


def _of_tensors(part: object) -> bool:
    while isinstance(part, list | tuple) and part:
        part = part[0]
    return isinstance(part, Tensor)


def _listed(names: Mapping[Key, Any] | Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


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
