"""The few types that every subpackage shares.

Shape words: B batch, G rays in a batch, J objectives, N rays, P parameters, S seeds.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, is_dataclass
from functools import partial
from typing import Any, Literal

from torch import Tensor

# Also networks with several inputs, as transformers have: token ids, attention mask, ...
Inputs = Tensor | Mapping[str, Tensor]
"""A network's inputs: one tensor, or a mapping passed on as keywords; first axis B."""

Outputs = Tensor | Mapping[str, Tensor]
"""A network's outputs: one tensor, or one per head; first axis B."""

Targets = Mapping[str, Tensor]
"""The columns that objectives compare with: ``label``, ``sensitive``, ...; first axis B."""

Metric = Callable[[Outputs, Targets], Tensor]
"""A pure function of outputs and targets to one number; reported, never trained on."""


Unit = Literal["", "of 100", "points"]
"""The unit of a number for people: shares and their differences are in hundredths."""


@dataclass(frozen=True)
class Measure:
    """A number described in plain words.

    Attributes:
        label: what it is, a noun: "wrong answers".
        goal: what one wants of it: "fewer wrong answers"; a lower or a higher one if left out.
        meaning: one sentence.
        unit: ``"of 100"`` for a share, ``"points"`` for a difference of shares, both in hundredths;
            none for a loss, or for what is in the unit of what is predicted.
        larger: whether more of it is better.

    >>> Measure("wrong answers", unit="of 100").said(0.143)
    '14.3 of 100'
    """

    label: str
    goal: str = ""
    meaning: str = ""
    unit: Unit = ""
    larger: bool = False

    @property
    def wish(self) -> str:
        """The goal in words; a lower or a higher value if none was given."""
        return self.goal or f"{'higher' if self.larger else 'lower'} {self.label}"

    def said(self, value: float) -> str:
        """Format a value with its unit."""
        if math.isnan(value):  # as of a group that is missing in the data
            return "not known"
        return f"{100 * value:.1f} {self.unit}" if self.unit else f"{value:.4g}"

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain text, ready for JSON."""
        return {**dataclasses.asdict(self), "goal": self.wish}


@dataclass(frozen=True)
class Batch:
    """Inputs and the targets that belong to them, sample by sample.

    >>> import torch
    >>> batch = Batch(torch.zeros(4, 3), {"label": torch.ones(4)})
    >>> batch.inputs.shape, batch.targets["label"].sum()
    (torch.Size([4, 3]), tensor(4.))
    """

    inputs: Inputs
    targets: Targets

    def __len__(self) -> int:
        return first(self.inputs).shape[0]


def map_tensors(function: Callable[..., Tensor], *tensors: Any, keep_classes: bool = False) -> Any:
    """Apply a function to tensors, or name by name to mappings of them.

    Outputs of a user's own network may be packed otherwise: tuples stay tuples, and dataclasses
    become mappings, which torch can map over, unless `keep_classes`. A value that is no tensor is
    taken from the first of the structures.

    >>> import torch
    >>> map_tensors(torch.neg, {"a": torch.tensor(1.0)})
    {'a': tensor(-1.)}
    """
    lead = tensors[0]  # the others have its structure
    apply = partial(map_tensors, function, keep_classes=keep_classes)
    if isinstance(lead, Tensor):
        return function(*tensors)
    if keep_classes and is_dataclass(lead):  # an output of `transformers` is a mapping too
        names = [field.name for field in dataclasses.fields(lead) if field.init]
        values = {name: apply(*(getattr(t, name) for t in tensors)) for name in names}
        return dataclasses.replace(lead, **values)  # type: ignore[type-var]
    if isinstance(lead, Mapping):
        # by name: the mappings may be in different orders
        return {name: apply(*(t[name] for t in tensors)) for name in lead}
    if isinstance(lead, list | tuple):
        items = (apply(*entries) for entries in zip(*tensors, strict=True))
        return lead._make(items) if keep_classes and hasattr(lead, "_make") else tuple(items)
    if is_dataclass(lead):
        # not `dataclasses.asdict`, which would copy every tensor
        return apply(*(vars(instance) for instance in tensors))
    return lead


def list_tensors(*values: Any) -> list[Tensor]:
    """Return all tensors of some structures, in order.

    >>> import torch
    >>> [len(tensor) for tensor in list_tensors({"a": torch.ones(1)}, (torch.ones(2),))]
    [1, 2]
    """
    tensors: list[Tensor] = []

    def add(tensor: Tensor) -> Tensor:
        tensors.append(tensor)
        return tensor

    map_tensors(add, values)
    return tensors


def first(tensors: Any) -> Tensor:
    """Return the tensor, or the first of a mapping or tuple: for its length or device."""
    if isinstance(tensors, Tensor):
        return tensors
    values = tensors.values() if isinstance(tensors, Mapping) else tensors
    # there may be other values, such as a network's `None`
    return next(first(v) for v in values if isinstance(v, Tensor | Mapping | list | tuple))
