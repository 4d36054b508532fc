"""Where the samples are: on which axis of a network's inputs, of what its blocks give, and outputs.

A ray belongs to a sample, so a block that is scaled by rays must know which of its axes counts the
samples. `_probe.py` finds out.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from paretocosmos.errors import ConfigurationError
from paretocosmos.types import Outputs, map_tensors

__all__ = [
    "ALONE",
    "FIRST",
    "Layout",
    "Lead",
    "ahead",
    "behind",
    "check_groups",
    "every_float",
    "every_tensor",
    "pick_rows",
]


class Lead(NamedTuple):
    """Where a tensor has its samples."""

    axis: int = 0
    inner: int = 0
    """The number of samples, where steps come before them on that axis, ``[T * B]``; else 0."""


FIRST = Lead()


class Layout(NamedTuple):
    """Where one call's samples are."""

    axis: int
    """Of the inputs."""
    blocks: tuple[Lead, ...]
    """Of what each listener gives."""
    outputs: tuple[Lead, ...]
    """Of each tensor that the network gives."""

    @property
    def plain(self) -> bool:
        """Whether samples come first in the inputs and in all outputs."""
        return self.axis == 0 and all(lead == FIRST for lead in self.outputs)


ALONE = None
"""Instead of a layout: samples influence one another, and every ray needs a call of its own."""


def ahead(tensor: Tensor, lead: Lead) -> Tensor:
    """A tensor with its samples first, sample by sample."""
    moved = tensor.movedim(lead.axis, 0)
    if lead.inner:
        moved = moved.unflatten(0, (-1, lead.inner)).transpose(0, 1).flatten(0, 1)
    return moved


def behind(tensor: Tensor, lead: Lead) -> Tensor:
    """The way back."""
    if lead.inner:
        tensor = tensor.unflatten(0, (lead.inner, -1)).transpose(0, 1).flatten(0, 1)
    return tensor.movedim(0, lead.axis)


def check_groups(samples: int, groups: int) -> None:
    """Refuse a batch that cannot be shared among that many rays."""
    if samples % groups:
        raise ConfigurationError(
            f"a batch of {samples} samples cannot be split among {groups} rays: use one ray, one "
            "per sample, or a number that divides the batch"
        )


def pick_rows(alone: Sequence[Outputs], leads: Sequence[Lead] | None) -> Outputs:
    """Of outputs under each of G rays, the share of the samples that belongs to it.

    Args:
        alone: outputs for all samples, once per ray.
        leads: where the samples are in each tensor; first if `None`.
    """
    groups = len(alone)
    known = iter(leads or ())

    def share(*outs: Tensor) -> Tensor:
        lead = next(known, FIRST) if outs[0].is_floating_point() else FIRST
        axis = lead.axis
        if outs[0].ndim <= axis or outs[0].shape[axis] % groups:
            raise ConfigurationError(
                f"outputs of shape {tuple(outs[0].shape)} cannot be divided among {groups} rays: "
                "call the model with one ray, or with a number of rays that divides its samples"
            )
        rows = outs[0].shape[axis] // groups
        return torch.cat([out.narrow(axis, at * rows, rows) for at, out in enumerate(outs)], axis)

    picked: Outputs = map_tensors(share, *alone)
    return picked


def every_tensor(inputs: object) -> Iterator[Tensor]:
    """The tensors among inputs, which may be packed in mappings and sequences."""
    if isinstance(inputs, Tensor):
        yield inputs
    elif isinstance(inputs, Mapping):
        yield from (one for part in inputs.values() for one in every_tensor(part))
    elif isinstance(inputs, list | tuple):
        yield from (one for part in inputs for one in every_tensor(part))


def every_float(given: object) -> Iterator[Tensor]:
    """The tensors of real numbers in what a module gives, in the order of `map_tensors`."""
    if isinstance(given, Tensor):
        if given.is_floating_point():
            yield given
    elif isinstance(given, Mapping):
        yield from (one for part in given.values() for one in every_float(part))
    elif isinstance(given, list | tuple):
        yield from (one for part in given for one in every_float(part))
    elif hasattr(given, "__dataclass_fields__"):
        yield from every_float(vars(given))
