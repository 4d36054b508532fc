"""One scheduler for many trainings: in this process, on workers of this machine, or on a cluster.

`compare`, `sweep`, `fit(seeds=...)` and the reproduction of the paper describe what they train as
tasks, and `run_tasks` runs them. Wherever a task runs, its results are the same.
"""

import dataclasses
import logging
import multiprocessing
import os
import pickle
import shutil
import signal
import socket
import tempfile
import threading
import time
import traceback
import uuid
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch

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
from paretocosmos.io.schema import MOST_WORKERS
from paretocosmos.pareto.rays import has_only_corners
from paretocosmos.runs.run import Run
from paretocosmos.runtime.device import lacks_memory
from paretocosmos.training.progress import Progress, ProgressCallback

# How often a training is begun whose worker is lost: what killed one may have meant another.
TRIES = 3
# Seconds between two reads of the progress.
POLL = 0.2
# Seconds to wait for an answer of the cluster.
PATIENCE = 10.0
# CPUs of a task on a cluster; it also gets a GPU where the cluster has some, unless device is cpu.
CPUS = 1
# A bug in one of a hundred trainings must not be lost on the terminal.
LOG = "error.log"


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
    train: Callable[[Path, ProgressCallback], Sequence[Run]]


@dataclass(frozen=True)
class Outcome:
    """Outcome of a task.

    Attributes:
        error: why it failed, in a sentence; `None` if it did not.
        seconds: it took, all in all.
        notes: warnings, each once.
        share: its part of the time where several tasks ran on one device at the same time: an
            equal part of every moment. `None`: all of it.
        packages: what would have to be trusted, where that is why it failed.
        hints: the arguments that resolve the error.
        stops_all: whether every other task would fail like it, such as on a full disk.
    """

    error: str | None
    seconds: float
    notes: tuple[str, ...] = ()
    share: float | None = None
    packages: tuple[str, ...] = ()
    hints: Mapping[str, Any] = field(default_factory=dict)
    stops_all: bool = False


Notify = Callable[[str, Progress | Outcome | None], None]
"""Called with the name of a task and its news: it begins (`None`), progress, or its outcome."""


def check_place(workers: int, cluster: str | None) -> None:
    """Raise if tasks cannot run on so many workers, or on such a cluster."""
    if not 0 <= workers <= MOST_WORKERS:
        raise ConfigurationError(f"`workers` must be from 0 to {MOST_WORKERS}, found {workers}")
    if workers and cluster is not None:
        raise ConfigurationError(
            "`workers` trains on this machine and `cluster` on others, found both: give one"
        )
    if cluster is not None:
        _import_ray()


def run_tasks(
    tasks: Sequence[Task],
    notify: Notify,
    *,
    workers: int = 0,
    cluster: str | None = None,
    device: str = "auto",
) -> None:
    """Run tasks; one that fails does not stop the others.

    Args:
        tasks: begun in this order.
        notify: called with news of a task, always in this thread.
        workers: processes of this machine that run a task each; 0 runs all in this one.
        cluster: the address of a Ray cluster, or ``"local"`` to start one here.
        device: what the tasks train on: workers share the GPUs, and a cluster gives each one.
    """
    check_place(workers, cluster)
    if tasks and (workers or cluster is not None):
        _check_portable(tasks)
        if cluster is None:
            _run_on_workers(tasks, notify, min(workers, len(tasks)), device)
        else:
            _run_on_ray(tasks, notify, cluster, device)
        return
    for task in tasks:
        notify(task.name, None)
        notify(task.name, run_task(task, partial(notify, task.name)))


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
        except Exception as bug:
            failed["error"] = _log_bug(task.folder, bug)
    notes = []
    for warning in caught:
        if single_task and issubclass(warning.category, FrontWarning):
            continue
        # that a data set is only a benchmark holds for all tasks
        shared = issubclass(warning.category, BenchmarkWarning)
        notes.append(f"{'' if shared else f'{task.name}: '}{warning.message}")
    seconds = time.perf_counter() - started
    return Outcome(seconds=seconds, notes=tuple(dict.fromkeys(notes)), **failed)


def describe_failure(error: ParetoCosmosError) -> dict[str, Any]:
    """Return what an outcome says of an error."""
    packages = error.packages if isinstance(error, UntrustedError) else ()
    # a full disk is full for the next training too, but a smaller one may find enough memory
    stops_all = isinstance(error, RunError) and not lacks_memory(error.__cause__)
    return {
        "error": str(error),
        "packages": packages,
        "hints": dict(error.hints),
        "stops_all": stops_all,
    }


def _log_bug(folder: Path, bug: Exception) -> str:
    """Write the traceback of an unexpected error to a file, and return a sentence that names it."""
    # the disk may be full, which may be why it failed in the first place
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        write_bytes(folder / LOG, "".join(traceback.format_exception(bug)).encode())
    return (
        f"stopped by {type(bug).__name__} ({one_line(bug)}), which is a bug: "
        f"`{folder / LOG}` has the details"
    )


def _check_portable(tasks: Sequence[Task]) -> None:
    """Raise if a task cannot be sent to another process."""
    try:
        pickle.dumps(tasks)
    except Exception as error:  # objects raise whatever they like
        raise ConfigurationError(
            "`workers` and `cluster` send a training to other processes, which this one cannot be "
            f"({one_line(error)}): name problems, methods and networks instead of passing objects"
        ) from error


class _LocalWorker:
    """A process with an executor of its own: if it is killed, only its task is lost with it."""

    def __init__(self, gpu: str | None, threads: int) -> None:
        self.gpu, self._threads = gpu, threads
        # a fork would inherit the threads of torch and the state of CUDA, and could hang
        context = multiprocessing.get_context("spawn")
        self._news, self._writer = context.Pipe(duplex=False)
        self._executor = ProcessPoolExecutor(
            1, context, initializer=_prepare_worker, initargs=(self._writer, threads, gpu)
        )
        self._processes: set[Any] = set()

    def submit(self, task: Task) -> "Future[Outcome]":
        """Begin a task."""
        before = {*multiprocessing.active_children()}
        future = self._executor.submit(_run_in_worker, task)
        self._processes |= {*multiprocessing.active_children()} - before
        self._writer.close()  # the process has it, whose end would not be seen otherwise
        return future

    def take_progress(self) -> Iterator[Progress]:
        """Yield the progress since the last call."""
        with suppress(EOFError, OSError):  # of a process that was killed
            while self._news.poll():
                yield self._news.recv()

    def replace(self) -> "_LocalWorker":
        """Return a worker in place of this one, whose process was killed."""
        self.stop()
        return _LocalWorker(self.gpu, self._threads)

    def stop(self) -> None:
        """End the process, whatever it does."""
        for process in self._processes:
            process.terminate()
        self._executor.shutdown(cancel_futures=True)
        self._news.close()


_progress_pipe: "Connection[Progress, Any] | None" = None  # of a worker's process


def _prepare_worker(pipe: "Connection[Progress, Any]", threads: int, gpu: str | None) -> None:
    """Prepare a worker's process before its first task."""
    global _progress_pipe
    _progress_pipe = pipe
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    if gpu is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = gpu
    torch.set_num_threads(threads)  # before any training: the number is part of a record
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this process when the one that started it is gone: what is saved stays."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _run_in_worker(task: Task) -> Outcome:
    assert _progress_pipe is not None
    return run_task(task, _progress_pipe.send)


@dataclass
class _Running:
    """A task on a worker, how often it was begun, and its share of the device's time."""

    task: Task
    attempt: int
    worker: _LocalWorker
    started: float
    share: float = 0.0


def _run_on_workers(tasks: Sequence[Task], notify: Notify, count: int, device: str) -> None:
    """Run tasks side by side, each whole on one process."""
    # more threads than cores would slow all of them down
    threads = max(1, torch.get_num_threads() // count)
    idle = [_LocalWorker(_choose_gpu(number, device), threads) for number in range(count)]
    waiting = deque((task, 1) for task in tasks)
    running: dict[Future[Outcome], _Running] = {}
    try:
        while waiting or running:
            while waiting and idle:
                worker, (task, attempt) = idle.pop(), waiting.popleft()
                notify(task.name, None)
                future = worker.submit(task)
                running[future] = _Running(task, attempt, worker, time.perf_counter())
            before = time.perf_counter()
            finished, _ = wait(running, timeout=POLL, return_when=FIRST_COMPLETED)
            _share_time([*running.values()], time.perf_counter() - before)
            for active in running.values():
                for progress in active.worker.take_progress():
                    notify(active.task.name, progress)
            for future in finished:
                ended = running.pop(future)
                outcome = _get_local_outcome(future, ended)
                lost = outcome is None or future.exception() is not None
                idle.append(ended.worker.replace() if lost else ended.worker)
                if outcome is None:
                    waiting.appendleft((ended.task, ended.attempt + 1))
                else:
                    notify(ended.task.name, outcome)
    finally:
        for worker in (*idle, *(active.worker for active in running.values())):
            worker.stop()


def _share_time(running: Sequence[_Running], seconds: float) -> None:
    """Add to every task its part of some seconds: those on the same GPU, or on none, share them."""
    per_gpu = Counter(active.worker.gpu for active in running)
    for active in running:
        active.share += seconds / per_gpu[active.worker.gpu]


def _get_local_outcome(future: "Future[Outcome]", ended: _Running) -> Outcome | None:
    """Return the outcome of a task, `None` if its process was killed and another may try."""
    spent = time.perf_counter() - ended.started
    try:
        outcome = future.result()
    except BrokenProcessPool:  # its process died, such as for want of memory
        if ended.attempt < TRIES:
            return None
        why = f"its process was killed {TRIES} times: memory may be short, try fewer `workers`"
        return Outcome(why, spent, share=spent)
    # of the whole time, in which the process may have had to start
    return dataclasses.replace(outcome, share=ended.share / spent * outcome.seconds)


def _choose_gpu(number: int, device: str) -> str | None:
    """Choose the GPU that a process sees, in turn, where there are several to choose from."""
    count = torch.cuda.device_count()
    if device not in ("auto", "cuda") or count < 2:
        return None
    listed = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    names = listed.split(",") if listed else [str(n) for n in range(count)]
    return names[number % count]


Files = Mapping[str, bytes]


def _run_on_ray(tasks: Sequence[Task], notify: Notify, address: str, device: str) -> None:
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
                    for name, news in _poll_progress(ray, actor):
                        # ignore messages of finished tasks, which would run again
                        if name in running:
                            notify(name, news)
                    for reference in finished:
                        task = pending.pop(reference)
                        notify(task.name, _get_remote_outcome(ray, reference, task.folder))
            finally:
                for reference in pending:
                    ray.cancel(reference, force=True)


def _import_ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise MissingExtraError("ray", "ray", "training on a Ray cluster") from error
    return ray


@contextmanager
def _join_cluster(address: str) -> Iterator[Any]:
    """Join a cluster, and leave it at the end; one that was started here ends."""
    ray = _import_ray()
    joins_here = not ray.is_initialized()  # a caller's own connection is left as it is
    if joins_here:
        local_options = {"include_dashboard": False} if address == "local" else {}
        try:
            _check_address(address)
            ray.init(address, log_to_driver=False, logging_level=logging.ERROR, **local_options)
        except (OSError, RuntimeError, ValueError) as error:
            raise ConfigurationError(
                f"there is no Ray cluster at `{address}` ({one_line(error)}): start one with `ray "
                'start --head`, or use cluster="local"'
            ).with_hint({"cluster": "local"}) from error
    try:
        yield ray
    finally:
        if joins_here:
            ray.shutdown()


def _check_address(address: str) -> None:
    """Raise if nothing answers at HOST:PORT, on which Ray itself would wait for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon and port.isdecimal():
        socket.create_connection((host, int(port)), timeout=PATIENCE).close()


def _gpus_per_task(resources: Mapping[str, float], device: str) -> int:
    """Return the number of GPUs of a task on a cluster with such resources."""
    available = resources.get("GPU", 0) >= 1
    if device not in ("auto", "cpu") and not available:
        raise ConfigurationError(
            f'`{device}` needs a GPU, but no machine in the cluster has one: use device="cpu"'
        ).with_hint({"device": "cpu"})
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


def _poll_progress(ray: Any, actor: Any) -> list[tuple[str, Progress | None]]:
    try:
        messages: list[tuple[str, Progress | None]] = ray.get(actor.take.remote())
    except ray.exceptions.RayError:  # it was lost with its machine; another one comes
        return []
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
        outcome = run_task(dataclasses.replace(task, folder=Path(folder)), report_progress)
        error = outcome.error and outcome.error.replace(folder, str(task.folder))
        return dataclasses.replace(outcome, error=error), _read_files(Path(folder))


def _read_files(folder: Path) -> Files:
    """Read a task's files: its log, and finished runs without their checkpoints."""
    runs = [path for path in sorted(folder.glob("seed-*")) if (path / "front.json").exists()]
    paths = [path for parent in (folder, *runs) for path in sorted(parent.iterdir())]
    files = [path for path in paths if path.is_file() and not path.name.startswith(".")]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def _write_files(folder: Path, files: Files) -> None:
    """Write a task's files; the record comes last, since it marks a run as finished."""
    for name in sorted(files, key=lambda name: (name.endswith("run.json"), name)):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, files[name])
        if path.name == "run.json":  # of a run that was begun here
            shutil.rmtree(path.parent / "checkpoint", ignore_errors=True)


def _get_remote_outcome(ray: Any, reference: Any, folder: Path) -> Outcome:
    try:
        outcome: Outcome
        outcome, files = ray.get(reference)
        _write_files(folder, files)
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
