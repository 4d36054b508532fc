"""What a network that follows a preference by a formula has learned, and what that is worth.

Such a network (`conditioning/tilt.py`) is trained on two cross-entropies and hears of no gap. So
its training rows say of a gap what new rows would, up to what it has learned by heart, and a gap
may be counted on them too: on a few hundred validation rows alone it is mostly noise.
"""

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor, nn

from paretocosmos.conditioning.tilt import Tilt
from paretocosmos.evaluation.evaluate import evaluation_mode
from paretocosmos.evaluation.output_cache import NO_CACHE, OutputCache
from paretocosmos.evaluation.scoring import compute_score
from paretocosmos.evaluation.threshold import AtThreshold, scores_of
from paretocosmos.objectives import Objective, RateObjective
from paretocosmos.pareto.front import Array, Front
from paretocosmos.problems import Problem
from paretocosmos.runtime.device import precise
from paretocosmos.types import Batch, Metric, Outputs, Targets, map_tensors

__all__ = ["POOLED", "PooledGaps", "learned_outputs", "pooled_gaps"]

POOLED = "train and val"
"""The rows that gaps are counted on."""

# Rows a network sees at once, and answers that are decided at once.
CHUNK, ANSWERS = 8_192, 4_000_000


def learned_outputs(model: Tilt, problem: Problem, rows: Batch) -> Outputs:
    """What the network says of rows before any preference, in double precision."""
    parameter = next(model.parameters())
    found = []
    with evaluation_mode(model), precise("fp32"):
        for start in range(0, len(rows), CHUNK):

            def part(whole: Tensor, start: int = start) -> Tensor:
                return whole[start : start + CHUNK].to(parameter.device)

            inputs = problem.prepare(map_tensors(part, rows.inputs), parameter.dtype)
            found.append(map_tensors(lambda out: out.double(), model.call(inputs)))
    every: Outputs = map_tensors(lambda *parts: torch.cat(parts), *found)
    return every


@final
@dataclass(frozen=True)
class PooledGaps:
    """Gaps of a network, counted on the training and the validation rows.

    Attributes:
        model: the network.
        metrics: the gaps, by name.
        found: what it has learned of those rows.
        targets: theirs.
    """

    model: Tilt
    metrics: dict[str, Metric]
    found: Outputs
    targets: Targets

    def into(self, front: Front) -> Front:
        """A front on the validation rows with its gaps as they are on all of them."""
        gaps = self._at(torch.tensor(front.rays))
        values = front.values.copy()
        for place, name in enumerate(front.names):
            if name in gaps:
                values[:, place] = gaps[name]
        metrics = {name: gaps.get(name, column) for name, column in front.metrics.items()}
        return Front(
            rays=front.rays,
            values=values,
            names=front.names,
            reference=front.reference,
            metrics=metrics,
            split=front.split,
            provenance=front.provenance,
        )

    def _at(self, rays: Tensor) -> dict[str, Array]:
        size = max(1, ANSWERS // len(next(iter(self.targets.values()))))
        parts: dict[str, list[Tensor]] = {name: [] for name in self.metrics}
        with torch.inference_mode():
            for some in rays.split(size):
                answers = self.model.at_rays(self.found, some)
                for name, metric in self.metrics.items():
                    parts[name].append(compute_score(metric, answers, self.targets, None))
        return {name: torch.cat(part).cpu().numpy() for name, part in parts.items()}


def pooled_gaps(
    model: nn.Module, problem: Problem, cache: OutputCache = NO_CACHE
) -> PooledGaps | None:
    """Gaps on training and validation rows, for a network that learned nothing of them.

    `None` for any other network, and for scores that are means over batches.
    """
    if not isinstance(model, Tilt) or problem.score_batch is not None:
        return None
    every = scores_of(problem)
    gaps = {name: metric for name, metric in every.items() if _is_gap(metric)}
    splits = [problem.split("train"), problem.split("val")]
    outputs = cache.get("learned", lambda: [learned_outputs(model, problem, s) for s in splits])
    device = next(model.parameters()).device
    targets = {
        name: torch.cat([rows.targets[name].to(device) for rows in splits])
        for name in splits[0].targets
    }
    found: Outputs = map_tensors(lambda *parts: torch.cat(parts), *outputs)
    return PooledGaps(model, gaps, found, targets)


def _is_gap(metric: Metric) -> bool:
    owner = getattr(metric, "__self__", None)
    if not isinstance(owner, Objective) or metric != owner.score:
        return False
    plain = owner.inner if isinstance(owner, AtThreshold) else owner
    return isinstance(plain, RateObjective) and plain.linear
