"""Evaluate a model: predict at rays in batches that memory holds, and score a front."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from paretocosmos.errors import ConfigurationError, DataError
from paretocosmos.evaluation.samples import (
    NO_CACHE,
    OutputCache,
    Samples,
    Shares,
    key_rays,
    load_samples_for,
    slice_rows,
    to_device,
)
from paretocosmos.evaluation.scoring import (
    CollectedSamples,
    StreamingScores,
    build_front,
    compute_table,
    slice_samples,
)
from paretocosmos.nn.backbones import Backbone
from paretocosmos.nn.conditioning import Conditioning
from paretocosmos.objectives import Objective
from paretocosmos.pareto.front import Array, Front
from paretocosmos.pareto.rays import as_rays, even_rays
from paretocosmos.problems import Problem, check_split
from paretocosmos.runtime.device import set_precision
from paretocosmos.runtime.distributed import ALONE, Processes
from paretocosmos.types import (
    Batch,
    Inputs,
    Metric,
    Outputs,
    Targets,
    first,
    list_tensors,
    map_tensors,
)

# Outputs of a split that are scored at once; those of a larger one are scored block by block.
WHOLE, BLOCK = 32_000_000, 4_000_000
# Numbers in one pass: samples times rays times the size of an input. Larger chunks fall out of a
# CPU's cache, smaller ones pay for more calls. An image grows in its first convolution, a row of a
# table does not.
CHUNK, CHUNK_IMAGES = 2_200_000, 550_000
# A GPU has no such cache, and launching an operation costs it more than running it.
CHUNK_CUDA = 8_800_000
# For so few samples times rays, no trial pass that measures the size of the outputs is worth it.
FEW = 64

Prepare = Callable[[Inputs, torch.dtype], Inputs]


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
    # a closed-form adjustment is defined at the corners; a conditioned network is not trained there
    ends = getattr(model, "includes_ends", False)
    checked = even_rays(rays, count, ends=ends) if isinstance(rays, int) else as_rays(rays, count)
    shares = load_samples_for(model, problem, check_split(split))
    return evaluate_shares(model, problem, shares, checked, split=split, provenance=provenance)


def evaluate_shares(
    model: nn.Module,
    problem: Problem,
    shares: Shares,
    rays: Tensor,
    *,
    split: str,
    provenance: Mapping[str, Any] | None = None,
    processes: Processes = ALONE,
    cache: OutputCache = NO_CACHE,
) -> Front:
    """Evaluate as `evaluate` does, for checked rays and samples on the model's device.

    In float32 even where a network was trained in less, so that a front can be reproduced. Several
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
        cache: outputs of this network on these data that are known already.
    """
    with evaluation_mode(model), set_precision("fp32"):
        tables = [
            _compute_scores(
                model, problem, objectives, problem.metrics, samples, rays, processes, cache
            )
            for objectives, samples in shares
        ]
    return build_front(
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
    """Return values ``[N, J]`` on all samples, and ``[parts, N, J]`` on parts of equal size.

    A part is a run of samples; what is left over is in none. Samples that are not in memory are
    read once for all of it.
    """
    tables = []
    with evaluation_mode(model), set_precision("fp32"):
        for objectives, samples in shares:
            size = len(samples) // parts
            ranges = [slice(k * size, (k + 1) * size) for k in range(parts)]
            if samples.whole is None:
                scores = _sum_scores(model, problem, objectives, {}, samples, rays, ranges=ranges)
            else:
                scores = [
                    _compute_scores(model, problem, objectives, {}, some, rays)
                    for some in (samples, *(samples.slice(rows) for rows in ranges))
                ]
            tables.append(torch.stack(scores))
    values: Array = torch.cat(tables, dim=1).movedim(1, 2).cpu().numpy()
    return values[0], values[1:]


def collect_outputs(
    model: nn.Module,
    problem: Problem,
    samples: Samples,
    rays: Tensor,
    *,
    purpose: str,
    cache: OutputCache = NO_CACHE,
) -> tuple[Outputs, Targets]:
    """Return outputs ``[N, B, ...]`` of all samples and their targets, for what needs all of them.

    Args:
        model: the network.
        problem: what it was trained on.
        samples: those of a split.
        rays: ``[N, J]``.
        purpose: what needs them, for messages.
        cache: outputs of this network on these data that are known already.
    """
    with evaluation_mode(model), set_precision("fp32"):
        if samples.whole is not None:
            outputs = _predict_whole(model, problem, samples, rays, cache)
            return outputs, samples.whole.targets
        # read from a source: the outputs of all batches are kept, the samples are not
        collected = CollectedSamples(purpose, "hold out fewer samples")
        for batch in samples:
            with samples.explained():
                collected.add(
                    predict_at_rays(model, batch.inputs, rays, problem.prepare), batch.targets
                )
    return collected.join()


def count_outputs(model: nn.Module, problem: Problem, batch: Batch, rays: Tensor) -> int:
    """Count the numbers that a network gives for a sample at a ray."""
    if any(isinstance(module, Backbone) for module in model.modules()):
        outputs = problem.outputs
        return outputs if isinstance(outputs, int) else sum(outputs.values())
    return _count_outputs_by_trial(model, batch.inputs, rays, problem.prepare)


def predict_at_rays(
    model: nn.Module, inputs: Inputs, rays: Tensor, prepare: Prepare | None = None
) -> Outputs:
    """Return outputs of all samples at all rays, ``[N, B, ...]``, computed in chunks of samples.

    Inputs may lie elsewhere than the model: a chunk is moved when its turn comes.
    """
    ((_, outputs),) = predict_blocks(model, inputs, rays, prepare)
    return outputs


def predict_blocks(
    model: nn.Module,
    inputs: Inputs,
    rays: Tensor,
    prepare: Prepare | None = None,
    *,
    room: int | None = None,
) -> Iterator[tuple[slice, Outputs]]:
    """Yield outputs at all rays, ``[N, b, ...]``, for one block of samples after another.

    Args:
        model: ``forward(inputs, ray) -> outputs``.
        inputs: of all samples.
        rays: ``[N, J]``.
        prepare: a problem's.
        room: how many numbers a block has at most, though one sample at least; `None`: all samples
            are one block.

    Yields:
        Which samples they are, and their outputs.
    """
    values = first(inputs)
    parameter = next(model.parameters(), torch.zeros((), device=values.device))
    device, dtype = parameter.device, parameter.dtype
    numbers = CHUNK_CUDA if device.type == "cuda" else CHUNK_IMAGES if values.ndim > 2 else CHUNK
    size = _choose_chunk(model, inputs, rays, prepare, min(numbers, room or numbers))
    rays = rays.to(device, dtype)
    block: Any = None
    begin, end = 0, 0
    for start in range(0, len(values), size):
        chunk = _slice_inputs(inputs, slice(start, start + size))
        chunk = map_tensors(partial(to_device, device=device, dtype=dtype), chunk)
        outputs = _predict_chunk(model, chunk, rays, prepare)
        stop = min(start + size, len(values))
        if block is None:
            begin, end = start, len(values)
            if room is not None:
                numbers = sum(head.numel() for head in list_tensors(outputs)) // (stop - start)
                chunks = max(1, room // max(1, numbers) // size)
                end = min(start + chunks * size, end)
            # memory for the whole block at once: small results held between large ones would
            # fragment it
            block = map_tensors(
                lambda out, n=end - begin: out.new_empty(len(rays), n, *out.shape[2:]), outputs
            )
        # the lambdas bind what changes in the loop as defaults
        map_tensors(
            lambda joined, out, offset=start - begin: joined[:, offset : offset + size].copy_(out),
            block,
            outputs,
        )
        if stop == end:
            yield slice(begin, end), block
            block = None


def check_rows(out: Tensor, samples: int) -> Tensor:
    """Check outputs ``[N, B, ...]``, which are cut by samples: raise if rows are something else."""
    if out.ndim < 2 or out.shape[1] != samples:
        rows = f"{out.shape[1]} rows" if out.ndim > 1 else "one number"
        raise ConfigurationError(
            f"a network must give a row of outputs for each sample, found {rows} for {samples} "
            "samples: where a sample has several, such as the nodes of a graph, pad them to one "
            "number and let the network give [samples, nodes, ...]"
        )
    return out


@contextmanager
def evaluation_mode(model: nn.Module, *, gradients: bool = False) -> Iterator[None]:
    """Put a model in evaluation mode, by default without gradients; restore every module after."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.inference_mode(not gradients):
            yield
    finally:
        for module, training in modes:  # one by one: a frozen part stays frozen
            module.training = training


def _compute_scores(
    model: nn.Module,
    problem: Problem,
    objectives: Sequence[Objective],
    metrics: Mapping[str, Metric],
    samples: Samples,
    rays: Tensor,
    processes: Processes = ALONE,
    cache: OutputCache = NO_CACHE,
) -> Tensor:
    """Compute every objective and metric ``[J + M, N]`` on samples: at once, or by sums."""
    batch = samples.whole
    if batch is not None:
        numbers = len(rays) * len(batch) * count_outputs(model, problem, batch, rays)
        if numbers <= max(WHOLE, cache.room):
            rows = processes.share(len(batch))
            local = _predict_whole(model, problem, samples, rays, cache, rows)
            outputs = processes.gather(local, len(batch), axis=1)
            return compute_table(objectives, outputs, batch.targets, metrics, problem.score_batch)
    (table,) = _sum_scores(model, problem, objectives, metrics, samples, rays, processes)
    return table


def _predict_whole(
    model: nn.Module,
    problem: Problem,
    samples: Samples,
    rays: Tensor,
    cache: OutputCache,
    rows: slice | None = None,
) -> Outputs:
    """Return outputs of samples in memory, from the cache if it has them, or of some rows."""
    assert samples.whole is not None
    inputs = samples.whole.inputs
    if rows is not None and (rows.start, rows.stop) != (0, len(samples)):
        return predict_at_rays(model, _slice_inputs(inputs, rows), rays, problem.prepare)
    return cache.get(
        ("outputs", samples.name, key_rays(rays)),
        lambda: predict_at_rays(model, inputs, rays, problem.prepare),
    )


def _sum_scores(
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
    """Compute the table of all samples, and of each of some ranges of them, in one pass."""
    ray_groups: Sequence[Tensor] = ()  # rays that go through the network together
    scores: list[list[StreamingScores]] = []
    start, shared = 0, False
    for batch in samples:
        with samples.explained():
            if not scores:
                size = max(1, BLOCK // count_outputs(model, problem, batch, rays))
                ray_groups = rays.split(size)
                scores = [
                    [
                        StreamingScores(objectives, metrics, score_batch=problem.score_batch)
                        for _ in range(1 + len(ranges))
                    ]
                    for _ in ray_groups
                ]
                shared = scores[0][0].adds_up
            # scores that do not add up need all outputs in every process
            rows = processes.share(len(batch)) if shared else slice(0, len(batch))
            # every process has all samples where there are fewer than processes
            share = 1 / processes.count if shared and len(batch) < processes.count else 1.0
            local = slice_rows(batch, rows)
            for group, (total_scores, *range_scores) in zip(ray_groups, scores, strict=True):
                blocks = predict_blocks(model, local.inputs, group, problem.prepare, room=BLOCK)
                for block, outputs in blocks:
                    targets = slice_rows(local, block).targets
                    total_scores.add(outputs, targets, share=share)
                    low = start + rows.start + block.start
                    for bounds, summed in zip(ranges, range_scores, strict=True):
                        _add_within(summed, outputs, targets, low, bounds)
        start += len(batch)
    if not scores:
        raise DataError("a front needs at least one batch, found none: check the loader")
    # only sums cross between processes, whatever the number of samples
    total = partial(processes.total, samples=processes.count) if shared else list
    by_group = [[summed.table(total=total) for summed in of_group] for of_group in scores]
    return [torch.cat(tables, dim=1) for tables in zip(*by_group, strict=True)]


def _add_within(
    scores: StreamingScores, outputs: Outputs, targets: Targets, low: int, bounds: slice
) -> None:
    """Add those of a block's samples, numbered from `low` on, that are in a range."""
    count = len(first(targets))
    rows = slice(max(bounds.start - low, 0), min(bounds.stop - low, count))
    if rows.start < rows.stop:
        scores.add(*slice_samples(outputs, targets, rows))


def _slice_inputs(inputs: Inputs, rows: slice) -> Inputs:
    """Return some samples; not a copy."""
    sliced: Inputs = map_tensors(lambda values: values[rows], inputs)
    return sliced


def _count_outputs_by_trial(
    model: nn.Module, inputs: Inputs, rays: Tensor, prepare: Prepare | None
) -> int:
    """Count the numbers that a network gives for a sample at a ray, by a pass of two samples."""
    values = first(inputs)
    parameter = next(model.parameters(), torch.zeros((), device=values.device))
    move = partial(to_device, device=parameter.device, dtype=parameter.dtype)
    few = map_tensors(move, _slice_inputs(inputs, slice(2)))
    outputs = _predict_chunk(model, few, rays[:1].to(parameter.device, parameter.dtype), prepare)
    numbers = sum(head.numel() for head in list_tensors(outputs))
    return max(1, numbers // min(2, len(values)))


def _choose_chunk(
    model: nn.Module, inputs: Inputs, rays: Tensor, prepare: Prepare | None, numbers: int
) -> int:
    """Return how many samples go through a network at once, for about so many numbers."""
    values = first(inputs)
    widths = [module.widest for module in model.modules() if isinstance(module, Backbone)]
    if not widths and len(values) * len(rays) > FEW:
        # a network from elsewhere may make a vocabulary of every number it is given
        widths = [_count_outputs_by_trial(model, inputs, rays, prepare)]
    widest = max(math.prod(values.shape[1:]), *widths, 1)
    return max(1, numbers // (len(rays) * widest))


def _predict_chunk(
    model: nn.Module, chunk: Inputs, rays: Tensor, prepare: Prepare | None
) -> Outputs:
    inputs = chunk if prepare is None else prepare(chunk, rays.dtype)
    if isinstance(model, Conditioning):
        outputs = model.each_ray(inputs, rays)
    else:
        outputs = map_tensors(lambda *parts: torch.stack(parts), *(model(inputs, r) for r in rays))
    # a dataclass becomes a mapping
    checked: Outputs = map_tensors(partial(check_rows, samples=len(first(chunk))), outputs)
    return checked
