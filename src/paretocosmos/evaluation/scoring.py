"""Scores of outputs: all at once, or summed over blocks of samples, and the front they make."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

import numpy as np
import torch
from torch import Tensor

from paretocosmos.errors import ConfigurationError, DataError, ParetoCosmosError
from paretocosmos.io.files import one_line
from paretocosmos.objectives import Objective, streamed
from paretocosmos.pareto.front import Front
from paretocosmos.problems import Problem
from paretocosmos.types import Metric, Outputs, Targets, first, list_tensors, map_tensors


def get_scores(problem: Problem) -> Mapping[str, Metric]:
    """Return all metrics and scores that a front reports, by name."""
    return dict(problem.metrics) | {o.name: o.score for o in problem.objectives}


def compute_table(
    objectives: Sequence[Objective],
    outputs: Outputs,
    targets: Targets,
    metrics: Mapping[str, Metric],
    score_batch: int | None,
) -> Tensor:
    """Compute every objective and metric ``[J + M, N]`` of outputs ``[N, B, ...]``."""
    scores = [o.score for o in objectives] + list(metrics.values())
    rows = [compute_score(score, outputs, targets, score_batch).double() for score in scores]
    return torch.stack(rows)


def build_front(
    table: Tensor,
    objectives: Sequence[Objective],
    rays: Tensor,
    *,
    metrics: Sequence[str],
    reference: Sequence[float],
    score_batch: int | None,
    split: str,
    provenance: Mapping[str, Any] | None = None,
) -> Front:
    """Build a front from a table ``[J + M, N]`` of numbers at rays ``[N, J]``."""
    numbers, count = table.cpu().numpy(), len(objectives)
    scores = "whole split" if score_batch is None else f"mean over batches of {score_batch}"
    return Front(
        rays=rays.double().cpu().numpy(),
        values=numbers[:count].T,
        names=tuple(objective.name for objective in objectives),
        reference=np.asarray(reference, dtype=np.float64),
        metrics=dict(zip(metrics, numbers[count:], strict=True)),
        split=split,
        provenance={"scores": scores} | dict(provenance or {}),
    )


def compute_score(metric: Metric, outputs: Outputs, targets: Targets, size: int | None) -> Tensor:
    """Compute one number per ray: from outputs ``[N, B, ...]`` to ``[N]``."""
    # all rays at once; targets are shared, not repeated
    per_ray = torch.vmap(metric, in_dims=(0, None))
    if size is None:
        return per_ray(outputs, targets)
    total = len(first(targets))
    full = total // size * size
    scores: list[Tensor] = []
    if full:

        def fold(axis: int) -> Callable[[Tensor], Tensor]:
            return lambda values: values.narrow(axis, 0, full).unflatten(axis, (-1, size))

        per_batch = torch.vmap(per_ray, in_dims=(1, 0))
        scores += per_batch(map_tensors(fold(1), outputs), map_tensors(fold(0), targets)).unbind()
    if full < total:  # the last batch is smaller and counts as much, as in the paper's code
        scores.append(per_ray(*slice_samples(outputs, targets, slice(full, None))))
    return torch.stack(scores).mean(dim=0)


def slice_samples(outputs: Outputs, targets: Targets, rows: slice) -> tuple[Outputs, Targets]:
    """Return some samples of outputs ``[N, B, ...]`` and targets ``[B, ...]``; no copies."""
    return (
        map_tensors(lambda out: out[:, rows], outputs),
        map_tensors(lambda target: target[rows], targets),
    )


# Memory for outputs of metrics that need all of them at once.
MOST_BYTES = 4 * 2**30

Gather = Callable[[Tensor], Tensor]


@final
class CollectedSamples:
    """Collect outputs and targets of blocks of samples, for what needs all of them at once.

    Args:
        purpose: what needs them, for messages.
        hint: what helps where they are too many.
    """

    def __init__(self, purpose: str, hint: str) -> None:
        self._purpose, self._hint, self._bytes = purpose, hint, 0
        self._parts: list[tuple[Any, Any]] = []

    def __len__(self) -> int:
        return len(self._parts)

    def add(self, outputs: Outputs, targets: Targets) -> None:
        """Add samples: outputs ``[N, b, ...]`` and targets ``[b, ...]``."""
        self._bytes += sum(head.nbytes for head in list_tensors(outputs))
        # a clear refusal before memory runs out
        if self._bytes > MOST_BYTES:
            raise DataError(
                f"{self._purpose} cannot be computed batch by batch and keeps all outputs of a "
                f"split, found more than {MOST_BYTES / 2**30:.3g} GB of them: {self._hint}"
            )
        self._parts.append((outputs, targets))

    def join(self, gather: Gather | None = None) -> tuple[Any, Any]:
        """Return all of them, ``[N, B, ...]`` and ``[B, ...]``.

        Args:
            gather: from samples of this process, along the first axis, to those of all.
        """

        def join_targets(*parts: Tensor) -> Tensor:
            return torch.cat(parts) if gather is None else gather(torch.cat(parts))

        def join_outputs(*parts: Tensor) -> Tensor:
            # a gather joins along the first axis
            return join_targets(*(part.movedim(1, 0) for part in parts)).movedim(0, 1)

        if not self._parts:
            raise DataError("a front needs at least one batch, found none: check the loader")
        outputs, targets = zip(*self._parts, strict=True)
        try:
            return map_tensors(join_outputs, *outputs), map_tensors(join_targets, *targets)
        except RuntimeError as error:
            if isinstance(error, ParetoCosmosError):
                raise
            raise DataError(
                f"{self._purpose} keeps all outputs of a split, and those of its batches differ in "
                f"more than their number of samples ({one_line(error)}): let `collate` make the "
                f"batches alike, or {self._hint}"
            ) from error


@final
class StreamingScores:
    """Scores at rays, from blocks of samples: sums of what adds up, so that no outputs are kept.

    A metric that needs all outputs at once has them kept, up to a limit. A mean of scores of
    batches keeps the samples of one batch.

    Args:
        objectives: what is scored.
        metrics: further numbers.
        score_batch: samples per score, whose mean is taken; `None` for all at once.
    """

    def __init__(
        self,
        objectives: Sequence[Objective],
        metrics: Mapping[str, Metric],
        *,
        score_batch: int | None = None,
    ) -> None:
        self._names = [objective.name for objective in objectives] + list(metrics)
        self._metrics = [objective.score for objective in objectives] + list(metrics.values())
        # `None` for a metric that does not add up
        self._streaming = [streamed(metric) for metric in self._metrics]
        self._batch = score_batch
        self._sums: dict[int, Tensor] = {}  # by the index of the metric
        self._batches = 0
        self._samples = self._collect()  # later all samples, or those of an unfinished batch

    @property
    def adds_up(self) -> bool:
        """True if sums are all it needs, so that several processes can each have a share."""
        return self._batch is None and None not in self._streaming

    def add(self, outputs: Outputs, targets: Targets, *, share: float = 1.0) -> None:
        """Add samples: outputs ``[N, b, ...]`` and targets ``[b, ...]``.

        Args:
            outputs: at all rays.
            targets: of the same samples.
            share: of the samples that is counted here, where others count them too.
        """
        if self._batch is not None:
            self._add_batches(outputs, targets, self._batch)
            return
        for index, streaming in enumerate(self._streaming):
            if streaming is not None:
                sums = torch.vmap(streaming.sums, in_dims=(0, None))(outputs, targets).double()
                # once, on the first block: a wrong `sums` would be wrong there already
                if index not in self._sums:
                    self._check_sums(index, torch.vmap(streaming.finish)(sums), outputs, targets)
                self._add_sums(index, sums * share)
        if not self.adds_up:
            self._samples.add(outputs, targets)

    def table(
        self,
        *,
        total: Callable[[list[Tensor]], list[Tensor]] = list,
        gather: Gather | None = None,
    ) -> Tensor:
        """Return every objective and metric ``[J + M, N]``.

        Args:
            total: from sums of this process to those of all.
            gather: from samples of this process, along the first axis, to those of all.
        """
        if self._batch is not None:
            return self._compute_mean_of_batches()
        if not self._sums and not self._samples:
            raise DataError("a front needs at least one batch, found none: check the loader")
        # one exchange between processes for all metrics
        sums = dict(zip(self._sums, total(list(self._sums.values())), strict=True))
        outputs, targets = ({}, {}) if self.adds_up else self._samples.join(gather)
        rows = []
        for index, (metric, streaming) in enumerate(
            zip(self._metrics, self._streaming, strict=True)
        ):
            if streaming is None:
                rows.append(compute_score(metric, outputs, targets, None).double())
            else:
                rows.append(torch.vmap(streaming.finish)(sums[index]).double())
        return torch.stack(rows)

    def _add_sums(self, index: int, sums: Tensor) -> None:
        self._sums[index] = self._sums[index] + sums if index in self._sums else sums

    def _collect(self) -> CollectedSamples:
        """Start to collect samples, with no samples yet."""
        pairs = zip(self._names, self._streaming, strict=True)
        need_all = [name for name, streaming in pairs if streaming is None]
        return CollectedSamples(
            " and ".join(f"`{name}`" for name in need_all or self._names),
            "take fewer `rays`, leave it out, or say how it adds up over samples (`sums` of an "
            "objective, `streaming` of a metric)",
        )

    def _add_batches(self, outputs: Outputs, targets: Targets, size: int) -> None:
        """Sum scores of whole batches; the samples of one that is not full wait."""
        self._samples.add(outputs, targets)
        outputs, targets = self._samples.join()
        count = len(first(targets)) // size
        if count:
            batches = slice_samples(outputs, targets, slice(count * size))
            for index, metric in enumerate(self._metrics):
                self._add_sums(index, compute_score(metric, *batches, size).double() * count)
            self._batches += count
        rest = slice_samples(outputs, targets, slice(count * size, None))
        self._samples = self._collect()
        # clones, or a few samples would keep the memory of all
        self._samples.add(*(map_tensors(torch.clone, values) for values in rest))

    def _compute_mean_of_batches(self) -> Tensor:
        outputs, targets = self._samples.join()
        rows = [self._sums.get(index, torch.zeros(())) for index in range(len(self._metrics))]
        count = self._batches
        if len(first(targets)):
            count += 1
            for index, metric in enumerate(self._metrics):
                last = compute_score(metric, outputs, targets, None).double()
                rows[index] = rows[index].to(last) + last
        return torch.stack(rows) / count

    def _check_sums(self, index: int, scores: Tensor, outputs: Outputs, targets: Targets) -> None:
        """Raise if sums do not give the score of the first block."""
        if not len(first(targets)):
            return
        expected = compute_score(self._metrics[index], outputs, targets, None)
        # sums in float64 and a score in float32 differ in the last digits
        close = torch.isclose(scores, expected.to(scores), rtol=1e-3, atol=1e-5, equal_nan=True)
        if not close.all():
            wrong = int((~close).int().argmax())
            raise ConfigurationError(
                f"the sums of `{self._names[index]}` must give its score, found {scores[wrong]:g} "
                f"by them and the score {expected[wrong]:g} on the same samples: fix `sums` and "
                "`from_sums` of the objective, or the sums passed to `streaming` of the metric"
            )
