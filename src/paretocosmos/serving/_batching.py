"""Rows of many requests, each with its ray, go through the network together."""

import asyncio
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import final

import numpy as np
import torch

from paretocosmos.serving._measures import Measures
from paretocosmos.serving._network import Answers, Network
from paretocosmos.serving._preference import Rays
from paretocosmos.serving._refusal import RefusedError
from paretocosmos.serving._rows import Numbers

__all__ = ["Batcher"]

# Seconds that the first of a batch waits for company.
COMPANY = 0.001
# Rows that may wait; more would only wait longer.
WAITING = 100_000
# And numbers in them: 128 megabytes.
NUMBERS = 32_000_000


@dataclass(frozen=True)
class Asked:
    """Rows of one request, and where their answers go."""

    rows: Numbers
    rays: Rays
    answers: "asyncio.Future[Answers]"


@final
class Batcher:
    """A queue on the event loop, and one thread that runs the network.

    The first request waits a millisecond for company; while a batch is computed the next ones
    gather. All bookkeeping is on the loop, so that there is nothing to lock.

    Args:
        network: answers rows with a ray for each.
        measures: what it counts.
        alone: one request a pass, to measure what batching is worth.
        threads: of a pass.
    """

    def __init__(
        self, network: Network, measures: Measures, *, alone: bool = False, threads: int = 1
    ) -> None:
        self._network, self._measures, self._alone = network, measures, alone
        self._waiting: deque[Asked] = deque()
        self._rows = self._numbers = 0
        self._busy = False
        self._timer: asyncio.TimerHandle | None = None
        # told to the thread itself: libraries below torch do not hear what others were told
        self._thread: Executor = ThreadPoolExecutor(
            1, "network", initializer=torch.set_num_threads, initargs=(threads,)
        )
        measures.waiting = lambda: self._rows

    async def answer(self, rows: Numbers, rays: Rays) -> Answers:
        """The network's answers for rows ``[N, ...]`` at rays ``[1, J]`` or ``[N, J]``."""
        if self._rows + len(rows) > WAITING or self._numbers + rows.size > NUMBERS:
            raise RefusedError(
                429, f"{self._rows:,} rows are waiting already: try again in a second"
            )
        asked = Asked(rows, rays, asyncio.get_running_loop().create_future())
        self._waiting.append(asked)
        self._rows += len(rows)
        self._numbers += rows.size
        if not self._busy and self._timer is None:
            wait = 0 if self._alone else COMPANY
            self._timer = asyncio.get_running_loop().call_later(wait, self._begin)
        return await asked.answers

    def close(self) -> None:
        """Let the thread end."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _begin(self) -> None:
        self._timer = None
        batch: list[Asked] = []
        rows = 0
        while self._waiting and not (batch and self._alone):
            count = len(self._waiting[0].rows)
            if batch and rows + count > self._network.limit:
                break
            asked = self._waiting.popleft()
            self._rows -= count
            self._numbers -= asked.rows.size
            if not asked.answers.done():  # its client may have left
                batch.append(asked)
                rows += count
        if not batch:
            return
        self._busy = True
        self._measures.batch(rows, requests=len(batch))
        loop = asyncio.get_running_loop()
        running = loop.run_in_executor(self._thread, computed, self._network, batch)
        running.add_done_callback(lambda done: self._end(batch, done))

    def _end(
        self,
        batch: Sequence[Asked],
        done: "asyncio.Future[list[Answers | Exception]]",
    ) -> None:
        self._busy = False
        for asked, answers in zip(batch, done.result(), strict=True):
            if asked.answers.done():
                continue
            if isinstance(answers, Exception):
                asked.answers.set_exception(answers)
            else:
                asked.answers.set_result(answers)
        if self._waiting:  # they have waited for company long enough
            self._begin()


def computed(network: Network, batch: Sequence[Asked]) -> list[Answers | Exception]:
    """The answers of every request; where a pass fails, each is tried alone."""
    try:
        if len(batch) == 1:
            return [network.answer(batch[0].rows, batch[0].rays)]
        rows = np.concatenate([asked.rows for asked in batch])
        rays = np.concatenate(
            [
                asked.rays
                if len(asked.rays) == len(asked.rows)
                # one ray for all of its rows
                else np.repeat(asked.rays, len(asked.rows), axis=0)
                for asked in batch
            ]
        )
        answers = network.answer(rows, rays)
    except Exception as error:
        if len(batch) == 1:
            return [error]
        return [one for asked in batch for one in computed(network, [asked])]
    ends = np.cumsum([len(asked.rows) for asked in batch])
    return [
        {head: out[end - len(asked.rows) : end] for head, out in answers.items()}
        for asked, end in zip(batch, ends, strict=True)
    ]
