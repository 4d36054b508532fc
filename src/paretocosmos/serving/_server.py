"""The server around the application: sockets, signals, workers."""

import contextlib
import functools
import signal
import socket
import sys
from collections.abc import Iterator
from typing import Any

import uvicorn
from uvicorn.supervisors import Multiprocess

from paretocosmos.errors import ConfigurationError
from paretocosmos.serving._app import make_app
from paretocosmos.serving._protocol import SlowClientProtocol
from paretocosmos.serving._settings import Settings

__all__ = ["configured", "hearing", "listen", "run_server"]

# Seconds after which a thread that computes may be interrupted by one that answers. Python's 5 ms
# are paid at every operation of the network while the event loop is busy.
SWITCH = 0.0005
BACKLOG = 2048
# Bytes of answers that the system keeps for a client, beside those that wait in the process.
SEND_BUFFER = 65_536
# Seconds in which a worker must say that it lives; on a busy machine it imports for longer than
# uvicorn's 5, and would be killed for it again and again.
SIGN_OF_LIFE = 60
# Open files to ask for where there is no limit.
FILES = 65_536


def listen(settings: Settings) -> socket.socket:
    """A socket on the address asked for; one that cannot be had is refused."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        sock = socket.create_server((settings.host, settings.port), family=family, backlog=BACKLOG)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise ConfigurationError(
            f"cannot listen on `{settings.host}` port {settings.port} ({why}): choose another "
            "`port` or `host`"
        ).by({"port": None, "host": None}) from error
    # a head and its body are two packets: the second must not wait for the first to be confirmed
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    # the system keeps little for each client, so that it is soon seen who reads on and who does not
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
    return sock


def configured(settings: Settings, app: Any) -> uvicorn.Config:
    """How uvicorn is to serve an application, or several workers each one of their own."""
    several = settings.workers > 1
    return uvicorn.Config(
        functools.partial(make_worker, settings) if several else app,
        factory=several,
        workers=settings.workers,
        http=SlowClientProtocol,
        ws="none",
        lifespan="on",
        access_log=False,
        log_level="warning",
        backlog=BACKLOG,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=settings.timeout,  # type: ignore[arg-type]  # tenths are fine
        timeout_graceful_shutdown=int(settings.timeout) + 5,
        timeout_worker_healthcheck=SIGN_OF_LIFE,
    )


@contextlib.contextmanager
def hearing(server: uvicorn.Server) -> Iterator[None]:
    """Let a server hear SIGINT and SIGTERM from before it is said to listen until it has ended.

    By itself it hears them later than that, and raises them again when it has finished, which would
    be another exit code than 0.
    """
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, server.handle_exit) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run_server(server: uvicorn.Server, sock: socket.socket) -> None:
    """Serve until SIGTERM or SIGINT, and then finish what was begun.

    Args:
        server: configured; several workers load the run anew.
        sock: listens already.
    """
    _prepare_process()
    if server.config.workers > 1:
        several = Multiprocess(server.config, sockets=[sock])  # which hears signals from here on
        if not server.should_exit:
            several.run()
    elif not server.should_exit:
        server.run(sockets=[sock])


def make_worker(settings: Settings) -> Any:
    """The application of one of several workers."""
    _prepare_process()
    return make_app(settings)


def _prepare_process() -> None:
    """As many open files as the system lets us have: a connection is one."""
    sys.setswitchinterval(SWITCH)
    try:
        import resource
    except ModuleNotFoundError:  # Windows has no such limit
        return
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES if most == resource.RLIM_INFINITY else most
    if now != resource.RLIM_INFINITY and now < wanted:
        with contextlib.suppress(OSError, ValueError):  # some systems allow less than they say
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
