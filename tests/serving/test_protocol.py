"""Connections, on a clock and a transport without sockets: slow clients, and smuggled requests."""

import asyncio
import heapq
import itertools
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from paretocosmos.serving.auth import FramingMiddleware
from paretocosmos.serving.server import SlowClientProtocol

LIMIT = 10.0  # seconds
HIGH_WATER, LOW_WATER = 64_000, 16_000
ANSWER = b"x" * 5000
REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Timer:
    """A call that a clock makes later."""

    def __init__(self, call: Callable[[], object]) -> None:
        self.call, self.cancelled = call, False

    def cancel(self) -> None:
        self.cancelled = True


class Clock:
    """An event loop whose time moves only when a test moves it."""

    def __init__(self) -> None:
        self.now = 0.0
        self._order = itertools.count()
        self._timers: list[tuple[float, int, Timer]] = []

    def call_later(self, delay: float, call: Callable[[], object]) -> Timer:
        timer = Timer(call)
        heapq.heappush(self._timers, (self.now + delay, next(self._order), timer))
        return timer

    def create_task(self, work: Coroutine[Any, Any, None], **_: Any) -> "asyncio.Task[None]":
        return asyncio.get_running_loop().create_task(work)

    async def pass_time(self, seconds: float) -> None:
        end = self.now + seconds
        while self._timers and self._timers[0][0] <= end:
            self.now, _, timer = heapq.heappop(self._timers)
            if not timer.cancelled:
                timer.call()
            await settle()
        self.now = end


class Transport:
    """A connection whose system takes `room` bytes, and the rest as the client reads."""

    def __init__(self, room: int) -> None:
        self.room, self.waiting, self.sent = room, bytearray(), b""
        self.closed = self.aborted = False
        self.protocol: Any = None

    def write(self, data: bytes) -> None:
        assert not self.aborted
        self.waiting += data
        self.client_reads(0)
        if len(self.waiting) > HIGH_WATER:
            self.protocol.pause_writing()

    def client_reads(self, count: int) -> None:
        self.room += count
        taken, self.waiting = self.waiting[: self.room], self.waiting[self.room :]
        self.room -= len(taken)
        self.sent += bytes(taken)
        if len(self.waiting) < LOW_WATER:
            self.protocol.resume_writing()

    def get_write_buffer_size(self) -> int:
        return len(self.waiting)

    def get_extra_info(self, _name: str) -> None:
        return None

    def is_closing(self) -> bool:
        return self.closed or self.aborted

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.aborted = True
        self.protocol.connection_lost(ConnectionAbortedError())

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


async def settle() -> None:
    """Let every task go on until it waits."""
    for _ in range(50):
        await asyncio.sleep(0)


async def answer(scope: Any, _receive: Any, send: Callable[[Any], Awaitable[None]]) -> None:
    body = ANSWER * 100 if scope["path"] == "/large" else ANSWER
    length = [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": length})
    await send({"type": "http.response.body", "body": body})


class Connection:
    """A client's connection to a server of `app`."""

    def __init__(self, app: Any = answer, room: int = 0) -> None:
        config = uvicorn.Config(
            app,
            ws="none",
            lifespan="off",
            log_config=None,
            timeout_keep_alive=LIMIT,  # type: ignore[arg-type]
        )
        self.clock, self.transport = Clock(), Transport(room)
        self.protocol = SlowClientProtocol(config, ServerState(), {}, self.clock)  # type: ignore[arg-type]
        self.transport.protocol = self.protocol
        self.protocol.connection_made(self.transport)

    async def send(self, data: bytes) -> None:
        if data and not self.cut:
            self.protocol.data_received(data)
            await settle()

    @property
    def cut(self) -> bool:
        return self.transport.is_closing()


def test_a_client_that_never_sends_is_cut() -> None:
    async def act() -> None:
        link = Connection()
        await link.clock.pass_time(LIMIT - 1)
        assert not link.cut
        await link.clock.pass_time(2)
        assert link.transport.aborted

    asyncio.run(act())


@pytest.mark.parametrize("before", [b"", REQUEST], ids=["at first", "after a request"])
def test_a_client_that_sends_its_head_letter_by_letter_is_cut(before: bytes) -> None:
    async def act() -> None:
        link = Connection(room=10**6)
        await link.send(before)
        letters = 0
        while not link.cut and letters < 1000:
            await link.send(b"G" if not letters else b"E")
            await link.clock.pass_time(0.1)
            letters += 1
        assert link.transport.aborted
        assert LIMIT - 1 <= link.clock.now <= 2 * LIMIT + 1

    asyncio.run(act())


@pytest.mark.parametrize("room", [0, 20_000, 500_000], ids="{} bytes in the system".format)
@pytest.mark.parametrize("at_once", [1, 50])
def test_a_client_that_does_not_read_is_cut_however_much_it_asks(room: int, at_once: int) -> None:
    """Once the system's buffers are full, whatever their size."""

    async def act() -> None:
        link, requests = Connection(room=room), 0
        while not link.cut and requests < 10_000:
            await link.send(REQUEST * at_once)
            await link.clock.pass_time(1)
            requests += at_once
        assert link.transport.aborted
        assert len(link.transport.sent) == room
        filled = room / len(ANSWER) / at_once
        assert link.clock.now <= filled + 2 * LIMIT + 1

    asyncio.run(act())


def test_a_client_that_reads_nothing_of_one_large_answer_is_cut() -> None:
    async def act() -> None:
        link = Connection(room=1000)
        await link.send(REQUEST.replace(b"/ ", b"/large "))
        await link.clock.pass_time(2 * LIMIT + 1)
        assert link.transport.aborted

    asyncio.run(act())


def test_a_client_that_reads_slowly_gets_all_of_its_answer() -> None:
    async def act() -> None:
        link = Connection()
        await link.send(REQUEST.replace(b"/ ", b"/large "))
        for _ in range(100):
            await link.clock.pass_time(0.9 * LIMIT)
            assert not link.transport.aborted
            link.transport.client_reads(5100)
            await settle()
        assert link.transport.sent.endswith(ANSWER * 100)

    asyncio.run(act())


def test_a_client_that_asks_now_and_then_is_answered_each_time() -> None:
    async def act() -> None:
        link = Connection(room=10**9)
        for count in range(1, 50):
            await link.send(REQUEST)
            assert link.transport.sent.count(ANSWER) == count
            await link.clock.pass_time(0.9 * LIMIT)
            assert not link.cut
        await link.clock.pass_time(LIMIT)
        assert link.cut  # it asks no more

    asyncio.run(act())


def test_a_client_does_not_pay_for_a_server_that_takes_long() -> None:
    async def act() -> None:
        ready = asyncio.Event()

        async def late(scope: Any, receive: Any, send: Any) -> None:
            await ready.wait()
            await answer(scope, receive, send)

        link = Connection(late, room=10**6)
        await link.send(REQUEST)
        await link.clock.pass_time(20 * LIMIT)
        assert not link.cut
        ready.set()
        await settle()
        assert link.transport.sent.endswith(ANSWER)

    asyncio.run(act())


CHUNKED = b"Transfer-Encoding: chunked\r\n"
SMUGGLED = [
    b"POST / HTTP/1.1\r\nContent-Length: 4\r\n" + CHUNKED,
    b"POST / HTTP/1.1\r\n" + CHUNKED + b"Content-Length: 4\r\n",
    b"GET / HTTP/1.1\r\nTransfer-Encoding:chunked\r\nCONTENT-LENGTH:   0\r\n",
    b"POST / HTTP/1.0\r\nConnection: keep-alive\r\n" + CHUNKED,
]


@pytest.mark.parametrize("head", SMUGGLED, ids=range(4))
def test_a_request_behind_a_body_of_two_lengths_is_not_answered(head: bytes) -> None:
    """A proxy that goes by the other length takes the second request for a part of the body."""

    async def act() -> None:
        link = Connection(FramingMiddleware(answer), room=10**6)
        await link.send(head + b"Host: localhost\r\n\r\n0\r\n\r\n" + REQUEST)
        sent = link.transport.sent
        assert sent.startswith(b"HTTP/1.1 400 ")
        assert b"connection: close" in sent.lower()
        assert b"Content-Length" in sent
        assert (sent.count(b"HTTP/1.1 "), ANSWER in sent) == (1, False)
        assert link.transport.closed

    asyncio.run(act())


def test_a_body_of_one_length_is_answered() -> None:
    async def act() -> None:
        link = Connection(FramingMiddleware(answer), room=10**6)
        for head, body in ((CHUNKED, b"0\r\n\r\n"), (b"Content-Length: 4\r\n", b"five")):
            host = b"POST / HTTP/1.1\r\nHost: localhost\r\n"
            await link.send(host + head + b"\r\n" + body)
        assert link.transport.sent.count(b"HTTP/1.1 200 ") == 2
        assert not link.cut

    asyncio.run(act())
