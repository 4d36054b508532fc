"""One sample is changed, and what changes with it shows where the samples are.

Shapes do not say which axis counts the samples: torch's own sequence layers put time first, and a
batch of 8 sequences of 8 steps looks the same either way. Where the samples are is where something
changes, and nowhere else.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from paretocosmos.conditioning._batch import (
    ALONE,
    FIRST,
    Layout,
    Lead,
    every_float,
    every_tensor,
)
from paretocosmos.types import Inputs, Outputs, first, map_tensors

__all__ = ["layout_of", "quiet", "tells_apart"]

# A sample that was not changed gives the same numbers up to rounding, as a share of the largest.
ROUNDING = 1e-6


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


def tells_apart(inputs: Inputs) -> bool:
    """Whether samples differ, so that something can be learned from changing one."""
    changed = every_tensor(_changed(inputs, 0, 0))
    pairs = zip(every_tensor(inputs), changed, strict=True)
    return not all(torch.equal(one, other) for one, other in pairs)


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
        if one.ndim == 0:  # of all samples together, such as a loss that the network computes
            outputs.append(FIRST)
            continue
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
