"""A front from the batches that a loop of another library evaluates."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from paretocosmos.errors import ConfigurationError, DataError, FrontWarning
from paretocosmos.evaluation.evaluate import scored
from paretocosmos.integrations._checks import checked_reference
from paretocosmos.integrations._weighing import full
from paretocosmos.objectives import Objective
from paretocosmos.pareto import metrics
from paretocosmos.pareto.front import Front
from paretocosmos.pareto.rays import as_rays, even_rays
from paretocosmos.types import Batch, Inputs, Metric, Targets, first, map_tensors

Rays = int | Tensor | Sequence[Sequence[float]]


@dataclass
class Gathered:
    """Outputs ``[B, N + 1, ...]`` and targets ``[B, ...]``, batch after batch."""

    outputs: list[Any] = field(default_factory=list)
    targets: list[Targets] = field(default_factory=list)

    def joined(self, gather: Callable[[Tensor], Tensor]) -> tuple[Any, Any]:
        """All of them, and those of other processes, which `gather` puts along the first axis."""
        if not self.targets:
            raise DataError("a front needs a batch at least, found none: look at the loader")

        def one(*parts: Tensor) -> Tensor:
            return gather(torch.cat(parts))

        return map_tensors(one, *self.outputs), map_tensors(one, *self.targets)


class Evaluator:
    """Scores a network at even rays, and at the centre of the simplex.

    A batch is shown to the network once per ray, so that whatever fits into memory in training
    fits here. Scores are computed over all samples at once.

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

    def outputs(self, model: nn.Module, inputs: Inputs) -> Any:
        """What a network gives at every ray and, last, at the centre: ``[B, N + 1, ...]``."""
        parameter = next(p for p in model.parameters() if p.is_floating_point())
        rays = self._with_centre.to(parameter)
        every = (_tensors(full(model(inputs, ray))) for ray in rays)
        return map_tensors(lambda *parts: torch.stack(parts, dim=1), *every)

    @property
    def _with_centre(self) -> Tensor:
        centre = torch.full_like(self.rays[:1], 1 / len(self.objectives))
        return torch.cat([self.rays, centre])

    def add(self, gathered: Gathered, model: nn.Module, batch: Batch) -> None:
        """Evaluate a batch in float32, whatever the loop around it does."""
        with _in_full(next(model.parameters()).device):
            gathered.outputs.append(self.outputs(model, batch.inputs))
        gathered.targets.append(batch.targets)

    def front(self, outputs: Any, targets: Any, *, split: str) -> tuple[Front, dict[str, float]]:
        """The front of a whole split, and the numbers to report of it.

        They are its hypervolume, and every score and metric at the centre.
        """
        with torch.no_grad(), _in_full(first(targets).device):
            every = scored(
                self.objectives,
                map_tensors(lambda out: out.movedim(1, 0), outputs),
                targets,
                self._with_centre,
                metrics=self.metrics,
                reference=self.reference,
                split=split,
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


def _in_full(device: torch.device) -> torch.autocast:
    return torch.autocast(device.type, enabled=False)


def _tensors(outputs: Any) -> Any:
    """Of a mapping, its tensors: a cache or a tuple of hidden states is not evaluated."""
    if not isinstance(outputs, Mapping):
        return outputs
    return {name: part for name, part in outputs.items() if isinstance(part, Tensor)}
