"""The few types every room shares.

Shape words: B batch, G ray groups in a batch, J objectives, N rays, P parameters, S seeds.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

__all__ = ["Batch", "Inputs", "Metric", "Outputs", "Targets", "each", "first"]

Inputs = Tensor | Mapping[str, Tensor]
"""What a network eats: one tensor, or a mapping passed on as keywords; first axis B."""

Outputs = Tensor | Mapping[str, Tensor]
"""What a network gives: one tensor, or one per head; first axis B."""

Targets = Mapping[str, Tensor]
"""What objectives compare with: ``label``, ``sensitive``, ``weight``, ...; first axis B."""

Metric = Callable[[Outputs, Targets], Tensor]
"""A pure function of outputs and targets that gives one number; reported, never trained on."""


@dataclass(frozen=True)
class Batch:
    """Inputs and the targets that belong to them, sample by sample."""

    inputs: Inputs
    targets: Targets

    def __len__(self) -> int:
        return first(self.inputs).shape[0]


def each(function: Callable[..., Tensor], *tensors: Tensor | Mapping[str, Tensor]) -> Any:
    """Apply a function to tensors, or name by name to mappings of them.

    >>> import torch
    >>> each(torch.neg, {"a": torch.tensor(1.0)})
    {'a': tensor(-1.)}
    """
    if isinstance(tensors[0], Tensor):
        return function(*tensors)
    return {name: function(*(part[name] for part in tensors)) for name in tensors[0]}  # type: ignore[index]


def first(tensors: Tensor | Mapping[str, Tensor]) -> Tensor:
    """The tensor, or the first of a mapping: for its length or device."""
    return tensors if isinstance(tensors, Tensor) else next(iter(tensors.values()))
