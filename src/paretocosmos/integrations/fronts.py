"""Fronts computed from the batches that a loop of another library evaluates."""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from paretocosmos.errors import ConfigurationError, DataError, FrontWarning
from paretocosmos.evaluation.evaluate import check_rows
from paretocosmos.evaluation.scoring import StreamingScores, build_front
from paretocosmos.integrations.weighting import to_float32
from paretocosmos.objectives import Objective
from paretocosmos.pareto import metrics
from paretocosmos.pareto.front import Front
from paretocosmos.pareto.rays import as_rays, even_rays
from paretocosmos.types import Batch, Inputs, Metric, first, map_tensors

Rays = int | Tensor | Sequence[Sequence[float]]

Tallies = dict[int, list[StreamingScores]]
"""A tally for every ray: of all objectives, or of each by its number if each has a loader."""

ALL = -1


class FrontEvaluator:
    """Scores a network at even rays, and at the centre of the simplex.

    A batch is shown to the network once per ray, so that whatever fits into memory in training
    fits here. Scores are those of all samples; outputs are stored only for metrics that need all
    of them at once.

    Args:
        objectives: what is scored.
        reference: the point hypervolume is measured from.
        metrics: further numbers per ray.
        rays: how many even ones, or rays ``[N, J]``.
    """

    def __init__(
        self,
        objectives: Sequence[Objective],
        reference: Sequence[float],
        metrics: Mapping[str, Metric] | None,
        rays: Rays,
    ) -> None:
        self.objectives, self.metrics = tuple(objectives), dict(metrics or {})
        count = len(self.objectives)
        self.reference = tuple(float(value) for value in reference)
        if len(self.reference) != count or not all(map(math.isfinite, self.reference)):
            raise ConfigurationError(
                f"`reference` must be a finite number per objective, here {count}; found "
                f"{reference}"
            )
        if isinstance(rays, int) and rays < 1:
            raise ConfigurationError(f"`rays` must be at least 1, found {rays}")
        self.rays = even_rays(rays, count) if isinstance(rays, int) else as_rays(rays, count)

    def with_rays(self, rays: Rays | None) -> "FrontEvaluator":
        """Return the same evaluator at other rays."""
        new_rays = self.rays if rays is None else rays
        return FrontEvaluator(self.objectives, self.reference, self.metrics, new_rays)

    def compute_outputs(self, model: nn.Module, inputs: Inputs, ray: Tensor) -> Any:
        """Compute a network's outputs at a ray, in float32 at least.

        Of a mapping only tensors remain: a cache or a tuple of hidden states is not evaluated.
        """
        parameter = next(p for p in model.parameters() if p.is_floating_point())
        # at the parameters' device and precision, which may be half
        outputs = to_float32(model(inputs, ray.to(parameter)))
        if not isinstance(outputs, Mapping):
            return outputs
        return {name: value for name, value in outputs.items() if isinstance(value, Tensor)}

    @property
    def centre(self) -> Tensor:
        """The ray with equal weights ``[J]``."""
        return torch.full_like(self.rays[0], 1 / len(self.objectives))

    @property
    def _all_rays(self) -> Tensor:
        return torch.cat([self.rays, self.centre.unsqueeze(0)])

    def add(
        self,
        tallies: Tallies,
        model: nn.Module,
        batch: Batch,
        *,
        objective: int = ALL,
        exact: bool = True,
        count: int | None = None,
    ) -> Any:
        """Evaluate a batch, and return the network's outputs at the centre.

        Args:
            tallies: what is added to.
            model: the network.
            batch: of the loader of all objectives, or of one.
            objective: its number, if it has a loader of its own.
            exact: run the network in float32, whatever the loop around it does; scores are computed
                in float32 in any case.
            count: how many samples, the first ones, are counted; all if `None`.
        """
        if objective != ALL and self.metrics:
            raise ConfigurationError(
                "`metrics` need a single loader, found a loader per objective: leave them out, or "
                "use one loader"
            )
        scored = self.objectives if objective == ALL else self.objectives[objective : objective + 1]
        # the centre too, which `evaluate` reports beside the front
        rays = self._all_rays
        ray_tallies = tallies.setdefault(
            objective, [StreamingScores(scored, self.metrics) for _ in rays]
        )
        device = first(batch.targets).device
        for ray, tally in zip(rays, ray_tallies, strict=True):
            with _disable_autocast(device) if exact else nullcontext():
                outputs = self.compute_outputs(model, batch.inputs, ray)
            with _disable_autocast(device):
                # scores take outputs of several rays, ``[N, B, ...]``, here of one
                stacked = map_tensors(lambda out: out[None], outputs)
                if count is not None:
                    map_tensors(partial(check_rows, samples=len(batch)), stacked)
                stacked = map_tensors(lambda out: out[:, :count], stacked)
                tally.add(stacked, map_tensors(lambda target: target[:count], batch.targets))
        return outputs  # of the last ray, the centre

    def front(
        self, tallies: Tallies, *, split: str, gather: Callable[[Tensor], Tensor] | None = None
    ) -> tuple[Front, dict[str, float]]:
        """Return the front of a whole split, and the numbers to report of it.

        They are its hypervolume, and every score and metric at the centre.

        Args:
            tallies: of all batches.
            split: what the samples are.
            gather: from a tensor to those of all processes, one after another along the first axis.
        """
        reductions = {} if gather is None else _make_reductions(gather)
        numbers = [ALL] if ALL in tallies else list(range(len(self.objectives)))
        # a loader per objective may have given nothing for one of them
        missing = [self.objectives[j].name for j in numbers if j not in tallies]
        if missing:
            raise DataError(
                f"a front needs at least one batch, found none for `{missing[0]}`: check the loader"
            )
        rows = [
            torch.cat([tally.table(**reductions) for tally in tallies[number]], dim=1)
            for number in numbers
        ]
        combined = build_front(
            torch.cat(rows),
            self.objectives,
            self._all_rays,
            metrics=tuple(self.metrics),
            reference=self.reference,
            score_batch=None,
            split=split,
            provenance=None,
        )
        # the centre was evaluated after the rays of the front
        count = len(self.rays)
        front, centre = combined.take(range(count)), combined.take([count])
        with warnings.catch_warnings():
            # an early front may lie beyond the reference point
            warnings.simplefilter("ignore", FrontWarning)
            reported = {"hypervolume": metrics.hypervolume(front)}
        reported |= dict(zip(centre.names, centre.values[0].tolist(), strict=True))
        return front, reported | {name: float(v[0]) for name, v in centre.metrics.items()}


def _make_reductions(gather: Callable[[Tensor], Tensor]) -> dict[str, Any]:
    """Return how a tally combines sums and samples of several processes."""

    def add_up(sums: list[Tensor]) -> list[Tensor]:
        return [gather(value.unsqueeze(0)).sum(dim=0) for value in sums]

    def concatenate(samples: Tensor) -> Tensor:
        # collectives need one size: pad to the largest, then cut again
        sizes = gather(torch.tensor([len(samples)], device=samples.device)).tolist()
        padded = samples.new_zeros(max(sizes), *samples.shape[1:])
        padded[: len(samples)] = samples
        ranks = gather(padded).unflatten(0, (len(sizes), max(sizes)))
        return torch.cat([rank[:size] for rank, size in zip(ranks, sizes, strict=True)])

    return {"total": add_up, "gather": concatenate}


def _disable_autocast(device: torch.device) -> torch.autocast:
    """Return a context without autocast on a device."""
    return torch.autocast(device.type, enabled=False)
