"""A training as a task, which runs in any process, and its outcome; tasks on a Ray cluster.

The machines of a cluster need not share any files.
"""

import dataclasses
import logging
import os
import shutil
import socket
import tempfile
import time
import traceback
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paretocosmos._version import __version__
from paretocosmos.errors import (
    BenchmarkWarning,
    ConfigurationError,
    FrontWarning,
    MissingExtraError,
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


# Seconds to wait for an answer of the cluster.
PATIENCE = 10.0
# CPUs of a task on a cluster; it also gets a GPU where the cluster has some, unless device is cpu.
CPUS = 1

Files = Mapping[str, bytes]


def run_on_ray(tasks: Sequence[Task], notify: Notify, address: str, device: str) -> None:
    """Run tasks on a Ray cluster.

    A worker that sees a task's folder trains in it, so that what is interrupted goes on the next
    time. Any other trains in a folder of its own and sends the finished runs back.
    """
    with _join_cluster(address) as ray:
        has_gpus = ray.cluster_resources().get("GPU", 0) >= 1
        if device not in ("auto", "cpu") and not has_gpus:
            raise ConfigurationError(
                f'`{device}` needs a GPU, but no machine in the cluster has one: use device="cpu"'
            )
        gpus = int(has_gpus and device != "cpu")
        # without CPUs, so that it never waits for a task to end
        actor = ray.remote(num_cpus=0, max_restarts=-1)(ProgressActor).remote()
        # a task whose worker is lost is resumed from its checkpoint by the retry
        remote = ray.remote(num_cpus=CPUS, num_gpus=gpus, max_retries=TRIES - 1)(_run_remotely)
        tasks = [dataclasses.replace(task, folder=task.folder.absolute()) for task in tasks]
        with _mark_folder(Path(os.path.commonpath([task.folder for task in tasks]))) as mark:
            pending = {remote.remote(task, mark, __version__, actor): task for task in tasks}
            try:
                while pending:
                    finished, _ = ray.wait(list(pending), timeout=POLL)
                    running = {task.name for task in pending.values()}
                    messages: list[tuple[str, Progress | None]] = []
                    # an actor that was lost with its machine is replaced by another one
                    with suppress(ray.exceptions.RayError):
                        messages = ray.get(actor.take.remote())
                    for name, news in messages:
                        # ignore messages of finished tasks, which would run again
                        if name in running:
                            notify(name, news)
                    for reference in finished:
                        task = pending.pop(reference)
                        notify(task.name, _get_remote_outcome(ray, reference, task.folder))
            finally:
                for reference in pending:
                    ray.cancel(reference, force=True)


def import_ray() -> Any:
    """Import Ray, or raise with the extra to install."""
    try:
        import ray
    except ImportError as error:
        raise MissingExtraError("ray", "ray", "training on a Ray cluster") from error
    return ray


@contextmanager
def _join_cluster(address: str) -> Iterator[Any]:
    """Join a cluster, and leave it at the end; one that was started here ends."""
    ray = import_ray()
    joins_here = not ray.is_initialized()  # a caller's own connection is left as it is
    if joins_here:
        local_options = {"include_dashboard": False} if address == "local" else {}
        try:
            # on an address where nothing answers Ray itself would wait for minutes
            host, colon, port = address.removeprefix("ray://").rpartition(":")
            if colon and port.isdecimal():
                socket.create_connection((host, int(port)), timeout=PATIENCE).close()
            ray.init(address, log_to_driver=False, logging_level=logging.ERROR, **local_options)
        except (OSError, RuntimeError, ValueError) as error:
            raise ConfigurationError(
                f"there is no Ray cluster at `{address}` ({one_line(error)}): start one with `ray "
                'start --head`, or use cluster="local"'
            ) from error
    try:
        yield ray
    finally:
        if joins_here:
            ray.shutdown()


class ProgressActor:
    """Ray actor that tasks write their progress to."""

    def __init__(self) -> None:
        self._messages: list[tuple[str, Progress | None]] = []

    def write(self, name: str, progress: Progress | None) -> None:
        """Store a message; `None` is a start."""
        self._messages.append((name, progress))

    def take(self) -> list[tuple[str, Progress | None]]:
        """Return the messages since the last call, the oldest first."""
        messages, self._messages = self._messages, []
        return messages


def _run_remotely(task: Task, mark: Path, version: str, actor: Any) -> tuple[Outcome, Files]:
    """Run a task in a worker; return the files of finished runs if it has another file system."""
    if version != __version__:
        why = f"its worker has paretocosmos {__version__}, not {version}"
        return Outcome(f"{why}: install the same everywhere", 0.0), {}
    actor.write.remote(task.name, None)
    last = 0.0

    def report_progress(progress: Progress) -> None:
        nonlocal last
        # an epoch may take milliseconds, and each message is a call over the network
        if time.monotonic() - last > POLL:
            last = time.monotonic()
            actor.write.remote(task.name, progress)

    if mark.exists():
        return run_task(task, report_progress), {}
    with tempfile.TemporaryDirectory(prefix="paretocosmos-") as folder:

        def report_elsewhere(progress: Progress) -> None:
            home = task.folder / progress.folder.relative_to(folder)  # to continue from
            report_progress(dataclasses.replace(progress, folder=home))

        outcome = run_task(dataclasses.replace(task, folder=Path(folder)), report_elsewhere)
        error = outcome.error and outcome.error.replace(folder, str(task.folder))
        # the log, and finished runs without their checkpoints
        finished = [run for run in Path(folder).glob("seed-*") if (run / "front.json").exists()]
        paths = [path for parent in (Path(folder), *finished) for path in parent.iterdir()]
        files = {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in paths
            if path.is_file() and not path.name.startswith(".")
        }
        return dataclasses.replace(outcome, error=error), files


def _get_remote_outcome(ray: Any, reference: Any, folder: Path) -> Outcome:
    """Return the outcome of a task, and write the files that its worker sent."""
    try:
        outcome: Outcome
        outcome, files = ray.get(reference)
        # the record comes last, since it marks a run as finished
        for name in sorted(files, key=lambda name: (name.endswith("run.json"), name)):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            write_bytes(path, files[name])
            if path.name == "run.json":  # of a run that was begun here
                shutil.rmtree(path.parent / "checkpoint", ignore_errors=True)
    except ray.exceptions.RayTaskError as error:
        return Outcome(f"its worker could not begin ({one_line(error.cause)})", 0.0)
    except ray.exceptions.RayError as error:
        why = str(error).strip().partition("\n")[0]
        return Outcome(f"its worker was lost {TRIES} times ({why})", 0.0)
    except RunError as error:
        return dataclasses.replace(outcome, error=str(error))
    return outcome


@contextmanager
def _mark_folder(folder: Path) -> Iterator[Path]:
    """Create a file by which a worker recognises that it sees the same folder; yield its path."""
    folder.mkdir(parents=True, exist_ok=True)
    mark = folder / f".seen-{uuid.uuid4().hex}"
    mark.touch()
    try:
        yield mark
    finally:
        mark.unlink(missing_ok=True)
