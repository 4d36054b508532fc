"""Networks whose ray only post-processes their outputs: fitted, compared and chosen by more rows.

Such a network (`TrainingTask.at_rays`) is trained without the gap that it trades. So its
training rows say of a gap what new rows would, up to what it has memorised, and a gap may be
counted on them too: on a few hundred validation rows alone it is mostly noise.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor, nn

from paretocosmos.evaluation.evaluate import evaluation_mode
from paretocosmos.evaluation.output_cache import NO_CACHE, OutputCache
from paretocosmos.evaluation.samples import Shares
from paretocosmos.evaluation.scoring import compute_score
from paretocosmos.evaluation.threshold import AtThreshold, get_scores
from paretocosmos.nn.conditioning import TrainingTask, training_task
from paretocosmos.objectives import Objective, RateObjective
from paretocosmos.pareto.front import Array, Front
from paretocosmos.problems import Problem, split_of
from paretocosmos.runtime.device import precise
from paretocosmos.types import Batch, Metric, Outputs, Targets, first, map_tensors

__all__ = ["POOLED", "PooledGaps", "compute_quality", "fit_postprocessing", "pool_gaps"]

POOLED = "train and val"
"""The rows that gaps are counted on."""

# Training rows to fit to at most, at the end and while training goes on.
ROWS, ROWS_QUICK = 65_536, 8_192
# Rows in one pass of the network, and decisions that are scored at once.
CHUNK, DECISIONS = 8_192, 4_000_000


def fit_postprocessing(task: TrainingTask, problem: Problem, *, quick: bool = False) -> None:
    """Fit what a task fits after an epoch, on training rows; do nothing where there is nothing.

    Args:
        task: what the network is trained on.
        problem: where the rows are from.
        quick: whether fewer rows will do, while training goes on.
    """
    if task.fit is None:
        return
    rows = _draw_rows(split_of(problem, "train"), ROWS_QUICK if quick else ROWS)
    outputs = _predict_rows(task, problem, rows)
    device = first(outputs).device
    targets = {name: target.to(device) for name, target in rows.targets.items()}
    task.fit(outputs, targets, quick=quick)


def compute_quality(task: TrainingTask, problem: Problem, val: Shares) -> float:
    """Return minus the sum of a task's losses on held-out rows, to compare epochs by.

    A front would not do: a gap counted on a few hundred rows would select an epoch by chance.
    """
    ((_, samples),) = val  # all objectives are of the same rows
    batches = [(_predict_rows(task, problem, batch), batch.targets) for batch in samples]
    outputs: Outputs = map_tensors(lambda *parts: torch.cat(parts), *(out for out, _ in batches))
    targets: Targets = map_tensors(lambda *parts: torch.cat(parts), *(t for _, t in batches))
    losses = [objective.loss(outputs, targets) for objective in task.objectives]
    return -float(torch.stack(losses).sum())


def _draw_rows(train: Batch, count: int) -> Batch:
    """Return at most so many rows, always the same."""
    if len(train) <= count:
        return train
    order = torch.randperm(len(train), generator=torch.Generator().manual_seed(0))[:count]

    def take(tensor: Tensor) -> Tensor:
        return tensor[order.to(tensor.device)]

    return Batch(map_tensors(take, train.inputs), map_tensors(take, train.targets))


def _predict_rows(task: TrainingTask, problem: Problem, rows: Batch) -> Outputs:
    """Return the outputs of a task's network for rows, in double precision."""
    parameter = next(task.network.parameters())
    ray = torch.full((len(problem.objectives),), 1 / len(problem.objectives))
    chunks = []
    with evaluation_mode(task.network), precise("fp32"):
        for start in range(0, len(rows), CHUNK):

            def chunk(tensor: Tensor, start: int = start) -> Tensor:
                return tensor[start : start + CHUNK].to(parameter.device)

            inputs = problem.prepare(map_tensors(chunk, rows.inputs), parameter.dtype)
            outputs = task.network(inputs, ray.to(parameter))
            chunks.append(map_tensors(lambda out: out.double(), outputs))
    joined: Outputs = map_tensors(lambda *parts: torch.cat(parts), *chunks)
    return joined


@final
@dataclass(frozen=True)
class PooledGaps:
    """Gaps of a network, counted on the training and the validation rows.

    Attributes:
        at_rays: gives the network's outputs at rays, from those for the rows.
        metrics: the gaps, by name.
        outputs: the network's outputs for those rows, before any ray.
        targets: of those rows.
    """

    at_rays: Callable[[Outputs, Tensor], Outputs]
    metrics: dict[str, Metric]
    outputs: Outputs
    targets: Targets

    def replace_gaps(self, front: Front) -> Front:
        """Return a validation front with its gaps as they are on all of these rows."""
        gaps = self._count(torch.tensor(front.rays))
        values = front.values.copy()
        for column, name in enumerate(front.names):
            if name in gaps:
                values[:, column] = gaps[name]
        metrics = {name: gaps.get(name, numbers) for name, numbers in front.metrics.items()}
        return dataclasses.replace(front, values=values, metrics=metrics)

    def _count(self, rays: Tensor) -> dict[str, Array]:
        """Return every gap ``[N]`` at rays ``[N, J]``."""
        size = max(1, DECISIONS // len(next(iter(self.targets.values()))))
        scores: dict[str, list[Tensor]] = {name: [] for name in self.metrics}
        with torch.inference_mode():
            for some in rays.split(size):
                logits = self.at_rays(self.outputs, some)
                for name, metric in self.metrics.items():
                    scores[name].append(compute_score(metric, logits, self.targets, None))
        return {name: torch.cat(score).cpu().numpy() for name, score in scores.items()}


def pool_gaps(
    model: nn.Module, problem: Problem, cache: OutputCache = NO_CACHE
) -> PooledGaps | None:
    """Return the gaps on training and validation rows, for a network trained without them.

    `None` for any other network, and for scores that are means over batches.
    """
    task = training_task(model, problem.objectives)
    if task.at_rays is None or problem.score_batch is not None:
        return None
    gaps = {name: metric for name, metric in get_scores(problem).items() if _is_gap(metric)}
    splits = [problem.split("train"), problem.split("val")]
    outputs = cache.get("pooled", lambda: [_predict_rows(task, problem, rows) for rows in splits])
    joined: Outputs = map_tensors(lambda *parts: torch.cat(parts), *outputs)
    device = first(joined).device
    targets = {
        name: torch.cat([rows.targets[name].to(device) for rows in splits])
        for name in splits[0].targets
    }
    return PooledGaps(task.at_rays, gaps, joined, targets)


def _is_gap(metric: Metric) -> bool:
    owner = getattr(metric, "__self__", None)
    if not isinstance(owner, Objective) or metric != owner.score:
        return False
    plain = owner.inner if isinstance(owner, AtThreshold) else owner
    return isinstance(plain, RateObjective) and plain.linear
