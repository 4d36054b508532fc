"""An epoch as a Python loop over steps, and the state that the steps advance."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from paretocosmos.training.engine.batch_source import BatchSource, collect_handles
from paretocosmos.training.engine.optimizer import Optimizer
from paretocosmos.training.engine.step import Step
from paretocosmos.training.engine.tracing import TracedStep
from paretocosmos.types import Batch


@dataclass
class TrainState:
    """A step with all that it reads and changes, for one seed or several along a first axis.

    Attributes:
        step: the pure step, as an engine runs it.
        parameters: by name, changed in place by the optimizer.
        optimizer: how they are updated, and its moments.
        method_state: the method's and the losses' scales, changed in place.
        source: where batches come from, the same for all seeds.
        batch_size: samples per step and seed.
        rays_per_batch: rays per batch.
        buffers: what else a network may change during a step.
        third_party: what the step calls that is neither this package's nor torch's.
    """

    step: Step
    parameters: dict[str, Tensor]
    optimizer: Optimizer
    method_state: dict[str, Tensor]
    source: BatchSource
    batch_size: int
    rays_per_batch: int
    buffers: Sequence[Tensor] = ()
    third_party: Sequence[object] = ()

    def split_epoch(self, order: Tensor, rays: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Split an epoch's order ``[..., samples]`` and rays ``[..., steps * G, J]`` into steps.

        The last short batch is kept; it loses at most G - 1 samples, other ones in every epoch.
        """
        steps = []
        for index, ray in zip(
            order.split(self.batch_size, dim=-1),
            rays.split(self.rays_per_batch, dim=-2),
            strict=True,
        ):
            # groups must be of one size, since one vmap computes the losses of all
            usable = index.shape[-1] // self.rays_per_batch * self.rays_per_batch
            if usable:
                steps.append((index[..., :usable], ray))
        return steps

    def compute_step(self, batch: Batch, rays: Tensor) -> Tensor:
        """Take one step on samples ``[..., B]`` and rays ``[..., G, J]``.

        Returns:
            Its losses ``[..., G, J]``.
        """
        losses, gradients, method_state = self.step(self.parameters, batch, rays, self.method_state)
        self.optimizer.update(gradients)
        for name, value in method_state.items():
            if value is not self.method_state[name]:
                # a kernel, where `copy_` would be a transfer, for which a CUDA graph waits longer
                torch.mul(value, 1, out=self.method_state[name])
        return losses

    @contextmanager
    def rolled_back(self) -> Iterator[None]:
        """Undo on exit whatever is done inside: trials of an engine must not train."""
        device = next(iter(self.parameters.values())).device
        devices = [device] if device.type == "cuda" else []
        # `fork_rng` below puts back the generators, from which dropout draws
        live = [*self.optimizer.tensors(), *self.method_state.values(), *self.buffers]
        before = [tensor.clone() for tensor in live]
        attributes = [vars(thing) for thing in self.third_party if hasattr(thing, "__dict__")]
        copies = [dict(by_name) for by_name in attributes]
        try:
            with torch.random.fork_rng(devices=devices):
                yield
        finally:
            with torch.no_grad():
                # in place: views in the networks and captured graphs refer to these tensors
                for tensor, value in zip(live, before, strict=True):
                    tensor.copy_(value)
            for by_name, copy in zip(attributes, copies, strict=True):  # counters kept in Python
                by_name.clear()
                by_name.update(copy)


class EagerEngine:
    """Runs an epoch step by step; the step itself may be eager or traced."""

    def __init__(self, state: TrainState) -> None:
        self._state = state

    def prepare(self, order: Tensor, rays: Tensor) -> None:
        """Trace what the epoch needs, so that it is not counted as training."""
        state, step = self._state, self._state.step
        if not isinstance(step, TracedStep):
            return
        pieces = find_batch_sizes(state, order, rays)
        checks: list[tuple[Tensor, Tensor]] = []
        if state.third_party:  # other samples of the same sizes, and rays in reverse
            checks = find_batch_sizes(state, order.flip(-1), rays.flip(-1))
        handles = collect_handles(state.source, [index for index, _ in (*pieces, *checks)])
        arguments = [
            (
                state.parameters,
                state.source.batch_at(handle),
                ray,
                state.method_state,
            )
            for handle, (_, ray) in zip(handles, (*pieces, *checks), strict=True)
        ]
        with state.rolled_back():  # tracing runs the step, and may update batch statistics
            for step_arguments in arguments[: len(pieces)]:
                step(*step_arguments)
            for step_arguments in arguments[len(pieces) :]:
                step.confirm(*step_arguments)

    def epoch(self, order: Tensor, rays: Tensor) -> Tensor:
        """Train on samples in order; losses ``[steps, ..., G, J]``, still on the device."""
        state, pieces = self._state, self._state.split_epoch(order, rays)
        losses = []  # read back by the caller, once an epoch: each read waits for the device
        with closing(state.source.run([index for index, _ in pieces])) as handles:
            for handle, (_, ray) in zip(handles, pieces, strict=True):
                losses.append(state.compute_step(state.source.batch_at(handle), ray))
        return torch.stack(losses)

    @property
    def name(self) -> str:
        """The way steps are run, for the record."""
        step = self._state.step
        return "eager" if not isinstance(step, TracedStep) or step.failure else step.mode

    @property
    def failure(self) -> str | None:
        """The reason for running a traced step eagerly after all; `None` if there is none."""
        step = self._state.step
        return step.failure if isinstance(step, TracedStep) else None


def find_batch_sizes(state: TrainState, order: Tensor, rays: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Return the first batch of every size in an epoch: of the full size, and the short one."""
    # in reverse, so that of each size the first batch of the epoch stays
    by_shape = {
        index.shape: (index, ray) for index, ray in reversed(state.split_epoch(order, rays))
    }
    return list(by_shape.values())
