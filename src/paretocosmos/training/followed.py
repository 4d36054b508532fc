"""Who follows a training while it runs: a bar, the caller, or nobody."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from paretocosmos.runs.resume import Job
from paretocosmos.runtime.distributed import Processes
from paretocosmos.training.progress import Progress

__all__ = ["Report", "followed"]

Report = Callable[[Progress], None]
"""What is called after every epoch."""
Followers = Callable[[list[list[Job]]], Sequence[Report | None]]


@contextmanager
def followed(progress: Report | bool, processes: Processes) -> Iterator[Followers]:
    """What is called after the epochs of each part that is trained: a bar's, the caller's, none."""
    if progress is not True or not processes.first:
        own = progress if callable(progress) else None
        yield lambda parts: [own for _ in parts]
        return
    from paretocosmos.training.bars import bars  # which takes a console

    with bars() as shown:

        def followers(parts: list[list[Job]]) -> list[Report | None]:
            several = len(parts) > 1
            names = [f"seed {part[0][0].seed}" if several else "" for part in parts]
            for part, name in zip(parts, names, strict=True):
                shown.expect(part[0][0].training.epochs, name)
            return [partial(shown, name) for name in names]

        yield followers
