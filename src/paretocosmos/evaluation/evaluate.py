"""`evaluate`: a model, a problem and rays give a front."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from paretocosmos.backbones import Backbone
from paretocosmos.errors import DataError
from paretocosmos.evaluation.kept import kept_numbers
from paretocosmos.evaluation.scoring import front_of, score, scored, table_of
from paretocosmos.evaluation.sweeping import blocks, numbers_per_sample, sweep, there
from paretocosmos.evaluation.tally import Tally
from paretocosmos.pareto.front import Front
from paretocosmos.pareto.rays import as_rays, even_rays
from paretocosmos.problems import Problem, batches_of, check_split
from paretocosmos.runtime.device import fits, precise
from paretocosmos.runtime.distributed import ALONE, Processes
from paretocosmos.types import Batch, map_tensors

__all__ = ["bring", "evaluate", "move", "score", "scored", "sweep"]

# Outputs of a split that are scored at once; of a larger one, block by block.
WHOLE, BLOCK = 32_000_000, 4_000_000


def evaluate(
    model: nn.Module,
    problem: Problem,
    *,
    split: str = "test",
    rays: int | Tensor | Sequence[Sequence[float]] = 25,
    provenance: Mapping[str, Any] | None = None,
) -> Front:
    """Score every objective at every ray: all rays in one batched pass.

    Args:
        model: ``forward(inputs, ray) -> outputs``; a `Conditioning` shares between the rays what
            does not depend on them.
        problem: data, objectives and metrics.
        split: ``"train"``, ``"val"`` or ``"test"``.
        rays: a number of even rays, or rays ``[N, J]``.
        provenance: what to record in the front.

    Returns:
        The front. Each score is computed over the whole split, or, under the problem's
        ``protocol="paper"``, as a mean over batches of 256 in file order. Outputs of a large split
        are summed and forgotten, but for metrics that need all of them at once.

    >>> from paretocosmos import condition, load_problem
    >>> problem = load_problem("toy_convex")
    >>> network = nn.Sequential(nn.Linear(*problem.input_shape, 8), nn.ReLU(), nn.Linear(8, 2))
    >>> evaluate(condition(network, objectives=2), problem, rays=5).values.shape
    (5, 2)
    """
    count = len(problem.objectives)
    whole = getattr(model, "ends", None) is not None or getattr(model, "closed_form", False)
    wanted = even_rays(rays, count, ends=whole) if isinstance(rays, int) else as_rays(rays, count)
    parameter = next(model.parameters(), torch.zeros(()))
    batches = batches_of(problem, check_split(split))
    brought = (bring(batch, parameter.device, parameter.dtype) for batch in batches)
    return evaluate_batches(model, problem, brought, wanted, split=split, provenance=provenance)


def evaluate_batch(
    model: nn.Module,
    problem: Problem,
    batch: Batch,
    rays: Tensor,
    *,
    split: str,
    provenance: Mapping[str, Any] | None = None,
    processes: Processes = ALONE,
) -> Front:
    """`evaluate_batches` of a split that is one batch."""
    return evaluate_batches(
        model, problem, [batch], rays, split=split, provenance=provenance, processes=processes
    )


def evaluate_batches(
    model: nn.Module,
    problem: Problem,
    batches: Iterable[Batch],
    rays: Tensor,
    *,
    split: str,
    provenance: Mapping[str, Any] | None = None,
    processes: Processes = ALONE,
) -> Front:
    """`evaluate` for rays already checked and batches with targets on the model's device.

    In float32 even where a network was trained in less, so that a front can be had again. Several
    processes run the network on their shares of the samples. A split whose outputs fit into memory
    is scored at once; any other is summed block by block, and memory does not grow with it.
    """
    every = iter(batches)
    some = list(itertools.islice(every, 2))  # whether there is more than one
    if not some:
        raise DataError(f"a front needs at least one batch, found none in `{split}`")
    with evaluating(model), precise("fp32"):
        each = numbers_of(model, problem, some[0], rays)
        at_once = len(rays) * len(some[0]) * each <= max(WHOLE, kept_numbers())
        if len(some) == 1 and at_once:
            table = _at_once(model, problem, some[0], rays, processes)
        else:
            table = _streamed(
                model, problem, itertools.chain(some, every), rays, max(1, BLOCK // each), processes
            )
    return front_of(
        table,
        problem.objectives,
        rays,
        metrics=tuple(problem.metrics),
        reference=problem.reference,
        score_batch=problem.score_batch,
        split=split,
        provenance={"problem": problem.name, "protocol": problem.protocol} | dict(provenance or {}),
    )


def numbers_of(model: nn.Module, problem: Problem, batch: Batch, rays: Tensor) -> int:
    """How many numbers a network gives for a sample at a ray."""
    if any(isinstance(part, Backbone) for part in model.modules()):
        known = problem.outputs
        return known if isinstance(known, int) else sum(known.values())
    return numbers_per_sample(model, batch.inputs, rays, problem.prepare)


def _at_once(
    model: nn.Module, problem: Problem, batch: Batch, rays: Tensor, processes: Processes
) -> Tensor:
    mine = processes.share(len(batch))
    own = sweep(model, map_tensors(lambda part: part[mine], batch.inputs), rays, problem.prepare)
    outputs = processes.gather(own, len(batch), axis=1)
    return table_of(
        problem.objectives, outputs, batch.targets, problem.metrics, problem.score_batch
    )


def _streamed(
    model: nn.Module,
    problem: Problem,
    batches: Iterable[Batch],
    rays: Tensor,
    together: int,
    processes: Processes,
) -> Tensor:
    """The table of a split from sums; so many rays go through the network together."""
    parts = rays.split(together)
    tallies = [
        Tally(problem.objectives, problem.metrics, score_batch=problem.score_batch) for _ in parts
    ]
    shared = tallies[0].adds_up
    for batch in batches:
        mine = processes.share(len(batch)) if shared else slice(None)
        # every process has all samples where there are fewer than processes
        share = 1 / processes.count if shared and len(batch) < processes.count else 1.0
        inputs, targets = (
            map_tensors(lambda part, own=mine: part[own], of)
            for of in (batch.inputs, batch.targets)
        )
        for some, tally in zip(parts, tallies, strict=True):
            for at, outputs in blocks(model, inputs, some, problem.prepare, room=BLOCK):
                own = map_tensors(lambda part, here=at: part[here], targets)
                tally.add(outputs, own, share=share)
    total = partial(processes.total, samples=processes.count) if shared else list
    return torch.cat([tally.table(total=total) for tally in tallies], dim=1)


@contextmanager
def evaluating(model: nn.Module, *, gradients: bool = False) -> Iterator[None]:
    """A model in evaluation mode, by default without gradients; every part in its mode after."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.inference_mode(not gradients):
            yield
    finally:
        for module, training in modes:  # one by one: a frozen part stays frozen
            module.training = training


def move(batch: Batch, device: torch.device, dtype: torch.dtype | None = None) -> Batch:
    """A batch on a device, its floats as that type."""
    moved = partial(there, device=device, dtype=dtype)
    return Batch(map_tensors(moved, batch.inputs), map_tensors(moved, batch.targets))


def bring(batch: Batch, device: torch.device, dtype: torch.dtype | None = None) -> Batch:
    """A split to evaluate on a device: moved there, or its targets alone where it does not fit."""
    if fits(batch, device, dtype):
        return move(batch, device, dtype)
    return Batch(
        batch.inputs, map_tensors(partial(there, device=device, dtype=dtype), batch.targets)
    )
