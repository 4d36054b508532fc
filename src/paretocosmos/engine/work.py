"""What a training advances: parameters, moments, the method's state, and the data it reads."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor

from paretocosmos.distributed import ALONE, Processes
from paretocosmos.engine.adam import Adam
from paretocosmos.engine.step import Step
from paretocosmos.types import Batch, each

__all__ = ["Work"]


@dataclass
class Work:
    """A step and all it reads and changes, for one seed or several stacked along a first axis.

    Attributes:
        step: the pure step, as an engine runs it.
        parameters: by name, changed in place by `adam`.
        adam: the optimiser.
        state: the method's, changed in place.
        data: the whole training split, on the device, the same for all seeds.
        batch_size: samples per step and seed.
        groups: rays per batch.
        buffers: what else a network may change as it goes.
        accumulate: micro-batches in a step.
        processes: those that share the steps.
    """

    step: Step
    parameters: dict[str, Tensor]
    adam: Adam
    state: dict[str, Tensor]
    data: Batch
    batch_size: int
    groups: int
    buffers: list[Tensor] = field(default_factory=list)
    accumulate: int = 1
    processes: Processes = ALONE

    def __post_init__(self) -> None:
        # targets of one kind lie side by side: however many tasks, a batch is gathered once
        kinds: dict[object, list[str]] = {}
        for name, target in self.data.targets.items():
            kinds.setdefault((target.dtype, target.shape), []).append(name)
        self._joined = [
            (names, torch.stack([self.data.targets[name] for name in names], dim=1))
            for names in kinds.values()
        ]

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

    def look(self, index: Tensor) -> Batch:
        """Samples by their index ``[..., B]``: the inputs of this process's share, all targets."""
        mine = index
        if self.processes.count > 1:
            parts = index.chunk(self.accumulate, dim=-1)
            mine = torch.cat([p[self.processes.share(len(p))] for p in parts])

        def take(part: Tensor, index: Tensor) -> Tensor:
            taken = part.index_select(0, index.flatten())
            return taken if index.ndim == 1 else taken.unflatten(0, index.shape)

        targets: dict[str, Tensor] = {}
        for names, joined in self._joined:
            targets |= dict(zip(names, take(joined, index).unbind(index.ndim), strict=True))
        return Batch(each(lambda part: take(part, mine), self.data.inputs), targets)

    def advance(self, index: Tensor, rays: Tensor) -> Tensor:
        """One step on samples ``[..., B]`` and rays ``[..., G, J]``; its losses ``[..., G, J]``."""
        losses, gradients, after = self.step(self.parameters, self.look(index), rays, self.state)
        self.adam.update(gradients)
        for name, value in after.items():
            if value is not self.state[name]:
                # a kernel, where `copy_` would be a transfer, for which a CUDA graph waits longer
                torch.mul(value, 1, out=self.state[name])
        return losses

    @contextmanager
    def rehearsing(self) -> Iterator[None]:
        """Whatever is done inside is taken back: trials of an engine must not train."""
        device = next(iter(self.parameters.values())).device
        devices = [device] if device.type == "cuda" else []
        live = [*self.adam.tensors(), *self.state.values(), *self.buffers]
        before = [tensor.clone() for tensor in live]
        try:
            with torch.random.fork_rng(devices=devices):
                yield
        finally:
            with torch.no_grad():
                for tensor, value in zip(live, before, strict=True):
                    tensor.copy_(value)
