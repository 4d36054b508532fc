"""Turn the items of a loader into batches, and check batches before a network sees them."""

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
AUXILIARY = ("weight", "sensitive")


def list_targets(objectives: Sequence[Objective]) -> tuple[str, ...]:
    """Return the names of the targets that objectives compare with, then of the auxiliary ones."""
    compared = [objective.target for objective in objectives]
    # an objective may use other names for its weights or groups
    settings = (getattr(o, name, None) for o in objectives for name in AUXILIARY)
    auxiliary = [name for name in settings if isinstance(name, str)]
    return tuple(dict.fromkeys([*compared, *auxiliary, *AUXILIARY]))


@dataclass(frozen=True)
class Fields:
    """The inputs and the targets among the parts of an item that a loader yields.

    Args:
        where: the source, for messages: "`train` of `pictures`".
        inputs: one key, or several, which a network then takes as keywords; if `None`, the first
            part of a tuple, or the one that is no target.
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

    def batch(self, item: object) -> Batch:
        """Convert an item to a batch."""
        # a dataset may make batches of its own
        if isinstance(item, Batch):
            return item
        parts = self._split_item(item)
        targets = self._find_targets(parts)
        # by identity: the same tensor may be in an item under two names
        target_ids = {id(parts[key]) for key in targets.values()}
        inputs = self._find_inputs(parts, target_ids)
        batch = Batch(
            self._to_tensor(parts[inputs], inputs)
            if isinstance(inputs, str | int)
            else {name: self._to_tensor(parts[key], key) for name, key in inputs.items()},
            {name: self._to_tensor(parts[key], key) for name, key in targets.items()},
        )
        self._check_lengths(batch)
        return batch

    def _split_item(self, item: object) -> dict[Key, Any]:
        """Return the parts of an item, by name or position."""
        if isinstance(item, tuple) and hasattr(item, "_asdict"):  # a named tuple
            item = item._asdict()
        if is_dataclass(item) and not isinstance(item, type):
            attributes: dict[Any, Any] = vars(item)
            return dict(attributes)
        if isinstance(item, Mapping):
            return dict(item)
        if isinstance(item, list | tuple):
            parts = dict[Key, Any](enumerate(item))
            if len(parts) == 2 and isinstance(parts[1], Mapping):  # inputs, targets by name
                return {0: parts[0], **parts[1]}
            return parts
        raise DataError(
            f"{self.where} must yield pairs, mappings or dataclasses of tensors, found "
            f"{type(item).__name__}: yield `(inputs, target)` or a mapping"
        )

    def _find_targets(self, parts: Mapping[Key, Any]) -> dict[str, Key]:
        """Return the keys of the targets, by their names in objectives."""
        if self.targets is not None:
            # a position is no name, so the target takes the one that the objectives use
            only_name = self.wanted[0] if isinstance(self.targets, int) else None
            return self._name_keys(self.targets, parts, "targets", only_name)
        named = {name: name for name in self.wanted if name in parts}
        if named:
            return dict[str, Key](named)
        compared = self.wanted[: self.tasks]
        if 0 in parts and len(parts) == 1 + len(compared):  # (inputs, target, ...) in their order
            return dict(zip(compared, range(1, len(parts)), strict=True))
        raise ConfigurationError(
            f"the objectives need the targets {_quote(compared)}, but {self.where} yields "
            f"{_quote(parts)}: say with `targets` which of these they are, such as "
            f"targets={{{compared[0]!r}: {list(parts)[-1]!r}}}"
        )

    def _find_inputs(self, parts: Mapping[Key, Any], target_ids: set[int]) -> Key | dict[str, Key]:
        """Return the key of the inputs, or the keys of several."""
        if self.inputs is not None:
            keys = self._name_keys(self.inputs, parts, "inputs", None)
            return self.inputs if isinstance(self.inputs, str | int) else keys
        if 0 in parts:
            return 0
        rest = [key for key, value in parts.items() if id(value) not in target_ids]
        if len(rest) == 1:
            return rest[0]
        raise ConfigurationError(
            f"{self.where} yields {_quote(parts)}, and it is not clear which of these the network "
            "takes: name one or several with `inputs`"
        )

    def _name_keys(
        self, keys: Keys, parts: Mapping[Key, Any], setting: str, only_name: str | None
    ) -> dict[str, Key]:
        """Return keys by name; raise if one of them was not yielded."""
        if isinstance(keys, str | int):
            named: dict[str, Key] = {str(keys) if only_name is None else only_name: keys}
        elif isinstance(keys, Mapping):
            named = dict(keys)
        else:
            named = {str(key): key for key in keys}
        for key in named.values():
            if key not in parts:
                names = [str(name) for name in parts]
                raise unknown(f"key in `{setting}` of what {self.where} yields", str(key), names)
        return named

    def _to_tensor(self, value: object, key: Key) -> Tensor:
        if isinstance(value, Tensor):
            return value
        # one message for both ways to fail
        refusal = DataError(
            f"{self.where} must yield tensors, found {type(value).__name__} in `{key}`: convert it "
            'in the dataset (`with_format("torch")` of Hugging Face\'s) or in `collate`'
        )
        innermost = value
        while isinstance(innermost, list | tuple) and innermost:
            innermost = innermost[0]
        if isinstance(innermost, Tensor):  # torch collates lists by their places, not by samples
            raise refusal
        try:
            return torch.as_tensor(value)
        except (TypeError, ValueError, RuntimeError) as error:
            raise refusal from error

    def _check_lengths(self, batch: Batch) -> None:
        inputs = batch.inputs if isinstance(batch.inputs, Mapping) else {"inputs": batch.inputs}
        parts = {**inputs, **{f"target {name}": tensor for name, tensor in batch.targets.items()}}
        shapes = {name: tuple(tensor.shape) for name, tensor in parts.items()}
        # an empty shape is that of a number, which has no axis of samples
        if not all(shapes.values()) or len({shape[0] for shape in shapes.values()}) > 1:
            described = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
            raise DataError(
                f"{self.where} must yield batches whose parts have the same first axis (the "
                f"samples), found {described}"
            )


def _quote(names: Mapping[Key, Any] | Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


LabelRange = tuple[int, int | None]
"""The number of classes of a head, and the label that means there is none."""

TARGET = "target "
"""The prefix of the names of targets among those of inputs."""


class BatchChecks:
    """Checks of batches on the CPU, before a network sees them.

    All batches must be like the first, without NaN, and with labels among the classes.

    Args:
        where: the source, for messages.
        objectives: those that are trained or scored on the batches.
        labels: the range of each target that is classes.
    """

    def __init__(
        self,
        where: str,
        objectives: Sequence[Objective],
        labels: Mapping[str, LabelRange],
    ) -> None:
        self._where, self._labels = where, labels
        # NaN is allowed where it stands for a missing target
        self._may_lack = {goal.target for goal in objectives if goal.missing is not None}
        self._first: dict[str, tuple[torch.dtype, torch.Size]] | None = None
        self._difference: str | None = None  # of the sizes of the last batch from the first

    def check(self, batch: Batch, number: int | None = None) -> dict[str, Tensor]:
        """Check a batch and return its parts by their names.

        Args:
            batch: on the CPU.
            number: from 1; `None` for all samples as one.
        """
        title = self._where if number is None else f"batch {number} of {self._where}"
        parts = _name_tensors("inputs", batch.inputs) | _name_tensors(TARGET, batch.targets)
        self._check_shapes(parts, title)
        self._check_numbers(parts, title)
        return parts

    @contextmanager
    def explain_errors(self) -> Iterator[None]:
        """Explain errors inside by the sizes of the batch, if they differ from the first."""
        try:
            yield
        except (RuntimeError, ValueError, IndexError) as error:
            if self._difference is None or isinstance(error, ParetoCosmosError):
                raise
            raise DataError(
                f"{self._difference}, and the network cannot take it ({one_line(error)}): make all "
                "batches alike in the dataset or `collate`"
            ) from error

    def _check_shapes(self, parts: Mapping[str, Tensor], title: str) -> None:
        shapes = {name: (tensor.dtype, tensor.shape[1:]) for name, tensor in parts.items()}
        # of this batch alone: its errors have nothing to do with the sizes of earlier ones
        self._difference = None
        if self._first is None or shapes == self._first:
            self._first = self._first or shapes
            return
        self._difference = (
            f"{title} has {_describe(shapes)}, where the first had {_describe(self._first)}"
        )
        # other sizes are left to the network, which may take them; other types are a mistake
        kinds, first_kinds = (
            {name: (dtype, len(shape)) for name, (dtype, shape) in described.items()}
            for described in (shapes, self._first)
        )
        if kinds != first_kinds:
            raise DataError(
                f"{self._difference}: all batches must have the same parts, of the same types"
            )

    def _check_numbers(self, parts: Mapping[str, Tensor], title: str) -> None:
        for name, tensor in parts.items():
            is_target = name.startswith(TARGET)
            target = name.removeprefix(TARGET).rpartition("/")[2] if is_target else None
            # a sum is not a number if a summand is not
            counts = tensor.is_floating_point() and target not in self._may_lack
            if counts and bool(tensor.sum().isnan()):
                way_out = "; or set ignore_nan=True on the objective" if is_target else ""
                raise DataError(f"{title} has NaN in its {name}: fix the data{way_out}")
            if target is not None and target in self._labels:
                check_labels(tensor, self._labels[target], f"`{target}`", title)


def get_label_range(objective: Objective, outputs: Outputs, targets: Targets) -> LabelRange | None:
    """Return the labels an objective may have, by the outputs of the network; `None` if any."""
    if not isinstance(objective, CrossEntropy):
        return None
    return objective.classes(outputs, targets), objective.ignore_index


def check_labels(labels: Tensor, allowed: LabelRange, target: str, where: str) -> None:
    """Raise for labels beyond the classes, which are fatal in a kernel of a GPU."""
    classes, ignored = allowed
    # 0 is a valid class, so that the label for "missing" passes
    if ignored is not None:
        labels = torch.where(labels == ignored, 0, labels)
    low, high = int(labels.min()), int(labels.max())
    if low < 0 or high >= classes:
        raise DataError(
            f"the labels of {target} must be 0 to {classes - 1}, one for each class of the head; "
            f"found {low if low < 0 else high} in {where}"
            + ("" if low >= 0 else f": if it marks a missing label, set ignore_index={low}")
        )


def _name_tensors(name: str, value: Tensor | Mapping[str, Any]) -> dict[str, Tensor]:
    """Return the tensors of nested mappings by their paths."""
    if isinstance(value, Tensor):
        return {name: value}
    tensors: dict[str, Tensor] = {}
    for key, inner in value.items():
        tensors |= _name_tensors(f"{name}{'' if name == TARGET else '/'}{key}", inner)
    return tensors


def _describe(parts: Mapping[str, tuple[torch.dtype, torch.Size]]) -> str:
    return ", ".join(
        f"{name} {tuple(shape)} {str(dtype).removeprefix('torch.')}"
        for name, (dtype, shape) in parts.items()
    )
