"""What a training advances: parameters, moments, the method's state; and what it reads."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor

from paretocosmos.training.engine.feed import Feed
from paretocosmos.training.engine.optimizer import Optimizer
from paretocosmos.training.engine.step import Step
from paretocosmos.types import Batch

__all__ = ["Work"]


@dataclass
class Work:
    """A step and all it reads and changes, for one seed or several stacked along a first axis.

    Attributes:
        step: the pure step, as an engine runs it.
        parameters: by name, changed in place by the optimizer.
        optimizer: how they are updated.
        state: the method's, changed in place.
        feed: where batches come from, the same for all seeds.
        batch_size: samples per step and seed.
        groups: rays per batch.
        buffers: what else a network may change as it goes.
        from_outside: what the step calls that is neither this package's nor torch's.
    """

    step: Step
    parameters: dict[str, Tensor]
    optimizer: Optimizer
    state: dict[str, Tensor]
    feed: Feed
    batch_size: int
    groups: int
    buffers: list[Tensor] = field(default_factory=list)
    from_outside: list[object] = field(default_factory=list)

    def batches(self, order: Tensor, rays: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """An epoch's order ``[..., samples]`` and rays ``[..., steps * G, J]``, step by step.

        The last short batch is kept; it loses at most G - 1 samples, other ones in every epoch.
        """
        pieces = zip(
            order.split(self.batch_size, dim=-1), rays.split(self.groups, dim=-2), strict=True
        )
        for index, ray in pieces:
            usable = index.shape[-1] // self.groups * self.groups
            if usable:
                yield index[..., :usable], ray

    def advance(self, batch: Batch, rays: Tensor) -> Tensor:
        """One step on samples ``[..., B]`` and rays ``[..., G, J]``; its losses ``[..., G, J]``."""
        losses, gradients, after = self.step(self.parameters, batch, rays, self.state)
        self.optimizer.update(gradients)
        for name, value in after.items():
            if value is not self.state[name]:
                # a kernel, where `copy_` would be a transfer, for which a CUDA graph waits longer
                torch.mul(value, 1, out=self.state[name])
        return losses

    @contextmanager
    def rolled_back(self) -> Iterator[None]:
        """Whatever is done inside is taken back: trials of an engine must not train."""
        device = next(iter(self.parameters.values())).device
        devices = [device] if device.type == "cuda" else []
        live = [*self.optimizer.tensors(), *self.state.values(), *self.buffers]
        before = [tensor.clone() for tensor in live]
        outside = [vars(thing) for thing in self.from_outside if hasattr(thing, "__dict__")]
        kept = [dict(attributes) for attributes in outside]
        try:
            with torch.random.fork_rng(devices=devices):
                yield
        finally:
            with torch.no_grad():
                for tensor, value in zip(live, before, strict=True):
                    tensor.copy_(value)
            for attributes, own in zip(outside, kept, strict=True):  # what Python counted
                attributes.clear()
                attributes.update(own)
