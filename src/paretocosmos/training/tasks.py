"""A training as a task, which runs in any process, and its outcome."""

import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paretocosmos.errors import (
    BenchmarkWarning,
    FrontWarning,
    ParetoCosmosError,
    RunError,
    UntrustedError,
)
from paretocosmos.io.files import one_line, write_bytes
from paretocosmos.pareto.rays import has_only_corners
from paretocosmos.runtime.device import lacks_memory
from paretocosmos.training.progress import Progress, ProgressCallback

if TYPE_CHECKING:
    from paretocosmos.runs.run import Run

TRIES = 3
"""How often a task is begun whose worker is lost: what killed one may have meant another."""

POLL = 0.2
"""Seconds between two reads of the progress of tasks."""

# A bug in one of a hundred trainings must not be lost on the terminal.
LOG = "error.log"


class CallerError(Exception):
    """Carries an error of the caller's own progress function through a training."""

    def __init__(self, original: Exception) -> None:
        super().__init__(str(original))
        self.original = original


@dataclass(frozen=True)
class Task:
    """A training that can run in another process, or on another machine.

    Attributes:
        name: unique among the tasks that run together.
        folder: where its run folders go.
        train: trains in a folder, which on a machine that does not see `folder` is another one, and
            resumes what was begun there. It is sent to its process by pickle.
    """

    name: str
    folder: Path
    train: Callable[[Path, ProgressCallback], "Sequence[Run]"]


@dataclass(frozen=True)
class Outcome:
    """Outcome of a task.

    Attributes:
        error: why it failed, in a sentence; `None` if it did not.
        seconds: it took, all in all.
        notes: warnings, each once: the text and the category.
        share: its part of the time where several tasks ran on one device at the same time: an
            equal part of every moment. `None`: all of it.
        packages: what would have to be trusted, where that is why it failed.
        stops_all: whether every other task would fail like it, such as on a full disk.
    """

    error: str | None
    seconds: float
    notes: tuple[tuple[str, type[Warning]], ...] = ()
    share: float | None = None
    packages: tuple[str, ...] = ()
    stops_all: bool = False


Notify = Callable[[str, Progress | Outcome | None], None]
"""Called with the name of a task and its news: it begins (`None`), progress, or its outcome."""


def run_task(task: Task, progress: ProgressCallback) -> Outcome:
    """Run a task in this process; failures are returned, not raised.

    Args:
        task: the task.
        progress: called after every epoch.
    """
    started = time.perf_counter()
    failed: dict[str, Any] = {"error": None}
    single_task = False  # each network is for one objective, so they need not form a front
    # warnings of many tasks are shown together at the end, each once
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            runs = task.train(task.folder, progress)
            single_task = has_only_corners(runs[0].record["fixed_rays"])
        except ParetoCosmosError as error:
            failed = describe_failure(error)
        except CallerError:
            raise
        except Exception as bug:
            # the disk may be full, which may be why it failed in the first place
            with suppress(OSError):
                task.folder.mkdir(parents=True, exist_ok=True)
                text = "".join(traceback.format_exception(bug))
                write_bytes(task.folder / LOG, text.encode())
            failed["error"] = (
                f"stopped by {type(bug).__name__} ({one_line(bug)}), which is a bug: "
                f"`{task.folder / LOG}` has the details"
            )
    notes: dict[str, type[Warning]] = {}
    for warning in caught:
        if single_task and issubclass(warning.category, FrontWarning):
            continue
        # that a data set is only a benchmark holds for all tasks
        shared = issubclass(warning.category, BenchmarkWarning)
        notes[f"{'' if shared else f'{task.name}: '}{warning.message}"] = warning.category
    seconds = time.perf_counter() - started
    return Outcome(seconds=seconds, notes=tuple(notes.items()), **failed)


def describe_failure(error: ParetoCosmosError) -> dict[str, Any]:
    """Return what an outcome says of an error."""
    packages = error.packages if isinstance(error, UntrustedError) else ()
    # a full disk is full for the next training too, but a smaller one may find enough memory
    stops_all = isinstance(error, RunError) and not lacks_memory(error.__cause__)
    return {"error": str(error), "packages": packages, "stops_all": stops_all}
