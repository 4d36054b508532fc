"""Outputs in hand, scored: the numbers of a front, and the front they make."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from paretocosmos.objectives import Objective
from paretocosmos.pareto.front import Front
from paretocosmos.types import Metric, Outputs, Targets, first, map_tensors

__all__ = ["front_of", "score", "scored", "table_of"]


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
    return front_of(
        table_of(objectives, outputs, targets, metrics, score_batch),
        objectives,
        rays,
        metrics=tuple(metrics),
        reference=reference,
        score_batch=score_batch,
        split=split,
        provenance=provenance,
    )


def table_of(
    objectives: Sequence[Objective],
    outputs: Outputs,
    targets: Targets,
    metrics: Mapping[str, Metric],
    score_batch: int | None,
) -> Tensor:
    """Every objective and metric ``[J + M, N]`` of outputs ``[N, B, ...]``."""
    every = [o.score for o in objectives] + list(metrics.values())
    numbers = [score(one, outputs, targets, score_batch) for one in every]
    return torch.stack([number.double() for number in numbers])


def front_of(
    table: Tensor,
    objectives: Sequence[Objective],
    rays: Tensor,
    *,
    metrics: Sequence[str],
    reference: Sequence[float],
    score_batch: int | None,
    split: str,
    provenance: Mapping[str, Any] | None,
) -> Front:
    """The front that a table ``[J + M, N]`` of numbers makes."""
    numbers, count = table.cpu().numpy(), len(objectives)
    how = "whole split" if score_batch is None else f"mean over batches of {score_batch}"
    return Front(
        rays=rays.double().cpu().numpy(),
        values=numbers[:count].T,
        names=tuple(objective.name for objective in objectives),
        reference=np.asarray(reference, dtype=np.float64),
        metrics=dict(zip(metrics, numbers[count:], strict=True)),
        split=split,
        provenance={"scores": how} | dict(provenance or {}),
    )


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
