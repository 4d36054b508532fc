"""Which runs are left to train, and which of them together; their folders are locked."""

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

from paretocosmos.config.plan import Plan
from paretocosmos.errors import RunError
from paretocosmos.io.files import lock_folder
from paretocosmos.runs.checkpoint import flaw_of
from paretocosmos.runs.folders import finished, refuse_other
from paretocosmos.runs.record import record_in
from paretocosmos.runs.saved import saved_in, side_by_side, sweep_run
from paretocosmos.runtime.distributed import Processes

__all__ = ["Job", "take_up"]

Job = tuple[Plan, Path]


def take_up(
    held: ExitStack, jobs: list[Job], processes: Processes, *, resume: bool, stacked: bool
) -> list[list[Job]]:
    """The runs that are left, those together that train as one, their folders locked and swept.

    Args:
        held: where the locks go.
        jobs: plans and their folders, whether finished, begun or neither.
        processes: those that train together; the first one locks.
        resume: whether some may be finished already.
        stacked: whether several of them train as one.
    """
    left = _unfinished(jobs, processes) if resume else jobs
    processes.together(lambda: _lock(held, jobs, left) if processes.first else None)
    left = _unfinished(jobs, processes)  # another process may have come to the end meanwhile
    if not stacked or not left:
        return [[job] for job in left]
    mates = _mates(left)
    for _, folder in mates:
        held.enter_context(lock_folder(folder))
    if mates:
        order = [plan.seed for plan, _ in jobs]
        asked = all(plan.seed in order for plan, _ in mates)
        left = sorted(
            [*left, *mates], key=lambda job: order.index(job[0].seed) if asked else job[0].seed
        )
    return [[left[at] for at in some] for some in side_by_side([folder for _, folder in left])]


def _unfinished(jobs: list[Job], processes: Processes) -> list[Job]:
    return [(plan, folder) for plan, folder in jobs if not finished(processes, folder, plan)]


def _lock(held: ExitStack, jobs: list[Job], left: list[Job]) -> None:
    """Keep other trainings from the folders of runs that are left; sweep out what killed ones left.

    A finished run may be in a read-only folder, and is touched only if there is something to sweep.
    """
    for _, folder in left:
        held.enter_context(lock_folder(folder))
        sweep_run(folder)
    trained = {folder for _, folder in left}
    for folder in (folder for _, folder in jobs if folder not in trained):
        if any(path.name.startswith(".") for path in folder.iterdir()):
            with suppress(RunError), lock_folder(folder):
                sweep_run(folder)


def _mates(left: list[Job]) -> list[Job]:
    """The finished runs that have to train once more with those that are left: hardly ever any.

    A stack finishes one seed after the other. If it was killed meanwhile, and the last checkpoint
    of a seed that is left is damaged, an epoch has to be repeated, and only the whole stack repeats
    it bit for bit. They lie beside, whether or not the caller asks for their seeds again.
    """
    last = left[0][0].training.epochs
    saved = [saved_in(folder).get(last) for _, folder in left]
    at_the_end = [path for path in saved if path is not None]
    if len(at_the_end) < len(left) or not any(flaw_of(path, last) for path in at_the_end):
        return []
    found: list[tuple[Job, int]] = []
    for job in _beside(left):
        with suppress(RunError):  # damaged, or of other settings: it is none of them
            record = record_in(job[1])
            refuse_other(job[1], record, job[0])
            if record["status"] == "finished" and last in saved_in(job[1]):
                found.append((job, record["seeds_together"]))
    counts = Counter(size for _, size in found)
    return [job for job, size in found if size == len(left) + counts[size]]


def _beside(left: list[Job]) -> Iterator[Job]:
    """The other seeds whose folders lie beside those of seeds that are left."""
    plan, folder = left[0]
    if folder.name != f"seed-{plan.seed}":
        return
    behind = {folder for _, folder in left}
    for other in folder.parent.glob("seed-*/run.json"):
        number = re.fullmatch(r"seed-(\d{1,19})", other.parent.name)
        if number and other.parent not in behind and int(number[1]) < 2**63:
            yield plan.for_seed(int(number[1])), other.parent
