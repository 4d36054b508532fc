"""An epoch as a few replays of CUDA graphs.

A GPU runs a step of a small network in less time than Python needs to ask for it. A CUDA graph
holds the kernels of several steps, gathering the batch and updating the parameters included, and is
asked for once; of a deep network it holds one step, which is long enough. It reads indices and rays
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
from paretocosmos.training.engine.batch_source import BatchHandle, all_given
from paretocosmos.training.engine.eager import Stepwise, Work
from paretocosmos.training.engine.tracing import Recorded
from paretocosmos.types import Batch, map_tensors

# Steps per replay: enough that asking for them costs nothing, few enough to capture in a blink.
STEPS = 32
# Parameters, as tensors, from which a network is deep: a step of it is thousands of kernels, which
# take as long as a replay of 32 small ones, and capturing 32 of it would take a minute.
DEEP = 64
# The first steps of a graph are compared with those it was captured from; later ones drift apart by
# rounding alone.
COMPARED = 4
CLOSE = 1e-2


class _Graph:
    """A number of steps, captured, with the places it reads and writes."""

    def __init__(
        self, work: Work, place: BatchHandle, rays: Tensor, pool: Any, aside: torch.cuda.Stream
    ) -> None:
        self.place, self.rays = place, rays.clone()
        with work.rolled_back():
            # kernels are chosen and compiled before the capture, on the stream of the capture: each
            # stream has its own workspace for products
            aside.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(aside):
                tried = self._steps(work)
                if len(tried) < COMPARED:
                    self._steps(work)
            torch.cuda.current_stream().wait_stream(aside)
        self.losses = torch.empty_like(tried)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph, pool=pool, stream=aside):
            for loss, (batch, ray) in zip(self.losses, self._batches(work), strict=True):
                # a kernel, where `copy_` would be a transfer, for which a graph waits far longer
                torch.mul(work.advance(batch, ray), 1.0, out=loss)
        with work.rolled_back():
            self._graph.replay()
            ours, theirs = self.losses[:COMPARED], tried[:COMPARED]
        if not torch.allclose(ours, theirs, rtol=CLOSE, atol=1e-6, equal_nan=True):
            raise RuntimeError("the captured steps differ from the eager ones")

    def _batches(self, work: Work) -> Iterator[tuple[Batch, Tensor]]:
        """The steps' batches and rays; indices may be those of several steps."""
        if not isinstance(self.place, Tensor):
            yield work.feed.batch_at(self.place), self.rays
            return
        for index, ray in work.batches(self.place, self.rays):
            yield work.feed.batch_at(index), ray

    def _steps(self, work: Work) -> Tensor:
        return torch.stack([work.advance(batch, ray) for batch, ray in self._batches(work)])

    def replay(self, given: BatchHandle, rays: Tensor) -> Tensor:
        """The steps on these samples and rays; their losses, good until the next replay."""
        map_tensors(Tensor.copy_, self.place, given)
        self.rays.copy_(rays)
        self._graph.replay()
        return self.losses


class Captured:
    """Runs an epoch as replays of captured steps, or step by step where it cannot be captured."""

    def __init__(self, work: Work) -> None:
        self._work, self._stepwise = work, Stepwise(work)
        self._graphs: dict[tuple[int, int], _Graph] = {}
        self._failure: str | None = None

    def prepare(self, order: Tensor, rays: Tensor) -> None:
        """Capture every graph the epoch will need."""
        self._stepwise.prepare(order, rays)
        if isinstance(self._work.step, Recorded) and self._work.step.frozen:
            self._failure = self._work.step.failure  # a graph would freeze as much
            return
        # the eager steps it compares with took one on autograd's thread, needed no more
        release_workspaces()
        firsts: dict[tuple[int, int], tuple[Tensor, Tensor]] = {}
        for index, ray, key in self._pieces(order, rays):
            firsts.setdefault(key, (index, ray))
        # all of them before the first capture, which bears no other thread at work on the device
        places = all_given(self._work.feed, [index for index, _ in firsts.values()])
        pool, aside = torch.cuda.graph_pool_handle(), torch.cuda.current_stream()
        if aside == torch.cuda.default_stream():  # which cannot be captured
            aside = torch.cuda.Stream()
        try:
            for place, (key, (_, ray)) in zip(places, firsts.items(), strict=True):
                self._graphs[key] = _Graph(self._work, place, ray, pool, aside)
        except torch.cuda.OutOfMemoryError:
            raise
        except Exception as error:  # whatever a network does that a graph cannot hold
            torch.cuda.synchronize()
            what = f"{type(error).__name__}: {one_line(error)}"
            self._failure = f"the step cannot be captured ({what})"
            self._graphs.clear()
        torch.cuda.empty_cache()  # what the trials on the stream aside took

    def epoch(self, order: Tensor, rays: Tensor) -> Tensor:
        """Samples in order and rays to the losses ``[steps, ..., G, J]``, still on the device."""
        if self._failure is not None:
            return self._stepwise.epoch(order, rays)
        pieces, losses = self._pieces(order, rays), []
        with closing(self._work.feed.run([index for index, _, _ in pieces])) as every:
            for given, (_, ray, key) in zip(every, pieces, strict=True):
                losses.append(self._graphs[key].replay(given, ray).clone())
        return torch.cat(losses)

    @property
    def name(self) -> str:
        """How steps are run, for the record."""
        inner = self._stepwise.name
        if self._failure is not None:
            return inner
        return "captured" if inner == "traced" else f"captured, {inner}"

    @property
    def failure(self) -> str | None:
        """Why it is not run as it was meant to be: not captured, or not compiled first.

        A step that cannot be traced is captured as it is, at no loss.
        """
        step = self._work.step
        compiled = isinstance(step, Recorded) and step.how == "compiled"
        return self._failure or (self._stepwise.failure if compiled else None)

    def _pieces(self, order: Tensor, rays: Tensor) -> list[tuple[Tensor, Tensor, tuple[int, int]]]:
        """The epoch cut into runs of full batches of at most `STEPS`, and the short batch.

        Streamed samples come step by step, and so do those of a deep network.
        """
        size, groups = self._work.batch_size, self._work.groups
        deep = len(self._work.parameters) >= DEEP
        longest = STEPS if self._work.feed.resident and not deep else 1
        full = order.shape[-1] // size
        pieces, start = [], 0
        while start < full:
            steps = longest if full - start >= longest else 1
            stop = start + steps
            index = order[..., start * size : stop * size]
            pieces.append((index, rays[..., start * groups : stop * groups, :], (size, steps)))
            start = stop
        usable = (order.shape[-1] - full * size) // groups * groups
        if usable:
            rest = order[..., full * size : full * size + usable]
            pieces.append((rest, rays[..., full * groups :, :], (usable, 1)))
        return pieces
