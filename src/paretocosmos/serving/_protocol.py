"""Connections, which are closed where the client does not do its part."""

import asyncio
from typing import Any, final

from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["SlowClientProtocol"]


class CountingTransport:
    """A transport that counts the bytes which the client's side has taken.

    Args:
        transport: what is written to.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._written = 0

    def write(self, data: bytes) -> None:
        """Send bytes, or keep them until the client reads on."""
        self._written += len(data)
        self._transport.write(data)

    @property
    def unsent(self) -> int:
        """Bytes that wait for the client to read on."""
        return self._transport.get_write_buffer_size()

    @property
    def taken(self) -> int:
        """Bytes that left this process, so far."""
        return self._written - self.unsent

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


@final
class SlowClientProtocol(H11Protocol):
    """HTTP, spoken only to clients that send whole requests and read the answers.

    While the server works on a request, it is its own fault if nothing happens. Otherwise the
    client has to complete a request or to read on, within `timeout_keep_alive` to twice that time.
    Only bytes that it took count: a client that sends requests and reads no answers does not stay.
    """

    transport: Any
    _taken = 0
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to watch the client."""
        super().connection_made(CountingTransport(transport))  # type: ignore[arg-type]
        self._timer = self.loop.call_later(self.timeout_keep_alive, self._check_progress)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop watching."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP as everything else is refused."""
        body = b'{"error":"this is not HTTP, or its head is too long"}'
        head = b"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\n"
        rest = b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body)
        self.transport.write(head + rest + body)
        self.transport.close()

    def _check_progress(self) -> None:
        answered = self.cycle is None or self.cycle.response_complete
        waits_for_client = answered or self.transport.unsent > 0
        if waits_for_client and self.transport.taken == self._taken:
            self.transport.abort()
            return
        self._taken = self.transport.taken
        self._timer = self.loop.call_later(self.timeout_keep_alive, self._check_progress)
