"""`evaluate`: a model, a problem and rays give a front."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from paretocosmos.backbones import Backbone
from paretocosmos.conditioning import Conditioning
from paretocosmos.evaluation.kept import kept_or
from paretocosmos.objectives import Objective
from paretocosmos.pareto.front import Front
from paretocosmos.pareto.rays import as_rays, even_rays
from paretocosmos.problems import Problem, check_split
from paretocosmos.runtime.device import fits, precise
from paretocosmos.runtime.distributed import ALONE, Processes
from paretocosmos.types import Batch, Inputs, Metric, Outputs, Targets, first, map_tensors

__all__ = ["bring", "evaluate", "move", "score", "scored", "sweep"]

# Numbers in one pass: samples times rays times the size of an input. Larger chunks fall out of a
# CPU's cache, smaller ones pay for more calls. An image grows in its first convolution, a row of a
# table does not.
CHUNK, CHUNK_IMAGES = 2_200_000, 550_000
# A GPU has no such cache, and asking for an operation costs it more than running it.
CHUNK_CUDA = 8_800_000


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
        ``protocol="paper"``, as a mean over batches of 256 in file order.

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
    batch = bring(problem.split(check_split(split)), parameter.device, parameter.dtype)
    return evaluate_batch(model, problem, batch, wanted, split=split, provenance=provenance)


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
    """`evaluate` for rays already checked and targets on the model's device.

    In float32 even where a network was trained in less, so that a front can be had again. Several
    processes run the network on their shares of the samples.
    """
    mine = processes.share(len(batch))
    with evaluating(model), precise("fp32"):
        share = map_tensors(lambda part: part[mine], batch.inputs)
        own = sweep(model, share, rays, problem.prepare)
        outputs = processes.gather(own, len(batch), axis=1)
        return scored(
            problem.objectives,
            outputs,
            batch.targets,
            rays,
            metrics=problem.metrics,
            reference=problem.reference,
            score_batch=problem.score_batch,
            split=split,
            provenance={"problem": problem.name, "protocol": problem.protocol}
            | dict(provenance or {}),
        )


def scored(
    objectives: Sequence[Objective],
    outputs: Outputs,
    targets: Targets,
    rays: Tensor,
    *,
    metrics: Mapping[str, Metric],
    reference: Sequence[float],
    split: str,
    score_batch: int | None = None,
    provenance: Mapping[str, Any] | None = None,
) -> Front:
    """The front of outputs ``[N, B, ...]`` at rays ``[N, J]``, for targets ``[B, ...]``.

    Args:
        objectives: what is scored.
        outputs: of a network at every ray.
        targets: what they are compared with.
        rays: those of the outputs.
        metrics: further numbers.
        reference: the point hypervolume is measured from.
        split: what the samples are.
        score_batch: samples per score, whose mean is taken; `None` for all at once.
        provenance: what to record in the front.
    """
    every = [o.score for o in objectives] + list(metrics.values())
    numbers = [score(f, outputs, targets, score_batch) for f in every]
    table = torch.stack([number.double() for number in numbers]).cpu().numpy()
    count = len(objectives)
    how = "whole split" if score_batch is None else f"mean over batches of {score_batch}"
    return Front(
        rays=rays.double().cpu().numpy(),
        values=table[:count].T,
        names=tuple(objective.name for objective in objectives),
        reference=np.asarray(reference, dtype=np.float64),
        metrics=dict(zip(metrics, table[count:], strict=True)),
        split=split,
        provenance={"scores": how} | dict(provenance or {}),
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


def sweep(
    model: nn.Module,
    inputs: Inputs,
    rays: Tensor,
    prepare: Callable[[Inputs, torch.dtype], Inputs] | None = None,
) -> Outputs:
    """Outputs of all samples under all rays, ``[N, B, ...]``, in chunks of samples.

    Inputs may lie elsewhere than the model: a chunk is moved when its turn comes. Within a block of
    `keeping`, the same question is computed once.
    """
    return kept_or(model, inputs, rays, lambda: _swept(model, inputs, rays, prepare))


def _swept(
    model: nn.Module,
    inputs: Inputs,
    rays: Tensor,
    prepare: Callable[[Inputs, torch.dtype], Inputs] | None,
) -> Outputs:
    some = first(inputs)
    parameter = next(model.parameters(), torch.zeros((), device=some.device))
    device, dtype = parameter.device, parameter.dtype
    numbers = CHUNK_CUDA if device.type == "cuda" else CHUNK_IMAGES if some.ndim > 2 else CHUNK
    inside = (part.widest for part in model.modules() if isinstance(part, Backbone))
    widest = max(math.prod(some.shape[1:]), *inside, 1)
    size = max(1, numbers // (len(rays) * widest))
    rays = rays.to(device, dtype)
    every: Any = None
    for start in range(0, len(some), size):
        chunk = map_tensors(lambda part, at=start: part[at : at + size], inputs)
        chunk = map_tensors(partial(_there, device=device, dtype=dtype), chunk)
        ready = chunk if prepare is None else prepare(chunk, dtype)
        outputs = _each_ray(model, ready, rays)
        if every is None:
            # room for all at once: small results kept between large ones would fragment memory
            every = map_tensors(
                lambda out: out.new_empty(len(rays), len(some), *out.shape[2:]), outputs
            )
        map_tensors(lambda room, out, at=start: room[:, at : at + size].copy_(out), every, outputs)
    whole: Outputs = every
    return whole


def move(batch: Batch, device: torch.device, dtype: torch.dtype | None = None) -> Batch:
    """A batch on a device, its floats as that type."""
    there = partial(_there, device=device, dtype=dtype)
    return Batch(map_tensors(there, batch.inputs), map_tensors(there, batch.targets))


def bring(batch: Batch, device: torch.device, dtype: torch.dtype | None = None) -> Batch:
    """A split to evaluate on a device: moved there, or its targets alone where it does not fit."""
    if fits(batch, device, dtype):
        return move(batch, device, dtype)
    return Batch(
        batch.inputs, map_tensors(partial(_there, device=device, dtype=dtype), batch.targets)
    )


def _there(part: Tensor, *, device: torch.device, dtype: torch.dtype | None) -> Tensor:
    return part.to(device, dtype if part.is_floating_point() else None)


def _each_ray(model: nn.Module, inputs: Inputs, rays: Tensor) -> Outputs:
    if isinstance(model, Conditioning):
        return model.each_ray(inputs, rays)
    outputs: Outputs = map_tensors(
        lambda *parts: torch.stack(parts), *(model(inputs, r) for r in rays)
    )
    return outputs


def score(metric: Metric, outputs: Outputs, targets: Targets, size: int | None) -> Tensor:
    """One number per ray: outputs ``[N, B, ...]`` to ``[N]``."""
    per_ray = torch.vmap(metric, in_dims=(0, None))
    if size is None:
        return per_ray(outputs, targets)
    total = len(first(targets))
    batches, whole = total // size, total // size * size
    parts: list[Tensor] = []
    if batches:

        def fold(axis: int) -> Callable[[Tensor], Tensor]:
            return lambda part: part.narrow(axis, 0, whole).unflatten(axis, (batches, size))

        per_batch = torch.vmap(per_ray, in_dims=(1, 0))
        parts += per_batch(map_tensors(fold(1), outputs), map_tensors(fold(0), targets)).unbind()
    if whole < total:
        rest = (
            map_tensors(lambda out: out[:, whole:], outputs),
            map_tensors(lambda t: t[whole:], targets),
        )
        parts.append(per_ray(*rest))
    return torch.stack(parts).mean(dim=0)
