"""The server around the application: sockets, signals, workers and slow clients."""

import asyncio
import contextlib
import functools
import signal
import socket
import sys
from collections.abc import Iterator
from typing import Any, final

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.supervisors import Multiprocess

from paretocosmos.errors import ConfigurationError
from paretocosmos.serving.app import make_app
from paretocosmos.serving.settings import Settings


class CountingTransport:
    """A transport that counts the bytes that the client has drained."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._written = 0

    def write(self, data: bytes) -> None:
        """Send bytes, or keep them until the client reads on."""
        self._written += len(data)
        self._transport.write(data)

    @property
    def unsent(self) -> int:
        """Bytes that wait for the client to read."""
        return self._transport.get_write_buffer_size()

    @property
    def drained(self) -> int:
        """Bytes that have left this process."""
        return self._written - self.unsent

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


@final
class SlowClientProtocol(H11Protocol):
    """HTTP/1.1 that disconnects clients which neither complete a request nor read their answers.

    uvicorn has a timeout only for idle connections: not for a head that never ends, nor for a
    client that does not read. Unless the server itself is at work, a client must drain bytes within
    one to two periods of `timeout_keep_alive`; sending further requests does not count.
    """

    transport: Any
    _drained = 0
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Start to watch the client."""
        super().connection_made(CountingTransport(transport))  # type: ignore[arg-type]
        self._timer = self.loop.call_later(self.timeout_keep_alive, self._check_progress)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop watching."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP with an error in JSON, as all other errors."""
        body = b'{"error":"this is not HTTP, or its head is too long"}'
        head = b"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\n"
        rest = b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body)
        self.transport.write(head + rest + body)
        self.transport.close()

    def _check_progress(self) -> None:
        answered = self.cycle is None or self.cycle.response_complete
        waits_for_client = answered or self.transport.unsent > 0
        if waits_for_client and self.transport.drained == self._drained:
            # `close` would wait until the client has read everything that is buffered.
            self.transport.abort()
            return
        self._drained = self.transport.drained
        self._timer = self.loop.call_later(self.timeout_keep_alive, self._check_progress)


# Seconds after which a computing thread may be interrupted by the event loop. Python's default of
# 5 ms would delay every operation of the network while the event loop is busy.
SWITCH_INTERVAL = 0.0005
BACKLOG = 2048
# Bytes of answers that the system buffers for a client, beside those that wait in the process.
SEND_BUFFER = 65_536
# Seconds in which a worker must report; on a busy machine importing takes longer than uvicorn's 5,
# and the worker would be killed again and again.
HEALTHCHECK_SECONDS = 60
# Open files to request if there is no limit.
MAX_FILES = 65_536


def open_socket(settings: Settings) -> socket.socket:
    """Open a socket on the configured address."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        sock = socket.create_server((settings.host, settings.port), family=family, backlog=BACKLOG)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise ConfigurationError(
            f"cannot listen on `{settings.host}` port {settings.port} ({why}): choose another "
            "`port` or `host`"
        ).with_hint({"port": None, "host": None}) from error
    # a head and its body are two packets: the second must not wait for the first to be confirmed
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    # the system buffers little for each client, so that slow readers are soon noticed
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
    return sock


def make_config(settings: Settings, app: Any) -> uvicorn.Config:
    """Configure uvicorn for one application, or for several workers that each build their own."""
    multiple = settings.workers > 1
    return uvicorn.Config(
        functools.partial(make_worker_app, settings) if multiple else app,
        factory=multiple,
        workers=settings.workers,
        http=SlowClientProtocol,
        # No WebSockets: nothing here speaks them, and their protocol is code that could be
        # attacked.
        ws="none",
        lifespan="on",
        access_log=False,
        log_level="warning",
        backlog=BACKLOG,
        server_header=False,
        # Anybody could send such headers; nothing here depends on the address of a client.
        proxy_headers=False,
        timeout_keep_alive=settings.timeout,  # type: ignore[arg-type]  # tenths are fine
        timeout_graceful_shutdown=int(settings.timeout) + 5,
        timeout_worker_healthcheck=HEALTHCHECK_SECONDS,
    )


@contextlib.contextmanager
def handle_signals(server: uvicorn.Server) -> Iterator[None]:
    """Handle SIGINT and SIGTERM from before the server reports that it listens until it has ended.

    uvicorn installs its handlers later than that, and raises the signals again when it has
    finished, so that the exit code would not be 0.
    """
    signals = (signal.SIGINT, signal.SIGTERM)
    previous = {number: signal.signal(number, server.handle_exit) for number in signals}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def run_server(server: uvicorn.Server, sock: socket.socket) -> None:
    """Serve until SIGTERM or SIGINT, and then finish the open requests.

    Args:
        server: configured; several workers load the run anew.
        sock: listens already.
    """
    _prepare_process()
    if server.config.workers > 1:
        supervisor = Multiprocess(server.config, sockets=[sock])  # it handles signals from here on
        if not server.should_exit:
            supervisor.run()
    elif not server.should_exit:
        server.run(sockets=[sock])


def make_worker_app(settings: Settings) -> Any:
    """Build the application of one of several workers."""
    _prepare_process()
    return make_app(settings)


def _prepare_process() -> None:
    """Raise the limit of open files, of which every connection is one, and set the switch time."""
    sys.setswitchinterval(SWITCH_INTERVAL)
    try:
        import resource
    except ModuleNotFoundError:  # Windows has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Some systems report no limit, but do not accept infinity.
    wanted = MAX_FILES if hard == resource.RLIM_INFINITY else hard
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):  # some systems allow less than they report
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
