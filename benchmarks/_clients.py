"""Clients that ask a server and know the answers: raw sockets, so that they cost little."""

import asyncio
import functools
import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

TOLERANCE = 1e-5  # of a probability; one is computed in company, the other alone


class Question(NamedTuple):
    """A request in bytes, and the probability that answers it."""

    request: bytes
    probability: float


@dataclass
class Log:
    """What clients saw.

    Attributes:
        seconds: of every answered request.
        seen: how often each thing happened: right, wrong, error, cut, refused.
    """

    seconds: list[float] = field(default_factory=list)
    seen: "Counter[str]" = field(default_factory=Counter)


class Client(asyncio.Protocol):
    """One connection that asks one question after the other.

    Args:
        questions: to ask.
        at: the first of them.
        step: to the next.
        log: what is seen.
    """

    def __init__(self, questions: Sequence[Question], at: int, step: int, log: Log) -> None:
        self.questions, self.at, self.step, self.log = questions, at, step, log
        self.buffer = b""
        self.asked = 0.0
        self.stopping = False
        self.waiting = False
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._ask()

    def _ask(self) -> None:
        assert self.transport is not None
        if self.stopping:
            self.transport.close()
            return
        self.at = (self.at + self.step) % len(self.questions)
        self.asked, self.waiting = time.perf_counter(), True
        self.transport.write(self.questions[self.at].request)

    def data_received(self, data: bytes) -> None:
        """Compare a whole answer, then ask again."""
        self.buffer += data
        head, gap, body = self.buffer.partition(b"\r\n\r\n")
        if not gap:
            return
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        if len(body) < length:
            return
        self.log.seconds.append(time.perf_counter() - self.asked)
        self.buffer, self.waiting = b"", False
        self.log.seen[self._judged(head, body)] += 1
        self._ask()

    def _judged(self, head: bytes, body: bytes) -> str:
        if not head.startswith(b"HTTP/1.1 200 "):
            return "error"
        (found,) = json.loads(body)["probabilities"]
        return "right" if abs(found - self.questions[self.at].probability) < TOLERANCE else "wrong"

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell whether an answer was still to come."""
        if self.waiting:
            self.log.seen["cut"] += 1
        if not self.ended.done():
            self.ended.set_result(None)


async def asking(
    port: int, questions: Sequence[Question], *, clients: int, seconds: float, log: Log
) -> None:
    """Some clients ask for some seconds; one that loses its connection comes again."""
    stop = time.perf_counter() + seconds

    async def one(number: int) -> None:
        at = number
        while time.perf_counter() < stop:
            try:
                _, client = await asyncio.get_running_loop().create_connection(
                    functools.partial(Client, questions, at, clients, log), "127.0.0.1", port
                )
            except OSError:
                log.seen["refused"] += 1
                await asyncio.sleep(0.05)
                continue
            rest = max(0.0, stop - time.perf_counter())
            asyncio.get_running_loop().call_later(rest, setattr, client, "stopping", True)
            await client.ended
            at = client.at

    await asyncio.gather(*(one(number) for number in range(clients)))
