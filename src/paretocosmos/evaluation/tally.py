"""Scores of a split whose samples come one block after another."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

import torch
from torch import Tensor

from paretocosmos.errors import ConfigurationError, DataError, ParetoCosmosError
from paretocosmos.evaluation.scoring import score
from paretocosmos.io.files import one_line
from paretocosmos.objectives import Objective, streamed
from paretocosmos.types import Metric, Outputs, Targets, first, map_tensors

__all__ = ["KeptSamples", "Tally"]

# Of outputs that are kept for what needs all of them.
MOST_BYTES = 4 * 2**30


def _as_it_is(part: Tensor) -> Tensor:
    return part


@final
class KeptSamples:
    """Outputs and targets of blocks of samples, for what needs all of them at once.

    Args:
        whose: what needs them, for messages.
        way: what helps where they are too many.
    """

    def __init__(self, whose: str, way: str) -> None:
        self._whose, self._way, self._bytes = whose, way, 0
        self._parts: list[tuple[Any, Any]] = []

    def __len__(self) -> int:
        return len(self._parts)

    def add(self, outputs: Outputs, targets: Targets) -> None:
        """More samples: outputs ``[N, b, ...]`` and targets ``[b, ...]``."""

        def count(part: Tensor) -> Tensor:
            self._bytes += part.nbytes
            return part

        map_tensors(count, outputs)
        if self._bytes > MOST_BYTES:
            raise DataError(
                f"{self._whose} cannot be had batch by batch and keeps all outputs of a split, "
                f"found more than {MOST_BYTES / 2**30:.3g} GB of them: {self._way}"
            )
        self._parts.append((outputs, targets))

    def joined(self, gather: Callable[[Tensor], Tensor] = _as_it_is) -> tuple[Any, Any]:
        """All of them, ``[N, B, ...]`` and ``[B, ...]``.

        Args:
            gather: from samples of this process, along the first axis, to those of all.
        """

        def outputs(*parts: Tensor) -> Tensor:
            return gather(torch.cat([part.movedim(1, 0) for part in parts])).movedim(0, 1)

        def targets(*parts: Tensor) -> Tensor:
            return gather(torch.cat(parts))

        if not self._parts:
            raise DataError("a front needs at least one batch, found none: check the loader")
        given, truth = zip(*self._parts, strict=True)
        try:
            return map_tensors(outputs, *given), map_tensors(targets, *truth)
        except RuntimeError as error:
            if isinstance(error, ParetoCosmosError):
                raise
            raise DataError(
                f"{self._whose} keeps all outputs of a split, and those of its batches differ in "
                f"more than their number of samples ({one_line(error)}): let `collate` make the "
                f"batches alike, or {self._way}"
            ) from error


@final
class Tally:
    """Numbers at rays, from blocks of samples: sums of what adds up, so that no outputs are kept.

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
        self._names = [one.name for one in objectives] + list(metrics)
        self._every = [one.score for one in objectives] + list(metrics.values())
        self._how = [streamed(metric) for metric in self._every]
        self._batch = score_batch
        self._sums: dict[int, Tensor] = {}  # by the place of what they are of
        self._batches = 0
        self._kept = self._nothing_kept()  # later all samples, or those of an unfinished batch

    @property
    def adds_up(self) -> bool:
        """Whether sums are all it needs, so that several processes can each have a share."""
        return self._batch is None and None not in self._how

    def add(self, outputs: Outputs, targets: Targets, *, share: float = 1.0) -> None:
        """More samples: outputs ``[N, b, ...]`` and targets ``[b, ...]``.

        Args:
            outputs: at all rays.
            targets: of the same samples.
            share: of the samples that is counted here, where others count them too.
        """
        if self._batch is not None:
            self._add_batches(outputs, targets, self._batch)
            return
        for place, how in enumerate(self._how):
            if how is not None:
                found = torch.vmap(how.sums, in_dims=(0, None))(outputs, targets).double()
                if place not in self._sums:
                    self._check_sums(place, torch.vmap(how.finish)(found), outputs, targets)
                self._sum(place, found * share)
        if not self.adds_up:
            self._kept.add(outputs, targets)

    def table(
        self,
        *,
        total: Callable[[list[Tensor]], list[Tensor]] = list,
        gather: Callable[[Tensor], Tensor] = _as_it_is,
    ) -> Tensor:
        """Every objective and metric ``[J + M, N]``.

        Args:
            total: from sums of this process to those of all.
            gather: from samples of this process, along the first axis, to those of all.
        """
        if self._batch is not None:
            return self._table_of_batches()
        if not self._sums and not self._kept:
            raise DataError("a front needs at least one batch, found none: check the loader")
        sums = dict(zip(self._sums, total(list(self._sums.values())), strict=True))
        joined = None if self.adds_up else self._kept.joined(gather)
        rows = []
        for place, how in enumerate(self._how):
            if how is None:
                assert joined is not None
                rows.append(score(self._every[place], *joined, None).double())
            else:
                rows.append(torch.vmap(how.finish)(sums[place]).double())
        return torch.stack(rows)

    def _sum(self, place: int, found: Tensor) -> None:
        self._sums[place] = self._sums[place] + found if place in self._sums else found

    def _nothing_kept(self) -> KeptSamples:
        whole = [n for n, how in zip(self._names, self._how, strict=True) if how is None]
        return KeptSamples(
            " and ".join(f"`{name}`" for name in whole or self._names),
            "take fewer `rays`, leave it out, or say how it adds up over samples (`sums` of an "
            "objective, `streaming` of a metric)",
        )

    def _add_batches(self, outputs: Outputs, targets: Targets, size: int) -> None:
        """Scores of whole batches are summed; the samples of one that is not full wait."""
        self._kept.add(outputs, targets)
        outputs, targets = self._kept.joined()
        whole = len(first(targets)) // size * size
        if whole:
            cut = (
                map_tensors(lambda out: out[:, :whole], outputs),
                map_tensors(lambda t: t[:whole], targets),
            )
            for place, metric in enumerate(self._every):
                self._sum(place, score(metric, *cut, size).double() * (whole // size))
            self._batches += whole // size
        rest = map_tensors(lambda out: out[:, whole:].clone(), outputs)
        self._kept = self._nothing_kept()
        self._kept.add(rest, map_tensors(lambda t: t[whole:].clone(), targets))

    def _table_of_batches(self) -> Tensor:
        outputs, targets = self._kept.joined()
        rows = [self._sums.get(place, torch.zeros(())) for place in range(len(self._every))]
        count = self._batches
        if len(first(targets)):
            count += 1
            last = [score(metric, outputs, targets, None).double() for metric in self._every]
            rows = [row.to(one) + one for row, one in zip(rows, last, strict=True)]
        return torch.stack(rows) / count

    def _check_sums(self, place: int, found: Tensor, outputs: Outputs, targets: Targets) -> None:
        """Refuse sums that do not give the score of the first block."""
        if not len(first(targets)):
            return
        expected = score(self._every[place], outputs, targets, None)
        close = torch.isclose(found, expected.to(found), rtol=1e-3, atol=1e-5, equal_nan=True)
        if not close.all():
            at = int((~close).int().argmax())
            raise ConfigurationError(
                f"the sums of `{self._names[place]}` must give its score, found {found[at]:g} "
                f"by them and the score {expected[at]:g} on the same samples: fix `sums` and "
                "`from_sums` of the objective, or the sums passed to `streaming` of the metric"
            )
