"""A front from the batches that a loop of another library evaluates."""

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
from paretocosmos.integrations._checks import checked_reference
from paretocosmos.integrations._weighing import full
from paretocosmos.objectives import Objective
from paretocosmos.pareto import metrics
from paretocosmos.pareto.front import Front
from paretocosmos.pareto.rays import as_rays, even_rays
from paretocosmos.types import Batch, Inputs, Metric, first, map_tensors

Rays = int | Tensor | Sequence[Sequence[float]]


Tallies = dict[int, list[StreamingScores]]
"""A tally for every ray: of all objectives, or of each by its number, where each has a loader."""

ALL = -1


class Evaluator:
    """Scores a network at even rays, and at the centre of the simplex.

    A batch is shown to the network once per ray, so that whatever fits into memory in training
    fits here. Scores are those of all samples; outputs are kept only for metrics that need all of
    them at once.

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
        self.reference = checked_reference(reference, len(self.objectives))
        self.rays = self._checked(rays)

    def at(self, rays: Rays | None) -> "Evaluator":
        """The same at other rays."""
        wanted = self.rays if rays is None else rays
        return Evaluator(self.objectives, self.reference, self.metrics, wanted)

    def outputs(self, model: nn.Module, inputs: Inputs, ray: Tensor) -> Any:
        """What a network gives at a ray, its tensors in float32 at least."""
        parameter = next(p for p in model.parameters() if p.is_floating_point())
        return _tensors(full(model(inputs, ray.to(parameter))))

    @property
    def centre(self) -> Tensor:
        """The ray with equal weights ``[J]``."""
        return torch.full_like(self.rays[0], 1 / len(self.objectives))

    @property
    def _with_centre(self) -> Tensor:
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
        """Evaluate a batch, and give what the network gives at the centre.

        Args:
            tallies: what is added to.
            model: the network.
            batch: of the loader of all objectives, or of one.
            objective: its number, where it has a loader of its own.
            exact: whether the network runs in float32, whatever the loop around it does; scores
                are computed so in any case.
            count: how many samples, the first ones, are counted; all if `None`.
        """
        if objective != ALL and self.metrics:
            raise ConfigurationError(
                "`metrics` need a single loader, found a loader per objective: leave them out, or "
                "use one loader"
            )
        own = self.objectives if objective == ALL else self.objectives[objective : objective + 1]
        rays = self._with_centre
        held = tallies.setdefault(objective, [StreamingScores(own, self.metrics) for _ in rays])
        device = first(batch.targets).device
        for ray, tally in zip(rays, held, strict=True):
            with _in_full(device) if exact else nullcontext():
                outputs = self.outputs(model, batch.inputs, ray)
            with _in_full(device):
                some = map_tensors(lambda out: out[None], outputs)
                if count is not None:
                    map_tensors(partial(check_rows, samples=len(batch)), some)
                some = map_tensors(lambda out: out[:, :count], some)
                tally.add(some, map_tensors(lambda target: target[:count], batch.targets))
        return outputs

    def front(
        self, tallies: Tallies, *, split: str, gather: Callable[[Tensor], Tensor] | None = None
    ) -> tuple[Front, dict[str, float]]:
        """The front of a whole split, and the numbers to report of it.

        They are its hypervolume, and every score and metric at the centre.

        Args:
            tallies: of all batches.
            split: what the samples are.
            gather: from a tensor to those of all processes, one after another along the first axis.
        """
        several = {} if gather is None else _several(gather)
        names = [ALL] if ALL in tallies else range(len(self.objectives))
        missing = (
            []
            if ALL in tallies
            else [o.name for j, o in enumerate(self.objectives) if j not in tallies]
        )
        if missing:
            raise DataError(
                f"a front needs at least one batch, found none for `{missing[0]}`: check the loader"
            )
        rows = [
            torch.cat([tally.table(**several) for tally in tallies[name]], dim=1) for name in names
        ]
        every = build_front(
            torch.cat(rows),
            self.objectives,
            self._with_centre,
            metrics=tuple(self.metrics),
            reference=self.reference,
            score_batch=None,
            split=split,
            provenance=None,
        )
        front, centre = every.take(range(len(self.rays))), every.take([len(self.rays)])
        with warnings.catch_warnings():
            # an early front may lie beyond the reference point
            warnings.simplefilter("ignore", FrontWarning)
            reached = {"hypervolume": metrics.hypervolume(front)}
        reached |= dict(zip(centre.names, centre.values[0].tolist(), strict=True))
        return front, reached | {name: float(at[0]) for name, at in centre.metrics.items()}

    def _checked(self, rays: Rays) -> Tensor:
        if not isinstance(rays, int):
            return as_rays(rays, len(self.objectives))
        if rays < 1:
            raise ConfigurationError(f"`rays` must be at least 1, found {rays}")
        return even_rays(rays, len(self.objectives))


def _several(gather: Callable[[Tensor], Tensor]) -> dict[str, Any]:
    """How sums and samples of several processes become one, given how tensors of one size do."""

    def total(sums: list[Tensor]) -> list[Tensor]:
        return [gather(part.unsqueeze(0)).sum(dim=0) for part in sums]

    def join(part: Tensor) -> Tensor:
        sizes = gather(torch.tensor([len(part)], device=part.device)).tolist()
        padded = part.new_zeros(max(sizes), *part.shape[1:])
        padded[: len(part)] = part
        every = gather(padded).unflatten(0, (len(sizes), max(sizes)))
        return torch.cat([one[:size] for one, size in zip(every, sizes, strict=True)])

    return {"total": total, "gather": join}


def _in_full(device: torch.device) -> torch.autocast:
    return torch.autocast(device.type, enabled=False)


def _tensors(outputs: Any) -> Any:
    """Of a mapping, its tensors: a cache or a tuple of hidden states is not evaluated."""
    if not isinstance(outputs, Mapping):
        return outputs
    return {name: part for name, part in outputs.items() if isinstance(part, Tensor)}
