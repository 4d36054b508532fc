"""Cells on several processes of this machine; one that is killed takes only its cell with it."""

import multiprocessing
import os
import signal
import sys
import time
from collections import Counter, deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

import torch

from paretocosmos.paper._cell import Job, Outcome, ReproduceOptions, Tell, train
from paretocosmos.training.fit import Progress

__all__ = ["on_workers"]

# How often a cell is begun whose process is lost: what killed one may have meant another.
TRIES = 2


@dataclass
class _Worker:
    """A process, the line to it, what it is at, and its part of the device's time for that."""

    place: int
    process: BaseProcess
    line: "Connection[Job, Progress | Outcome]"
    job: Job
    gpu: str | None
    began: float = 0.0
    share: float = 0.0


def on_workers(jobs: Sequence[Job], how: ReproduceOptions, tell: Tell, *, count: int) -> None:
    """Train cells side by side, each whole on one process.

    Args:
        jobs: cells and the seeds that are not done, begun in this order.
        how: what they share.
        tell: called with what a cell says.
        count: processes.
    """
    waiting, tries = deque(jobs), Counter[str]()
    places = list(range(min(count, len(jobs))))
    busy: list[_Worker] = []
    idle: list[_Worker] = []
    threads = max(1, torch.get_num_threads() // len(places))
    before = time.perf_counter()
    try:
        while waiting or busy:
            while waiting and (idle or places):
                job = waiting.popleft()
                tries[job[0].name] += 1
                tell(job[0], None)
                worker = idle.pop() if idle else _start(places.pop(0), how, threads, job)
                busy.append(_set_to(worker, job))
            ready = set(wait([worker.line for worker in busy]))
            before = _shared(busy, before)
            for worker in [one for one in busy if one.line in ready]:
                cell, seeds = worker.job
                try:
                    said = worker.line.recv()
                except (EOFError, OSError):
                    busy.remove(worker)
                    places.append(worker.place)
                    worker.process.join()
                    if tries[cell.name] < TRIES:
                        waiting.appendleft((cell, seeds))
                        continue
                    said = _lost(worker)
                else:
                    if isinstance(said, Outcome):
                        # of the whole time, in which the process may have had to start
                        part = worker.share / (before - worker.began)
                        said = replace(said, share=part * said.seconds)
                        busy.remove(worker)
                        idle.append(worker)
                tell(cell, said)
    finally:
        for worker in (*busy, *idle):
            worker.line.close()
            worker.process.terminate()
            worker.process.join()


def _shared(busy: Sequence[_Worker], before: float) -> float:
    """Give every worker its part of the time since `before`, and say what time it is.

    Workers on the same GPU, or on no GPU in particular, have equal parts.
    """
    now = time.perf_counter()
    beside = Counter(worker.gpu for worker in busy)
    for worker in busy:
        worker.share += (now - max(before, worker.began)) / beside[worker.gpu]
    return now


def _start(place: int, how: ReproduceOptions, threads: int, job: Job) -> _Worker:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    gpu = _gpu(place, how)
    process = context.Process(target=_serve, args=(theirs, how, threads, gpu), daemon=True)
    process.start()
    theirs.close()  # or its end would never be seen
    return _Worker(place, process, ours, job, gpu)


def _set_to(worker: _Worker, job: Job) -> _Worker:
    worker.job, worker.began, worker.share = job, time.perf_counter(), 0.0
    with suppress(OSError):  # it is lost, which the next look at its line tells
        worker.line.send(job)
    return worker


def _serve(line: Connection, how: ReproduceOptions, threads: int, gpu: str | None) -> None:
    """What a process does: cell after cell, until nobody asks for more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one that started us
    if gpu is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = gpu
    torch.set_num_threads(threads)

    def say(what: Progress | Outcome) -> None:
        try:
            line.send(what)
        except OSError:  # the one that started us is gone: what is saved is saved
            sys.exit(1)

    while True:
        try:
            cell, seeds = line.recv()
        except EOFError:
            return
        say(train(cell, how, seeds, say))


def _gpu(place: int, how: ReproduceOptions) -> str | None:
    """The GPU a process sees, in turn, where there are several and no one was asked for."""
    count = torch.cuda.device_count()
    if how.device not in ("auto", "cuda") or count < 2:
        return None
    listed = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    names = listed.split(",") if listed else [str(n) for n in range(count)]
    return names[place % count]


def _lost(worker: _Worker) -> Outcome:
    code = worker.process.exitcode or 0
    how = f"by {signal.Signals(-code).name}" if code < 0 else f"with code {code}"
    why = f"its process ended {TRIES} times, at last {how}: memory may be short"
    spent = time.perf_counter() - worker.began
    return Outcome(f"{why}, try fewer `workers`", spent, share=worker.share)
