"""Engines: an epoch as a Python loop over steps, or as a few replays of CUDA graphs.

A GPU runs a step of a small network in less time than Python needs to ask for it. A CUDA graph
holds the kernels of several steps, gathering the batch and updating the parameters included, and is
launched once; of a deep network it holds one step, which is long enough. It reads indices and rays
from fixed places; the learning rate, the parameters and the moments live on the device anyway.
Where samples are streamed to the device, a graph holds one step and reads the samples themselves.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from paretocosmos.io.files import one_line
from paretocosmos.runtime.torch_private import release_workspaces
from paretocosmos.training.engine.batch_source import BatchHandle, BatchSource, collect_handles
from paretocosmos.training.engine.optimizer import Optimizer
from paretocosmos.training.engine.step import Step
from paretocosmos.training.engine.tracing import TracedStep
from paretocosmos.types import Batch, map_tensors

# Steps per replay: enough that asking for them costs nothing, few enough to capture in a blink.
STEPS = 32
# Parameters, as tensors, from which a network is deep: a step of it is thousands of kernels, which
# take as long as a replay of 32 small ones, and capturing 32 of it would take a minute.
DEEP = 64
# The first steps of a graph are compared with those it was captured from; later ones drift apart by
# rounding alone.
COMPARED = 4
# tf32 keeps 10 bits of a product, so that sums in another order agree to some 1e-3.
CLOSE = 1e-2


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


class CapturedSteps:
    """A number of steps, captured, with the memory they read and write."""

    def __init__(
        self,
        state: TrainState,
        handle: BatchHandle,
        rays: Tensor,
        pool: Any,
        stream: torch.cuda.Stream,
    ) -> None:
        # a graph reads the addresses it was captured with: later samples are copied into these
        self.handle, self.rays = handle, rays.clone()
        with state.rolled_back():
            # kernels are chosen and compiled before the capture, on the stream of the capture: each
            # stream has its own workspace for products
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                eager_losses = self._steps(state)
                if len(eager_losses) < COMPARED:
                    self._steps(state)
            torch.cuda.current_stream().wait_stream(stream)
        # allocated outside the capture, so that graphs that share a pool cannot reuse its memory
        self.losses = torch.empty_like(eager_losses)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph, pool=pool, stream=stream):
            for loss, (batch, ray) in zip(self.losses, self._batches(state), strict=True):
                # a kernel, where `copy_` would be a transfer, for which a graph waits far longer
                torch.mul(state.compute_step(batch, ray), 1.0, out=loss)
        with state.rolled_back():  # from the same weights as the eager steps
            self._graph.replay()
            ours, theirs = self.losses[:COMPARED], eager_losses[:COMPARED]
        if not torch.allclose(ours, theirs, rtol=CLOSE, atol=1e-6, equal_nan=True):
            raise RuntimeError("the captured steps differ from the eager ones")

    def _batches(self, state: TrainState) -> Iterator[tuple[Batch, Tensor]]:
        """Yield the steps' batches and rays; indices may be those of several steps."""
        if not isinstance(self.handle, Tensor):
            yield state.source.batch_at(self.handle), self.rays
            return
        for index, ray in state.split_epoch(self.handle, self.rays):
            yield state.source.batch_at(index), ray

    def _steps(self, state: TrainState) -> Tensor:
        return torch.stack([state.compute_step(batch, ray) for batch, ray in self._batches(state)])

    def replay(self, handle: BatchHandle, rays: Tensor) -> Tensor:
        """Run the steps on these samples and rays; the next replay overwrites the losses."""
        map_tensors(Tensor.copy_, self.handle, handle)
        self.rays.copy_(rays)
        self._graph.replay()
        return self.losses


class CudaGraphEngine:
    """Runs an epoch as replays of captured steps, or step by step where it cannot be captured."""

    def __init__(self, state: TrainState) -> None:
        self._state, self._eager = state, EagerEngine(state)
        self._graphs: dict[tuple[int, int], CapturedSteps] = {}
        self._failure: str | None = None

    def prepare(self, order: Tensor, rays: Tensor) -> None:
        """Capture every graph the epoch will need."""
        self._eager.prepare(order, rays)
        if isinstance(self._state.step, TracedStep) and self._state.step.data_dependent:
            self._failure = self._state.step.failure  # a graph would fix as much
            return
        # the eager steps it compares with took one on autograd's thread, needed no more
        release_workspaces()
        firsts: dict[tuple[int, int], tuple[Tensor, Tensor]] = {}
        for index, ray, key in self._split_epoch(order, rays):
            firsts.setdefault(key, (index, ray))
        # all of them before the first capture, during which no other thread may use the device
        handles = collect_handles(self._state.source, [index for index, _ in firsts.values()])
        # one pool: graphs never run at the same time, so that they may share memory
        pool, stream = torch.cuda.graph_pool_handle(), torch.cuda.current_stream()
        if stream == torch.cuda.default_stream():  # which cannot be captured
            stream = torch.cuda.Stream()
        generator = torch.cuda.default_generators[torch.cuda.current_device()]
        random_state = generator.clone_state()
        try:
            for handle, (key, (_, ray)) in zip(handles, firsts.items(), strict=True):
                self._graphs[key] = CapturedSteps(self._state, handle, ray, pool, stream)
        except torch.cuda.OutOfMemoryError:
            raise
        except Exception as error:  # whatever a network does that a graph cannot hold
            torch.cuda.synchronize()  # a failed capture may leave kernels that still run
            # nor does it let go of the generator, which then refuses to draw outside a capture
            generator.graphsafe_set_state(random_state)
            reason = f"{type(error).__name__}: {one_line(error)}"
            self._failure = f"the step cannot be captured ({reason})"
            self._graphs.clear()
        torch.cuda.empty_cache()  # what the trials on the other stream took

    def epoch(self, order: Tensor, rays: Tensor) -> Tensor:
        """Train on samples in order; losses ``[steps, ..., G, J]``, still on the device."""
        if self._failure is not None:
            return self._eager.epoch(order, rays)
        pieces, losses = self._split_epoch(order, rays), []
        with closing(self._state.source.run([index for index, _, _ in pieces])) as handles:
            for handle, (_, ray, key) in zip(handles, pieces, strict=True):
                # a clone: the next replay overwrites them
                losses.append(self._graphs[key].replay(handle, ray).clone())
        return torch.cat(losses)

    @property
    def name(self) -> str:
        """The way steps are run, for the record."""
        inner = self._eager.name
        if self._failure is not None:
            return inner
        return "captured" if inner == "traced" else f"captured, {inner}"

    @property
    def failure(self) -> str | None:
        """The reason why steps are not captured, or not compiled first; `None` if they are.

        A step that cannot be traced is captured as it is, at no loss.
        """
        step = self._state.step
        compiled = isinstance(step, TracedStep) and step.mode == "compiled"
        return self._failure or (self._eager.failure if compiled else None)

    def _split_epoch(
        self, order: Tensor, rays: Tensor
    ) -> list[tuple[Tensor, Tensor, tuple[int, int]]]:
        """Split the epoch into runs of at most `STEPS` full batches, and the short batch.

        Streamed samples come step by step, and so do those of a deep network.
        """
        size, rays_per_batch = self._state.batch_size, self._state.rays_per_batch
        deep = len(self._state.parameters) >= DEEP
        longest = STEPS if self._state.source.resident and not deep else 1
        full = order.shape[-1] // size
        pieces, start = [], 0
        while start < full:
            # a remainder goes step by step: its own graph would have one replay in an epoch
            steps = longest if full - start >= longest else 1
            stop = start + steps
            index = order[..., start * size : stop * size]
            pieces.append(
                (index, rays[..., start * rays_per_batch : stop * rays_per_batch, :], (size, steps))
            )
            start = stop
        # every group of the short batch has as many samples
        usable = (order.shape[-1] - full * size) // rays_per_batch * rays_per_batch
        if usable:
            rest = order[..., full * size : full * size + usable]
            pieces.append((rest, rays[..., full * rays_per_batch :, :], (usable, 1)))
        return pieces
