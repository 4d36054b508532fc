"""An epoch as a Python loop over steps."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor

from paretocosmos.training.engine.batch_source import Feed, all_given
from paretocosmos.training.engine.optimizer import Optimizer
from paretocosmos.training.engine.step import Step
from paretocosmos.training.engine.tracing import Recorded
from paretocosmos.types import Batch


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


class Stepwise:
    """Runs an epoch step by step; the step itself may be eager or recorded."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def prepare(self, order: Tensor, rays: Tensor) -> None:
        """Make whatever the epoch will need, so that it is not counted as training."""
        work, step = self._work, self._work.step
        if not isinstance(step, Recorded):
            return
        pieces = distinct(work, order, rays)
        others: list[tuple[Tensor, Tensor]] = []
        if work.from_outside:  # other samples of the same sizes, and rays turned round
            others = distinct(work, order.flip(-1), rays.flip(-1))
        every = all_given(work.feed, [index for index, _ in (*pieces, *others)])
        with work.rolled_back():
            for given, (_, ray) in zip(every[: len(pieces)], pieces, strict=True):
                step(work.parameters, work.feed.batch_at(given), ray, work.state)
            for given, (_, ray) in zip(every[len(pieces) :], others, strict=True):
                step.confirm(work.parameters, work.feed.batch_at(given), ray, work.state)

    def epoch(self, order: Tensor, rays: Tensor) -> Tensor:
        """Samples in order and rays to the losses ``[steps, ..., G, J]``, still on the device."""
        work, pieces = self._work, [*self._work.batches(order, rays)]
        losses = []
        with closing(work.feed.run([index for index, _ in pieces])) as every:
            for given, (_, ray) in zip(every, pieces, strict=True):
                losses.append(work.advance(work.feed.batch_at(given), ray))
        return torch.stack(losses)

    @property
    def name(self) -> str:
        """How steps are run, for the record."""
        step = self._work.step
        return "eager" if not isinstance(step, Recorded) or step.failure else step.how

    @property
    def failure(self) -> str | None:
        """Why it is not run as it was meant to be."""
        step = self._work.step
        return step.failure if isinstance(step, Recorded) else None


def distinct(work: Work, order: Tensor, rays: Tensor) -> list[tuple[Tensor, Tensor]]:
    """The first batch of every size in an epoch: of the full size, and the short one."""
    found = {index.shape: (index, ray) for index, ray in reversed([*work.batches(order, rays)])}
    return list(found.values())
