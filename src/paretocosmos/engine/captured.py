"""An epoch as a few replays of CUDA graphs.

A GPU runs a step of a small network in less time than Python needs to ask for it. A CUDA graph
holds the kernels of several steps, gathering the batch and updating the parameters included, and is
asked for once. It reads indices and rays from fixed places; the learning rate, the parameters and
the moments live on the device anyway.
"""

from typing import Any

import torch
from torch import Tensor

from paretocosmos.engine.recorded import Recorded
from paretocosmos.engine.stepwise import Stepwise
from paretocosmos.engine.work import Work
from paretocosmos.files import one_line

__all__ = ["Captured"]

# Steps per replay: enough that asking for them costs nothing, few enough to capture in a blink.
STEPS = 32
# The first steps of a graph are compared with those it was captured from; later ones drift apart by
# rounding alone.
COMPARED = 4
CLOSE = 1e-2


class _Graph:
    """A number of steps, captured, with the places it reads and writes."""

    def __init__(
        self, work: Work, index: Tensor, rays: Tensor, pool: Any, aside: torch.cuda.Stream
    ) -> None:
        self.index, self.rays = index.clone(), rays.clone()
        with work.rehearsing():
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
            pieces = work.batches(self.index, self.rays)
            for place, (index, ray) in zip(self.losses, pieces, strict=True):
                # a kernel, where `copy_` would be a transfer, for which a graph waits far longer
                torch.mul(work.advance(index, ray), 1.0, out=place)
        with work.rehearsing():
            self._graph.replay()
            ours, theirs = self.losses[:COMPARED], tried[:COMPARED]
        if not torch.allclose(ours, theirs, rtol=CLOSE, atol=1e-6, equal_nan=True):
            raise RuntimeError("the captured steps do not repeat those they were captured from")

    def _steps(self, work: Work) -> Tensor:
        pieces = work.batches(self.index, self.rays)
        return torch.stack([work.advance(index, ray) for index, ray in pieces])

    def replay(self, index: Tensor, rays: Tensor) -> Tensor:
        """The steps on these samples and rays; their losses, good until the next replay."""
        self.index.copy_(index)
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
        # the eager steps it compares with took a workspace on autograd's thread, needed no more;
        # torch has no public name for giving it back, and may take this one away
        getattr(torch._C, "_cuda_clearCublasWorkspaces", lambda: None)()
        pool, aside = torch.cuda.graph_pool_handle(), torch.cuda.current_stream()
        if aside == torch.cuda.default_stream():  # which cannot be captured
            aside = torch.cuda.Stream()
        try:
            for index, ray, key in self._pieces(order, rays):
                if key not in self._graphs:
                    self._graphs[key] = _Graph(self._work, index, ray, pool, aside)
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
        pieces = self._pieces(order, rays)
        return torch.cat([self._graphs[key].replay(i, r).clone() for i, r, key in pieces])

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
        """The epoch cut into runs of full batches of at most `STEPS`, and the short batch."""
        size, groups = self._work.batch_size, self._work.groups
        full = order.shape[-1] // size
        pieces, start = [], 0
        while start < full:
            steps = STEPS if full - start >= STEPS else 1
            stop = start + steps
            index = order[..., start * size : stop * size]
            pieces.append((index, rays[..., start * groups : stop * groups, :], (size, steps)))
            start = stop
        rest = order[..., full * size :]
        if rest.shape[-1] >= groups:
            pieces.append((rest, rays[..., full * groups :, :], (rest.shape[-1], 1)))
        return pieces
