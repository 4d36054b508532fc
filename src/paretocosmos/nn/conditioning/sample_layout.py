"""Where samples are: on which axis of inputs, of what layers give, and of outputs.

A ray belongs to a sample, so a layer that is scaled by rays must know which of its axes counts the
samples. `probing.py` finds out.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from paretocosmos.errors import ConfigurationError
from paretocosmos.runtime.torch_private import (
    in_backward_pass,
    is_dispatch_watched,
    is_functorch_wrapped,
)
from paretocosmos.types import Outputs, map_tensors

Batching = Literal["groups", "each"]
"""How rays meet samples: G groups of neighbouring samples, one ray each, or every sample under
every ray, ``[N * B, ...]`` out."""


class SampleAxis(NamedTuple):
    """The axis of a tensor that counts samples."""

    axis: int = 0
    inner: int = 0
    """The number of samples, where steps come before them on that axis, ``[T * B]``; else 0."""


FIRST = SampleAxis()


class Layout(NamedTuple):
    """Where the samples of one call are."""

    axis: int
    """Of the inputs."""
    blocks: tuple[SampleAxis, ...]
    """Of what each conditioned layer gives."""
    outputs: tuple[SampleAxis, ...]
    """Of each tensor that the network gives."""

    @property
    def samples_first(self) -> bool:
        """True if samples come first in the inputs and in all outputs."""
        return self.axis == 0 and all(axis == FIRST for axis in self.outputs)


INTERDEPENDENT = None
"""Instead of a layout: samples influence one another, and every ray needs a call of its own."""


def move_samples_first(tensor: Tensor, axis: SampleAxis) -> Tensor:
    """Bring the samples of a tensor to the first axis, steps of one sample side by side."""
    moved = tensor.movedim(axis.axis, 0)
    if axis.inner:  # [T * B, ...] -> [T, B, ...] -> [B, T, ...] -> [B * T, ...]
        moved = moved.unflatten(0, (-1, axis.inner)).transpose(0, 1).flatten(0, 1)
    return moved


def move_samples_back(tensor: Tensor, axis: SampleAxis) -> Tensor:
    """Undo `move_samples_first`."""
    if axis.inner:
        tensor = tensor.unflatten(0, (axis.inner, -1)).transpose(0, 1).flatten(0, 1)
    return tensor.movedim(0, axis.axis)


def check_group_count(samples: int, groups: int) -> None:
    """Raise if a batch cannot be shared among that many rays."""
    if samples % groups:
        raise ConfigurationError(
            f"a batch of {samples} samples cannot be split among {groups} rays: use one ray, one "
            "per sample, or a number that divides the batch"
        )


def select_own_rows(alone: Sequence[Outputs], axes: Sequence[SampleAxis] | None) -> Outputs:
    """Take from the outputs under each of G rays the share of the samples that belongs to it.

    Args:
        alone: outputs for all samples, once per ray.
        axes: where the samples are in each tensor; first if `None`.
    """
    groups = len(alone)
    # `axes` lists floating-point tensors only, in the order in which `map_tensors` meets them
    remaining = iter(axes or ())

    def select(*outs: Tensor) -> Tensor:
        axis = (next(remaining, FIRST) if outs[0].is_floating_point() else FIRST).axis
        if outs[0].ndim <= axis or outs[0].shape[axis] % groups:
            raise ConfigurationError(
                f"outputs of shape {tuple(outs[0].shape)} cannot be divided among {groups} rays: "
                "call the model with one ray, or with a number of rays that divides its samples"
            )
        rows = outs[0].shape[axis] // groups
        return torch.cat([out.narrow(axis, i * rows, rows) for i, out in enumerate(outs)], axis)

    selected: Outputs = map_tensors(select, *alone, keep_classes=True)
    return selected


def join_outputs(shares: Sequence[Outputs]) -> Outputs:
    """Join outputs along their first axis."""
    joined: Outputs = map_tensors(lambda *outs: torch.cat(outs), *shares, keep_classes=True)
    return joined


def unflatten_rays(outputs: Outputs, rays: int) -> Outputs:
    """Bring outputs of every sample under every ray, ``[N * B, ...]``, to ``[N, B, ...]``."""
    by_ray: Outputs = map_tensors(
        lambda out: torch.unflatten(out, 0, (rays, -1)), outputs, keep_classes=True
    )
    return by_ray


def stack_outputs(alone: Iterable[Outputs]) -> Outputs:
    """Stack the outputs of one call per ray along a new first axis, ``[N, B, ...]``."""
    stacked: Outputs = map_tensors(lambda *outs: torch.stack(outs), *alone, keep_classes=True)
    return stacked


def can_probe(tensors: Sequence[Tensor]) -> bool:
    """Return True if a network may be run to look at its numbers: not while it is recorded."""
    return not (
        torch.compiler.is_compiling()
        or in_backward_pass()
        or is_dispatch_watched()
        or any(is_functorch_wrapped(tensor) for tensor in tensors)
        or any(type(tensor) not in (Tensor, nn.Parameter) for tensor in tensors)
        or (torch.cuda.is_available() and torch.cuda.is_current_stream_capturing())
    )


def list_tensors(nested: object) -> list[Tensor]:
    """Return the tensors in mappings, sequences and dataclasses, in the order of `map_tensors`."""
    if isinstance(nested, Tensor):
        return [nested]
    values: Iterable[object] = ()
    if isinstance(nested, Mapping):
        values = nested.values()
    elif isinstance(nested, list | tuple):
        values = nested
    elif hasattr(nested, "__dataclass_fields__"):
        values = vars(nested).values()
    return [tensor for value in values for tensor in list_tensors(value)]


def list_floats(nested: object) -> list[Tensor]:
    """Return the tensors of real numbers, as `list_tensors`."""
    return [tensor for tensor in list_tensors(nested) if tensor.is_floating_point()]


def add_terms(features: Tensor, terms: Tensor, batching: Batching) -> Tensor:
    """Add one term per ray to features: ``[B, ...] + [G or N, ...]``.

    ``"groups"`` gives every group of B/G neighbouring samples its ray's term, ``[B, ...]`` out;
    ``"each"`` gives every sample every ray's term, ``[N * B, ...]`` out.
    """
    # channels lie last in memory: added in that order, the terms' gradient, a sum over samples,
    # takes 0.2 instead of 3.5 ms (256 x 10 x 32 x 32, two CPU cores)
    channels_last = features.ndim == terms.ndim == 4 and features.stride(1) == 1
    if channels_last:
        features, terms = features.movedim(1, -1), terms.movedim(1, -1)
    while terms.ndim < features.ndim:  # one term for all steps of a sequence
        terms = terms.unsqueeze(1)
    samples, groups = features.shape[0], terms.shape[0]
    if batching == "each":
        added = (features.unsqueeze(0) + terms.unsqueeze(1)).flatten(0, 1)
    elif groups in (1, samples):
        added = features + terms
    else:  # a view, where repeating the terms once per sample would copy them
        grouped = torch.unflatten(features, 0, (groups, samples // groups))
        added = (grouped + terms.unsqueeze(1)).flatten(0, 1)
    return added.movedim(-1, 1) if channels_last else added
