"""`evaluate`: a model, a problem and rays give a front."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from paretocosmos.backbones import Backbone
from paretocosmos.errors import DataError
from paretocosmos.evaluation.kept import kept_numbers
from paretocosmos.evaluation.samples import Samples, Shares, rows_of, samples_for
from paretocosmos.evaluation.scoring import front_of, score, scored, table_of
from paretocosmos.evaluation.sweeping import blocks, numbers_per_sample, sweep
from paretocosmos.evaluation.tally import KeptSamples, Tally
from paretocosmos.objectives import Objective
from paretocosmos.pareto.front import Array, Front
from paretocosmos.pareto.rays import as_rays, even_rays
from paretocosmos.problems import Problem, check_split
from paretocosmos.runtime.device import precise
from paretocosmos.runtime.distributed import ALONE, Processes
from paretocosmos.types import Batch, Metric, Outputs, Targets, first, map_tensors

__all__ = [
    "evaluate",
    "evaluate_parts",
    "evaluate_shares",
    "evaluating",
    "numbers_of",
    "outputs_of",
    "score",
    "scored",
    "sweep",
]

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
    ends = getattr(model, "includes_ends", False)
    wanted = even_rays(rays, count, ends=ends) if isinstance(rays, int) else as_rays(rays, count)
    shares = samples_for(model, problem, check_split(split))
    return evaluate_shares(model, problem, shares, wanted, split=split, provenance=provenance)


def evaluate_shares(
    model: nn.Module,
    problem: Problem,
    shares: Shares,
    rays: Tensor,
    *,
    split: str,
    provenance: Mapping[str, Any] | None = None,
    processes: Processes = ALONE,
) -> Front:
    """`evaluate` for rays already checked and samples with targets on the model's device.

    In float32 even where a network was trained in less, so that a front can be had again. Several
    processes run the network on their shares of the samples. Samples whose outputs fit into memory
    are scored at once; any others are summed block by block, and memory does not grow with them.

    Args:
        model: the network.
        problem: what it was trained on.
        shares: all objectives and their samples; or each objective and its own.
        rays: ``[N, J]``.
        split: what the samples are.
        provenance: what to record in the front.
        processes: those that share the samples.
    """
    with evaluating(model), precise("fp32"):
        tables = [
            _table(model, problem, objectives, problem.metrics, samples, rays, processes)
            for objectives, samples in shares
        ]
    return front_of(
        torch.cat(tables),
        problem.objectives,
        rays,
        metrics=tuple(problem.metrics),
        reference=problem.reference,
        score_batch=problem.score_batch,
        split=split,
        provenance={"problem": problem.name, "protocol": problem.protocol} | dict(provenance or {}),
    )


def evaluate_parts(
    model: nn.Module, problem: Problem, shares: Shares, rays: Tensor, parts: int
) -> tuple[Array, Array]:
    """Values ``[N, J]`` on all samples, and ``[parts, N, J]`` on so many parts of equal size.

    A part is a run of samples; what is left over is in none. Samples that are not in memory are
    read once for all of it.
    """
    found = []
    with evaluating(model), precise("fp32"):
        for objectives, samples in shares:
            size = len(samples) // parts
            ranges = [slice(k * size, (k + 1) * size) for k in range(parts)]
            if samples.whole is None:
                tables = _summed(model, problem, objectives, {}, samples, rays, ranges=ranges)
            else:
                cuts = [samples, *(samples.part(own) for own in ranges)]
                tables = [_table(model, problem, objectives, {}, one, rays) for one in cuts]
            found.append(torch.stack(tables))
    every: Array = torch.cat(found, dim=1).movedim(1, 2).cpu().numpy()
    return every[0], every[1:]


def outputs_of(
    model: nn.Module, problem: Problem, samples: Samples, rays: Tensor, *, whose: str
) -> tuple[Outputs, Targets]:
    """Outputs ``[N, B, ...]`` of all samples, and their targets, for what needs all of them.

    Args:
        model: the network.
        problem: what it was trained on.
        samples: those of a split.
        rays: ``[N, J]``.
        whose: what needs them, for messages.
    """
    kept = KeptSamples(whose, "hold out fewer samples")
    with evaluating(model), precise("fp32"):
        if samples.whole is not None:
            whole = samples.whole
            return sweep(model, whole.inputs, rays, problem.prepare), whole.targets
        for batch in samples:
            with samples.explained():
                kept.add(sweep(model, batch.inputs, rays, problem.prepare), batch.targets)
    return kept.joined()


def numbers_of(model: nn.Module, problem: Problem, batch: Batch, rays: Tensor) -> int:
    """How many numbers a network gives for a sample at a ray."""
    if any(isinstance(part, Backbone) for part in model.modules()):
        known = problem.outputs
        return known if isinstance(known, int) else sum(known.values())
    return numbers_per_sample(model, batch.inputs, rays, problem.prepare)


def _table(
    model: nn.Module,
    problem: Problem,
    objectives: Sequence[Objective],
    metrics: Mapping[str, Metric],
    samples: Samples,
    rays: Tensor,
    processes: Processes = ALONE,
) -> Tensor:
    """Every objective and metric ``[J + M, N]`` on samples: at once, or by sums."""
    whole = samples.whole
    if whole is not None:
        each = numbers_of(model, problem, whole, rays)
        if len(rays) * len(whole) * each <= max(WHOLE, kept_numbers()):
            mine = processes.share(len(whole))
            inputs = map_tensors(lambda part: part[mine], whole.inputs)
            own = sweep(model, inputs, rays, problem.prepare)
            outputs = processes.gather(own, len(whole), axis=1)
            return table_of(objectives, outputs, whole.targets, metrics, problem.score_batch)
    (table,) = _summed(model, problem, objectives, metrics, samples, rays, processes)
    return table


def _summed(
    model: nn.Module,
    problem: Problem,
    objectives: Sequence[Objective],
    metrics: Mapping[str, Metric],
    samples: Samples,
    rays: Tensor,
    processes: Processes = ALONE,
    *,
    ranges: Sequence[slice] = (),
) -> list[Tensor]:
    """The table of all samples, and of each of some ranges of them, in one pass."""
    parts: Sequence[Tensor] = ()  # rays that go through the network together
    tallies: list[list[Tally]] = []
    start, shared = 0, False
    for batch in samples:
        with samples.explained():
            if not tallies:
                parts = rays.split(max(1, BLOCK // numbers_of(model, problem, batch, rays)))
                tallies = [
                    [Tally(objectives, metrics, score_batch=problem.score_batch) for _ in range(n)]
                    for n in [1 + len(ranges)] * len(parts)
                ]
                shared = tallies[0][0].adds_up
            mine = processes.share(len(batch)) if shared else slice(0, len(batch))
            # every process has all samples where there are fewer than processes
            share = 1 / processes.count if shared and len(batch) < processes.count else 1.0
            own = rows_of(batch, mine)
            for some, (whole, *each) in zip(parts, tallies, strict=True):
                for at, outputs in blocks(model, own.inputs, some, problem.prepare, room=BLOCK):
                    targets = rows_of(own, at).targets
                    whole.add(outputs, targets, share=share)
                    low = start + mine.start + at.start
                    for among, tally in zip(ranges, each, strict=True):
                        _add_within(tally, outputs, targets, low, among)
        start += len(batch)
    if not tallies:
        raise DataError("a front needs at least one batch, found none: check the loader")
    total = partial(processes.total, samples=processes.count) if shared else list
    by_part = [[tally.table(total=total) for tally in own] for own in tallies]
    return [torch.cat(tables, dim=1) for tables in zip(*by_part, strict=True)]


def _add_within(tally: Tally, outputs: Outputs, targets: Targets, low: int, among: slice) -> None:
    """Add those of a block's samples, numbered from `low` on, that are in a range."""
    count = len(first(targets))
    own = slice(max(among.start - low, 0), min(among.stop - low, count))
    if own.start < own.stop:
        tally.add(
            map_tensors(lambda out: out[:, own], outputs),
            map_tensors(lambda part: part[own], targets),
        )


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
