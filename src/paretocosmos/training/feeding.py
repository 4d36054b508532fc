"""Where the batches of a training come from, and what is said of it."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import torch

from paretocosmos.config.plan import Plan
from paretocosmos.errors import DataWarning
from paretocosmos.problems import split_of
from paretocosmos.runtime.distributed import Processes
from paretocosmos.training.engine._choose import feed_of
from paretocosmos.training.engine.feed import Feed
from paretocosmos.training.engine.loaded import Loaded

__all__ = ["feed_for", "reading"]


def feed_for(plan: Plan, dtype: torch.dtype, processes: Processes) -> Feed:
    """The feed of a training: of a split in memory, or of a source that is read on the way."""
    source = plan.problem.source("train")
    if source is not None:
        return Loaded(plan, source, dtype, processes)
    return feed_of(
        split_of(plan.problem, "train"),
        plan.device,
        dtype,
        partial(processes.share_of_index, parts=plan.training.accumulate),
        alike=processes.joined,
    )


@contextmanager
def reading(plan: Plan, processes: Processes, *, epoch: int) -> Iterator[None]:
    """A training from an epoch on: says what is not read again, ends its readers."""
    source = plan.problem.source("train")
    if source is None:
        yield
        return
    if source.inexact and 0 < epoch < plan.training.epochs and processes.first:
        warnings.warn(
            f"training continues after epoch {epoch}, but not with the same samples as without the "
            f"interruption: {source.inexact}",
            DataWarning,
            stacklevel=5,
        )
    try:
        yield
    finally:
        source.end()
