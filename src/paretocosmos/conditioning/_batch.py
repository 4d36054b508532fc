"""Where the samples are: on which axis of a network's inputs, of what its blocks give, and outputs.

A ray belongs to a sample, so a block that is scaled by rays must know which of its axes counts the
samples. Shapes do not say: torch's own sequence layers put time first, and a batch of 8 sequences
of 8 steps looks the same either way. So it is tried out: one sample of the inputs is changed, and
where the samples are is where something changes, and nowhere else.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from paretocosmos.errors import ConfigurationError
from paretocosmos.types import Inputs, Outputs, first, map_tensors

__all__ = [
    "ALONE",
    "FIRST",
    "Layout",
    "Lead",
    "ahead",
    "behind",
    "check_groups",
    "every_float",
    "layout_of",
    "pick_rows",
    "quiet",
]

# A sample that was not changed gives the same numbers up to rounding, as a share of the largest.
ROUNDING = 1e-6


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


def layout_of(
    run: Callable[[Inputs], Outputs], listeners: Sequence[nn.Module], inputs: Inputs
) -> Layout | None:
    """Find out where the samples are; `ALONE` where they influence one another.

    The first sample is changed, then the last. Noise is added to real numbers; whole numbers, such
    as token ids, are taken from another sample.

    Args:
        run: the network under one ray, without randomness.
        listeners: the modules to look at.
        inputs: of a call.
    """
    if first(inputs).shape[0] == 1:
        inputs = map_tensors(
            lambda part: torch.cat([part, part]) if part.shape[:1] == (1,) else part, inputs
        )
    base = _Record(listeners)
    with base:
        base.outputs = tuple(every_float(run(inputs)))
    for axis in (0, 1):
        leading = first(inputs)
        if leading.ndim <= axis or leading.shape[axis] < 2:
            continue
        samples = leading.shape[axis]
        seen: list[_Record] = []
        for sample in (0, samples - 1):
            moved = _Record(listeners)
            with moved:
                moved.outputs = tuple(every_float(run(_changed(inputs, axis, sample))))
            seen.append(moved)
        layout = _joined(base, seen, axis, samples)
        if layout is not ALONE:
            return layout
    return ALONE


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
                f"outputs of shape {tuple(outs[0].shape)} cannot be shared among {groups} rays: "
                "call the model with one ray, or with a number of rays that divides its samples"
            )
        rows = outs[0].shape[axis] // groups
        return torch.cat([out.narrow(axis, at * rows, rows) for at, out in enumerate(outs)], axis)

    picked: Outputs = map_tensors(share, *alone)
    return picked


@contextmanager
def quiet(network: nn.Module, inputs: Inputs) -> Iterator[None]:
    """Without gradients, dropout and updates of statistics; random numbers are drawn apart."""
    modes = {part: part.training for part in network.modules()}
    device = first(inputs).device
    try:
        for part in modes:
            part.training = False
        apart = torch.random.fork_rng([device] if device.type == "cuda" else [])
        with torch.no_grad(), apart, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # which the call itself will give
            yield
    finally:
        for part, training in modes.items():
            part.training = training


class _Record:
    """What listeners give during one call, every time they are called."""

    def __init__(self, listeners: Sequence[nn.Module]) -> None:
        self.blocks: list[list[Tensor]] = [[] for _ in listeners]
        self.outputs: tuple[Tensor, ...] = ()
        self._listeners = listeners
        self._handles: list[Any] = []

    def __enter__(self) -> None:
        torch.manual_seed(0)  # of numbers drawn apart
        for listener, kept in zip(self._listeners, self.blocks, strict=True):

            def keep(_: Any, __: Any, given: Any, kept: list[Tensor] = kept) -> None:
                kept.append(next(every_float(given)))

            self._handles.append(listener.register_forward_hook(keep))

    def __exit__(self, *_: object) -> None:
        for handle in self._handles:
            handle.remove()


def _changed(inputs: Inputs, axis: int, sample: int) -> Inputs:
    """Inputs with another sample in the place of one."""
    samples = first(inputs).shape[axis]

    def change(part: Tensor) -> Tensor:
        if part.ndim <= axis or part.shape[axis] != samples:
            return part
        changed = part.clone()
        other = part.select(axis, samples - 1 - sample)
        if part.is_floating_point():
            noise = torch.randn(other.shape, device=other.device).to(other.dtype)
            other = other + 0.5 * noise
        changed.select(axis, sample).copy_(other)
        return changed

    different: Inputs = map_tensors(change, inputs)
    return different


def _joined(base: _Record, seen: Sequence[_Record], axis: int, samples: int) -> Layout | None:
    blocks: list[Lead] = []
    for at, given in enumerate(base.blocks):
        others = [moved.blocks[at] for moved in seen]
        if {len(other) for other in others} != {len(given)}:
            return ALONE
        leads = {
            _lead(one, [other[call] for other in others], samples) for call, one in enumerate(given)
        }
        if None in leads or len(leads) > 1:
            return ALONE
        blocks.append(next((lead for lead in leads if lead is not None), FIRST))
    outputs: list[Lead] = []
    for at, one in enumerate(base.outputs):
        if any(len(moved.outputs) != len(base.outputs) for moved in seen):
            return ALONE
        lead = _lead(one, [moved.outputs[at] for moved in seen], samples)
        if lead is None and _still(one, [moved.outputs[at] for moved in seen]):
            lead = FIRST if one.shape[:1] == (samples,) else None  # as a head of zeros gives
        if lead is None:
            return ALONE
        outputs.append(lead)
    return Layout(axis, tuple(blocks), tuple(outputs)) if outputs else ALONE


def _lead(base: Tensor, moved: Sequence[Tensor], samples: int) -> Lead | None:
    """On which axis a tensor moved at the first sample alone, and then at the last alone."""
    if any(one.shape != base.shape for one in moved) or base.numel() == 0:
        return None
    bound = ROUNDING * base.abs().nan_to_num(0, 0, 0).max()
    found: list[Lead] = []
    differ = [(one != base) & ~((one - base).abs() <= bound) for one in moved]
    for axis, size in enumerate(base.shape):
        if size % samples:
            continue
        others = [at for at in range(base.ndim) if at != axis]
        rows = [change.any(dim=others) if others else change for change in differ]
        steps = size // samples
        for lead in (Lead(axis), Lead(axis, samples))[: 1 + (steps > 1)]:
            shape = (steps, samples) if lead.inner else (samples, steps)
            owned = [row.reshape(shape).any(dim=0 if lead.inner else 1) for row in rows]
            ends = [torch.arange(samples, device=base.device) == at for at in (0, samples - 1)]
            if all(torch.equal(one, end) for one, end in zip(owned, ends, strict=True)):
                found.append(lead)
    return found[0] if len(found) == 1 else None


def _still(base: Tensor, moved: Sequence[Tensor]) -> bool:
    return all(torch.equal(one, base) for one in moved)


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
