"""Train experiments on several processes of this machine, or on a Ray cluster."""

import dataclasses
import logging
import multiprocessing
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
import uuid
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import torch

from paretocosmos._version import __version__
from paretocosmos.errors import ConfigurationError, MissingExtraError, RunError
from paretocosmos.io.files import one_line, write_bytes
from paretocosmos.paper.experiment import Job, Notify, Outcome, ReproduceOptions, train_experiment
from paretocosmos.paper.recipe import Experiment
from paretocosmos.training.fit import Progress

# How often an experiment is begun whose process is lost: what killed one may have meant another.
TRIES = 2


@dataclass
class _Worker:
    """A process, the connection to it, its current job, and its share of the device's time."""

    number: int
    process: BaseProcess
    connection: "Connection[Job, Progress | Outcome]"
    job: Job
    gpu: str | None
    started: float = 0.0
    share: float = 0.0


def train_on_workers(
    jobs: Sequence[Job], options: ReproduceOptions, notify: Notify, *, count: int
) -> None:
    """Train experiments side by side, each whole on one process.

    Args:
        jobs: experiments and the seeds that are not done, begun in this order.
        options: what they share.
        notify: called with news of an experiment.
        count: processes.
    """
    waiting, tries = deque(jobs), Counter[str]()
    numbers = list(range(min(count, len(jobs))))
    busy: list[_Worker] = []
    idle: list[_Worker] = []
    # more threads than cores would slow all of them down
    threads = max(1, torch.get_num_threads() // len(numbers))
    before = time.perf_counter()
    try:
        while waiting or busy:
            while waiting and (idle or numbers):
                job = waiting.popleft()
                tries[job[0].name] += 1
                notify(job[0], None)
                worker = (
                    idle.pop() if idle else _start_worker(numbers.pop(0), options, threads, job)
                )
                busy.append(_assign_job(worker, job))
            # one connection that is ready is enough: the others are served in the next round
            ready_connections = set(wait([worker.connection for worker in busy]))
            before = _share_time(busy, before)
            for worker in [worker for worker in busy if worker.connection in ready_connections]:
                experiment, seeds = worker.job
                try:
                    news = worker.connection.recv()
                except (EOFError, OSError):  # its process died, such as for want of memory
                    busy.remove(worker)
                    numbers.append(worker.number)
                    worker.process.join()
                    if tries[experiment.name] < TRIES:
                        waiting.appendleft((experiment, seeds))
                        continue
                    news = _describe_loss(worker)
                else:
                    if isinstance(news, Outcome):
                        # of the whole time, in which the process may have had to start
                        share = worker.share / (before - worker.started)
                        news = replace(news, share=share * news.seconds)
                        busy.remove(worker)
                        idle.append(worker)
                notify(experiment, news)
    finally:
        for worker in (*busy, *idle):
            worker.connection.close()
            worker.process.terminate()
            worker.process.join()


def _share_time(busy: Sequence[_Worker], before: float) -> float:
    """Add to every worker its part of the time since `before`, and return the time now.

    Workers on the same GPU, or on no GPU in particular, have equal shares.
    """
    now = time.perf_counter()
    per_gpu = Counter(worker.gpu for worker in busy)
    for worker in busy:
        worker.share += (now - max(before, worker.started)) / per_gpu[worker.gpu]
    return now


def _start_worker(number: int, options: ReproduceOptions, threads: int, job: Job) -> _Worker:
    # a fork would inherit the threads of torch and the state of CUDA, and could hang
    context = multiprocessing.get_context("spawn")
    connection, child_end = context.Pipe()
    gpu = _choose_gpu(number, options)
    process = context.Process(
        target=_serve_jobs, args=(child_end, options, threads, gpu), daemon=True
    )
    process.start()
    child_end.close()  # or its end would never be seen
    return _Worker(number, process, connection, job, gpu)


def _assign_job(worker: _Worker, job: Job) -> _Worker:
    worker.job, worker.started, worker.share = job, time.perf_counter(), 0.0
    with suppress(OSError):  # it is lost, which the next read shows
        worker.connection.send(job)
    return worker


def _serve_jobs(
    connection: Connection, options: ReproduceOptions, threads: int, gpu: str | None
) -> None:
    """Train experiments in a worker process until the connection closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    if gpu is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = gpu
    torch.set_num_threads(threads)  # before any training: the number is part of a record

    def report_progress(news: Progress | Outcome) -> None:
        try:
            connection.send(news)
        except OSError:  # the parent is gone: what is saved stays
            sys.exit(1)

    while True:
        try:
            experiment, seeds = connection.recv()
        except EOFError:
            return
        report_progress(train_experiment(experiment, options, seeds, report_progress))


def _choose_gpu(number: int, options: ReproduceOptions) -> str | None:
    """Choose the GPU that a process sees, in turn, where there are several to choose from."""
    count = torch.cuda.device_count()
    if options.device not in ("auto", "cuda") or count < 2:
        return None
    listed = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    names = listed.split(",") if listed else [str(n) for n in range(count)]
    return names[number % count]


def _describe_loss(worker: _Worker) -> Outcome:
    code = worker.process.exitcode or 0
    ending = f"by {signal.Signals(-code).name}" if code < 0 else f"with code {code}"
    why = f"its process ended {TRIES} times, at last {ending}: memory may be short"
    spent = time.perf_counter() - worker.started
    return Outcome(f"{why}, try fewer `workers`", spent, share=worker.share)


Files = Mapping[str, bytes]

# Restarts of an experiment whose worker is lost.
RETRIES = 2
# Seconds between two reads of the progress.
POLL = 0.5
# Seconds to wait for an answer of the cluster.
PATIENCE = 10.0
# CPUs of an experiment; it also gets a GPU where the cluster has some, unless device is cpu.
CPUS = 1


def train_on_ray(
    jobs: Sequence[Job], options: ReproduceOptions, notify: Notify, *, address: str
) -> None:
    """Train experiments as tasks of a cluster.

    A worker that sees the folder of the reproduction trains in it, so that what is interrupted goes
    on the next time. Any other trains in a folder of its own and sends the finished runs back.

    Args:
        jobs: experiments and the seeds that are not done.
        options: what they share.
        notify: called with news of an experiment.
        address: of the cluster, or ``"local"`` to start one here.
    """
    with _join_cluster(address) as ray:
        gpus = _gpus_per_task(ray.cluster_resources(), options)
        # without CPUs, so that it never waits for an experiment to end
        actor = ray.remote(num_cpus=0, max_restarts=-1)(ProgressActor).remote()
        # an experiment whose worker is lost is resumed from its checkpoint by the retry
        task_options = {"num_cpus": CPUS, "num_gpus": gpus, "max_retries": RETRIES}
        task = ray.remote(**task_options)(_train_remotely)
        experiments = {experiment.name: experiment for experiment, _ in jobs}
        with _shared_marker(options.out) as mark:
            remote_options = dataclasses.replace(options, out=options.out.absolute())
            arguments = (remote_options, mark, __version__, actor)
            pending = {
                task.remote(experiment, seeds, *arguments): experiment.name
                for experiment, seeds in jobs
            }
            try:
                while pending:
                    finished, _ = ray.wait(list(pending), timeout=POLL)
                    for name, news in _poll_progress(ray, actor):
                        # ignore messages of finished experiments, which would run again
                        if name in pending.values():
                            notify(experiments[name], news)
                    for reference in finished:
                        experiment = experiments[pending.pop(reference)]
                        notify(experiment, _get_outcome(ray, reference, experiment, options.out))
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


def _gpus_per_task(cluster: Mapping[str, float], options: ReproduceOptions) -> int:
    """Return the number of GPUs of an experiment."""
    available = cluster.get("GPU", 0) >= 1
    if options.device not in ("auto", "cpu") and not available:
        raise ConfigurationError(
            f"`{options.device}` needs a GPU, but no machine in the cluster has one: use "
            'device="cpu"'
        ).with_hint({"device": "cpu"})
    return int(available and options.device != "cpu")


class ProgressActor:
    """Ray actor that experiments write their progress to."""

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


def _train_remotely(
    experiment: Experiment,
    seeds: list[int],
    options: ReproduceOptions,
    mark: str,
    version: str,
    actor: Any,
) -> tuple[Outcome, Files]:
    """Train in a worker; return the files of finished runs if it has another file system."""
    if version != __version__:
        why = f"its worker has paretocosmos {__version__}, not {version}"
        return Outcome(f"{why}: install the same everywhere", 0.0), {}
    actor.write.remote(experiment.name, None)
    last = 0.0

    def report_progress(progress: Progress) -> None:
        nonlocal last
        # an epoch may take milliseconds, and each message is a call over the network
        if time.monotonic() - last > POLL:
            last = time.monotonic()
            actor.write.remote(experiment.name, progress)

    if (options.out / mark).exists():
        return train_experiment(experiment, options, seeds, report_progress), {}
    with tempfile.TemporaryDirectory(prefix="paretocosmos-") as folder:
        local = dataclasses.replace(options, out=Path(folder))
        outcome = train_experiment(experiment, local, seeds, report_progress)
        error = outcome.error and outcome.error.replace(folder, str(options.out))
        return dataclasses.replace(outcome, error=error), _read_files(experiment.folder(local.out))


def _read_files(folder: Path) -> Files:
    """Read an experiment's files: its log, and finished runs without their checkpoints."""
    runs = [path for path in sorted(folder.glob("seed-*")) if (path / "front.json").exists()]
    paths = [path for parent in (folder, *runs) for path in sorted(parent.iterdir())]
    files = [path for path in paths if path.is_file() and not path.name.startswith(".")]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def _write_files(folder: Path, files: Files) -> None:
    """Write an experiment's files; the record comes last, since it marks a run as finished."""
    for name in sorted(files, key=lambda name: (name.endswith("run.json"), name)):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, files[name])
        if path.name == "run.json":  # of a run that was begun here
            shutil.rmtree(path.parent / "checkpoint", ignore_errors=True)


def _get_outcome(ray: Any, reference: Any, experiment: Experiment, out: Path) -> Outcome:
    try:
        outcome: Outcome
        outcome, files = ray.get(reference)
        _write_files(experiment.folder(out), files)
    except ray.exceptions.RayTaskError as error:
        return Outcome(f"its worker could not begin ({one_line(error.cause)})", 0.0)
    except ray.exceptions.RayError as error:
        why = str(error).strip().partition("\n")[0]
        return Outcome(f"its worker was lost {RETRIES + 1} times ({why})", 0.0)
    except RunError as error:
        return dataclasses.replace(outcome, error=str(error))
    return outcome


@contextmanager
def _shared_marker(out: Path) -> Iterator[str]:
    """Create a file by which a worker recognises that it sees the same folder; yield its name."""
    mark = out / f".seen-{uuid.uuid4().hex}"
    mark.touch()
    try:
        yield mark.name
    finally:
        mark.unlink(missing_ok=True)
