"""One scheduler for many trainings: in this process, on workers of this machine, or on a cluster.

`compare`, `sweep`, `fit(seeds=...)` and the reproduction of the paper describe what they train as
tasks, and `run_tasks` runs them. Wherever a task runs, its results are the same.
"""

import dataclasses
import multiprocessing
import os
import pickle
import signal
import threading
import time
import warnings
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

import torch

from paretocosmos.errors import ConfigurationError, RunError
from paretocosmos.io.files import one_line
from paretocosmos.io.schema import MOST_WORKERS
from paretocosmos.training.progress import Progress, ProgressCallback
from paretocosmos.training.tasks import (
    POLL,
    TRIES,
    CallerError,
    Notify,
    Outcome,
    Task,
    import_ray,
    run_on_ray,
    run_task,
)


def check_place(workers: int, cluster: str | None) -> None:
    """Raise if tasks cannot run on so many workers, or on such a cluster."""
    if not 0 <= workers <= MOST_WORKERS:
        raise ConfigurationError(f"`workers` must be from 0 to {MOST_WORKERS}, found {workers}")
    if workers and cluster is not None:
        raise ConfigurationError(
            "`workers` trains on this machine and `cluster` on others, found both: give one"
        )
    if cluster is not None:
        import_ray()


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
        try:
            pickle.dumps(tasks)
        except Exception as error:  # objects raise whatever they like
            raise ConfigurationError(
                "`workers` and `cluster` send a training to other processes, which this one cannot "
                f"be ({one_line(error)}): name problems, methods and networks instead of passing "
                "objects"
            ) from error
        if cluster is None:
            _run_on_workers(tasks, notify, min(workers, len(tasks)), device)
        else:
            run_on_ray(tasks, notify, cluster, device)
        return

    def tell_caller(name: str, progress: Progress) -> None:
        try:
            notify(name, progress)
        except Exception as error:  # by which a caller stops all tasks
            raise CallerError(error) from error

    for task in tasks:
        notify(task.name, None)
        try:
            outcome = run_task(task, partial(tell_caller, task.name))
        except CallerError as error:
            raise error.original from None
        notify(task.name, outcome)


def train_tasks(
    tasks: Sequence[Task],
    callbacks: Mapping[str, ProgressCallback | None],
    *,
    workers: int,
    cluster: str | None,
    device: str,
) -> dict[str, str]:
    """Run tasks, repeat their warnings, and return by name why some failed.

    What would fail every other task, such as a full disk, is raised.

    Args:
        tasks: begun in this order.
        callbacks: called after every epoch of the task of that name.
        workers: as for `run_tasks`.
        cluster: as for `run_tasks`.
        device: as for `run_tasks`.
    """
    failures: dict[str, str] = {}
    noted: set[str] = set()

    def notify(name: str, news: Progress | Outcome | None) -> None:
        callback = callbacks.get(name)
        if isinstance(news, Outcome):
            for note, category in news.notes:
                if note not in noted:
                    noted.add(note)
                    warnings.warn(note, category, stacklevel=4)
            if news.error is not None:
                if news.stops_all:
                    raise RunError(news.error)
                failures[name] = news.error
        elif news is not None and callback is not None:
            callback(news)

    run_tasks(tasks, notify, workers=workers, cluster=cluster, device=device)
    return failures


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

    def end_with_parent() -> None:  # what is saved stays
        parent = multiprocessing.parent_process()
        assert parent is not None
        parent.join()
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()


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
            seconds = time.perf_counter() - before
            # those on the same GPU, or on none, share the time
            per_gpu = Counter(active.worker.gpu for active in running.values())
            for active in running.values():
                active.share += seconds / per_gpu[active.worker.gpu]
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
