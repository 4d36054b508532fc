"""The server around the application: its socket, signals and workers."""

import contextlib
import functools
import math
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


@final
class SentenceProtocol(H11Protocol):
    """HTTP/1.1 that answers what is not HTTP with an error in JSON, as all other errors.

    uvicorn's own answer is plain text, and fails where another answer has begun.
    """

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP, and end the connection."""
        body = b'{"error":"this is not HTTP, or its head is too long"}'
        head = b"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\n"
        rest = b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body)
        self.transport.write(head + rest + body)
        self.transport.close()


# Seconds after which a computing thread may be interrupted by the event loop. Python's default of
# 5 ms would delay every operation of the network while the event loop is busy.
SWITCH_INTERVAL = 0.0005
BACKLOG = 2048
# Seconds in which a worker must report; on a busy machine importing takes longer than uvicorn's 5,
# and the worker would be killed again and again.
HEALTHCHECK_SECONDS = 60


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
        ) from error
    # a head and its body are two packets: the second must not wait for the first to be confirmed
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def make_config(settings: Settings, app: Any) -> uvicorn.Config:
    """Configure uvicorn for one application, or for several workers that each build their own."""
    multiple = settings.workers > 1
    return uvicorn.Config(
        functools.partial(make_worker_app, settings) if multiple else app,
        factory=multiple,
        workers=settings.workers,
        http=SentenceProtocol,
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
        timeout_keep_alive=math.ceil(settings.timeout),
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
    sys.setswitchinterval(SWITCH_INTERVAL)
    if server.config.workers > 1:
        supervisor = Multiprocess(server.config, sockets=[sock])  # it handles signals from here on
        if not server.should_exit:
            supervisor.run()
    elif not server.should_exit:
        server.run(sockets=[sock])


def make_worker_app(settings: Settings) -> Any:
    """Build the application of one of several workers."""
    sys.setswitchinterval(SWITCH_INTERVAL)
    return make_app(settings)
