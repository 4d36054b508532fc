"""An epoch as a Python loop over steps."""

import torch
from torch import Tensor

from paretocosmos.engine.recorded import Recorded
from paretocosmos.engine.work import Work

__all__ = ["Stepwise"]


class Stepwise:
    """Runs an epoch step by step; the step itself may be eager or recorded."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def prepare(self, order: Tensor, rays: Tensor) -> None:
        """Make whatever the epoch will need, so that it is not counted as training."""
        step = self._work.step
        if not isinstance(step, Recorded):
            return
        with self._work.rehearsing():
            for index, ray in distinct(self._work, order, rays):
                step(self._work.parameters, self._work.look(index), ray, self._work.state)

    def epoch(self, order: Tensor, rays: Tensor) -> Tensor:
        """Samples in order and rays to the losses ``[steps, ..., G, J]``, still on the device."""
        pieces = self._work.batches(order, rays)
        return torch.stack([self._work.advance(index, ray) for index, ray in pieces])

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
