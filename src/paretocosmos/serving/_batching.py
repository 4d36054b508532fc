"""Rows of many requests, each with its ray, go through the network together."""

import asyncio
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from itertools import accumulate, pairwise
from typing import NamedTuple, final

import numpy as np
import torch
from starlette.exceptions import HTTPException

from paretocosmos.serving._measures import Measures
from paretocosmos.serving._network import Answers, Network, Rays
from paretocosmos.serving._rows import Numbers

__all__ = ["Batcher"]

Results = list[Answers | Exception]
# Seconds that the first of a batch waits for company.
COMPANY = 0.001
# Rows that may wait; more would only wait longer.
WAITING = 100_000
# And numbers in them: 128 megabytes.
NUMBERS = 32_000_000


class Asked(NamedTuple):
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
        self._work: asyncio.Task[None] | None = None
        # told to the thread itself: libraries below torch do not hear what others were told
        self._thread: Executor = ThreadPoolExecutor(
            1, "network", initializer=torch.set_num_threads, initargs=(threads,)
        )
        measures.waiting.set_function(lambda: self._rows)

    async def answer(self, rows: Numbers, rays: Rays) -> Answers:
        """The network's answers for rows ``[N, ...]`` at rays ``[1, J]`` or ``[N, J]``."""
        if self._rows + len(rows) > WAITING or self._numbers + rows.size > NUMBERS:
            why = f"{self._rows:,} rows are waiting already: try again in a second"
            raise HTTPException(429, why)
        asked = Asked(rows, rays, asyncio.get_running_loop().create_future())
        self._waiting.append(asked)
        self._rows += len(rows)
        self._numbers += rows.size
        if self._work is None or self._work.done():
            self._work = asyncio.create_task(self._answer_all())
        return await asked.answers

    async def _answer_all(self) -> None:
        await asyncio.sleep(0 if self._alone else COMPANY)
        loop = asyncio.get_running_loop()
        while batch := self._taken():
            self._measures.batch(sum(len(asked.rows) for asked in batch), requests=len(batch))
            found = await loop.run_in_executor(self._thread, computed, self._network, batch)
            for asked, answers in zip(batch, found, strict=True):
                if asked.answers.done():  # its client has left
                    continue
                if isinstance(answers, Exception):
                    asked.answers.set_exception(answers)
                else:
                    asked.answers.set_result(answers)

    def _taken(self) -> list[Asked]:
        """As many of the waiting as go through the network at once."""
        batch: list[Asked] = []
        rows = 0
        while self._waiting and not (batch and self._alone):
            count = len(self._waiting[0].rows)
            if batch and rows + count > self._network.limit:
                break
            asked = self._waiting.popleft()
            self._rows -= count
            self._numbers -= asked.rows.size
            if not asked.answers.done():
                batch.append(asked)
                rows += count
        return batch


def computed(network: Network, batch: Sequence[Asked]) -> Results:
    """The answers of every request; where a pass fails, each is tried alone."""
    try:
        if len(batch) == 1:
            return [network.answer(batch[0].rows, batch[0].rays)]
        rows = np.concatenate([asked.rows for asked in batch])
        times = [len(asked.rows) // len(asked.rays) for asked in batch for _ in asked.rays]
        rays = np.repeat(np.concatenate([asked.rays for asked in batch]), times, axis=0)
        answers = network.answer(rows, rays)
    except Exception as error:
        if len(batch) == 1:
            return [error]
        return [one for asked in batch for one in computed(network, [asked])]
    ends = accumulate((len(asked.rows) for asked in batch), initial=0)
    return [{head: out[a:b] for head, out in answers.items()} for a, b in pairwise(ends)]
