"""An epoch as a Python loop over steps."""

from contextlib import closing

import torch
from torch import Tensor

from paretocosmos.training.engine.feed import all_given
from paretocosmos.training.engine.recorded import Recorded
from paretocosmos.training.engine.work import Work

__all__ = ["Stepwise"]


class Stepwise:
    """Runs an epoch step by step; the step itself may be eager or recorded."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def prepare(self, order: Tensor, rays: Tensor) -> None:
        """Make whatever the epoch will need, so that it is not counted as training."""
        work, step = self._work, self._work.step
        if not isinstance(step, Recorded):
            return
        pieces = distinct(work, order, rays)
        others: list[tuple[Tensor, Tensor]] = []
        if work.from_outside:  # other samples of the same sizes, and rays turned round
            others = distinct(work, order.flip(-1), rays.flip(-1))
        every = all_given(work.feed, [index for index, _ in (*pieces, *others)])
        with work.rolled_back():
            for given, (_, ray) in zip(every[: len(pieces)], pieces, strict=True):
                step(work.parameters, work.feed.batch_at(given), ray, work.state)
            for given, (_, ray) in zip(every[len(pieces) :], others, strict=True):
                step.confirm(work.parameters, work.feed.batch_at(given), ray, work.state)

    def epoch(self, order: Tensor, rays: Tensor) -> Tensor:
        """Samples in order and rays to the losses ``[steps, ..., G, J]``, still on the device."""
        work, pieces = self._work, [*self._work.batches(order, rays)]
        losses = []
        with closing(work.feed.run([index for index, _ in pieces])) as every:
            for given, (_, ray) in zip(every, pieces, strict=True):
                losses.append(work.advance(work.feed.batch_at(given), ray))
        return torch.stack(losses)

    @property
    def name(self) -> str:
        """How steps are run, for the record."""
        step = self._work.step
        return "eager" if not isinstance(step, Recorded) or step.failure else step.how

    @property
    def failure(self) -> str | None:
        """Why it is not run as it was meant to be."""
        step = self._work.step
        return step.failure if isinstance(step, Recorded) else None


def distinct(work: Work, order: Tensor, rays: Tensor) -> list[tuple[Tensor, Tensor]]:
    """The first batch of every size in an epoch: of the full size, and the short one."""
    found = {index.shape: (index, ray) for index, ray in reversed([*work.batches(order, rays)])}
    return list(found.values())
