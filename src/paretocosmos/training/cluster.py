"""Tasks on a Ray cluster, whose machines need not share any files."""

import dataclasses
import logging
import os
import shutil
import socket
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from paretocosmos._version import __version__
from paretocosmos.errors import ConfigurationError, MissingExtraError, RunError
from paretocosmos.io.files import one_line, write_bytes
from paretocosmos.training.progress import Progress
from paretocosmos.training.tasks import POLL, TRIES, Notify, Outcome, Task, run_task

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
        gpus = _gpus_per_task(ray.cluster_resources(), device)
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


def _gpus_per_task(resources: Mapping[str, float], device: str) -> int:
    """Return the number of GPUs of a task on a cluster with such resources."""
    available = resources.get("GPU", 0) >= 1
    if device not in ("auto", "cpu") and not available:
        raise ConfigurationError(
            f'`{device}` needs a GPU, but no machine in the cluster has one: use device="cpu"'
        )
    return int(available and device != "cpu")


class ProgressActor:
    """Ray actor that tasks write their progress to."""

    def __init__(self) -> None:
        self._messages: dict[str, list[Progress | None]] = {}

    def write(self, name: str, progress: Progress | None) -> None:
        """Store a message: a start (`None`) stays, progress replaces what came before it."""
        has_start = progress is not None and None in self._messages.get(name, [])
        self._messages[name] = [None, progress] if has_start else [progress]

    def take(self) -> list[tuple[str, Progress | None]]:
        """Return the messages since the last call, the oldest first."""
        messages = [(name, p) for name, queue in self._messages.items() for p in queue]
        self._messages = {}
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
        return dataclasses.replace(outcome, error=error), _read_files(Path(folder))


def _read_files(folder: Path) -> Files:
    """Read a task's files: its log, and finished runs without their checkpoints."""
    runs = [path for path in sorted(folder.glob("seed-*")) if (path / "front.json").exists()]
    paths = [path for parent in (folder, *runs) for path in sorted(parent.iterdir())]
    files = [path for path in paths if path.is_file() and not path.name.startswith(".")]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


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
