"""An epoch as a few replays of CUDA graphs.

A GPU runs a step of a small network in less time than Python needs to ask for it. A CUDA graph
holds the kernels of several steps, gathering the batch and updating the parameters included, and is
launched once; of a deep network it holds one step, which is long enough. It reads indices and rays
from fixed places; the learning rate, the parameters and the moments live on the device anyway.
Where samples are streamed to the device, a graph holds one step and reads the samples themselves.
"""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import torch
from torch import Tensor

from paretocosmos.io.files import one_line
from paretocosmos.runtime.torch_private import release_workspaces
from paretocosmos.training.engine.batch_source import BatchHandle, collect_handles
from paretocosmos.training.engine.eager import EagerEngine, TrainState
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
