"""Batches of any loader, and fronts computed from those that another library's loop evaluates."""

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
from paretocosmos.objectives import Objective
from paretocosmos.pareto import metrics
from paretocosmos.pareto.front import Front
from paretocosmos.pareto.rays import as_rays, even_rays
from paretocosmos.types import Batch, Inputs, Metric, first, map_tensors

Rays = int | Tensor | Sequence[Sequence[float]]

Tallies = list[StreamingScores]
"""A tally for every ray, after the first batch."""

# The target by which objectives weight samples if a batch has it.
WEIGHT = "weight"


def to_batch(data: Any, names: Sequence[str]) -> Batch:
    """Convert what a loader gives into a `Batch`.

    Args:
        data: a `Batch`; a pair of inputs and a mapping of targets; inputs and a tensor for each
            target; or a mapping, of which the columns named after a target are targets and the
            others inputs. `labels`, as Hugging Face's collators write it, is `label`.
        names: the targets that are read, in their order.

    >>> import torch
    >>> x, y = torch.zeros(4, 3), torch.ones(4)
    >>> to_batch((x, y), ["label"]).targets
    {'label': tensor([1., 1., 1., 1.])}
    >>> list(to_batch({"input_ids": x, "labels": y}, ["label"]).inputs)
    ['input_ids']
    """
    if isinstance(data, Batch):
        batch = data
    elif isinstance(data, Mapping):
        columns = dict(data)
        # collators of `transformers` rename `label`; a network's own loss would read `labels`
        if "label" in names and "label" not in columns and "labels" in columns:
            columns["label"] = columns.pop("labels")
        targets = {name: columns.pop(name) for name in (*names, WEIGHT) if name in columns}
        if not columns:
            raise DataError(
                f"a batch needs inputs as well as targets, found only {_quote_names(targets)}: add "
                "the inputs of the network"
            )
        batch = Batch(columns, targets)
    elif isinstance(data, list | tuple) and len(data) == 2 and isinstance(data[1], Mapping):
        batch = Batch(data[0], dict(data[1]))
    elif isinstance(data, list | tuple) and len(data) > 1:
        inputs, *values = data
        if len(values) != len(names):
            raise DataError(
                f"after the inputs, a batch must have a tensor for each target, {', '.join(names)},"
                f" found {len(values)}: pass the targets as a mapping"
            )
        batch = Batch(inputs, dict(zip(names, values, strict=True)))
    else:
        raise DataError(
            "a batch must be a mapping of columns, or inputs and targets, found "
            f"{type(data).__name__}: return one from the loader's `collate_fn`"
        )
    missing = [name for name in names if name not in batch.targets]
    if missing:
        raise DataError(
            f"the objectives read the target `{missing[0]}`, found {_quote_names(batch.targets)} "
            "in the batch: add it, or name another as the objective's `target`"
        )
    return batch


def extract_inputs(data: Any, names: Sequence[str]) -> Any:
    """Return the inputs of what a loader gives, which may have no targets."""
    if isinstance(data, Batch):
        return data.inputs
    if isinstance(data, Mapping):
        targets = {*names, WEIGHT, "labels" if "label" in names else ""}
        return {name: column for name, column in data.items() if name not in targets}
    return data[0] if isinstance(data, list | tuple) else data


def _quote_names(targets: Mapping[str, Any]) -> str:
    """Quote names for a message."""
    return ", ".join(f"`{name}`" for name in targets) or "none"


def to_float32(outputs: Any) -> Any:
    """Convert half-precision outputs to float32: no loss is computed in less."""
    half = (torch.bfloat16, torch.float16)
    return map_tensors(lambda out: out.float() if out.dtype in half else out, outputs)


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
        exact: bool = True,
        count: int | None = None,
    ) -> Any:
        """Evaluate a batch, and return the network's outputs at the centre.

        Args:
            tallies: what is added to.
            model: the network.
            batch: inputs and targets.
            exact: run the network in float32, whatever the loop around it does; scores are computed
                in float32 in any case.
            count: how many samples, the first ones, are counted; all if `None`.
        """
        # the centre too, which `evaluate` reports beside the front
        rays = self._all_rays
        if not tallies:
            tallies += [StreamingScores(self.objectives, self.metrics) for _ in rays]
        device = first(batch.targets).device.type
        for ray, tally in zip(rays, tallies, strict=True):
            with torch.autocast(device, enabled=False) if exact else nullcontext():
                outputs = self.compute_outputs(model, batch.inputs, ray)
            with torch.autocast(device, enabled=False):
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
        if not tallies:
            raise DataError("a front needs at least one batch, found none: check the loader")
        combined = build_front(
            torch.cat([tally.table(**reductions) for tally in tallies], dim=1),
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
