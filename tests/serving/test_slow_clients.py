"""Clients that are slow, or no clients at all, are left; the others are answered."""

import contextlib
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from paretocosmos.serving import Settings
from paretocosmos.serving.batching import TorchNetwork

pytestmark = pytest.mark.system

HEAD = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
# Seconds after which a connection that is still open will never be closed; busy machines take some.
LIMIT = 120
# Seconds that the server waits: enough for a busy machine to get from one call to the next.
TIMEOUT = 3.0


@pytest.fixture(scope="module")
def hasty(serving_on_a_port: Callable[..., Any], folder: Path) -> Iterator[Any]:
    """A server that waits for nobody."""
    with serving_on_a_port(
        Settings(folder=folder, port=0, timeout=TIMEOUT, max_bytes=100_000)
    ) as server:
        yield server


@contextlib.contextmanager
def connected(server: Any) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", server.port), timeout=LIMIT) as sock:
        yield sock


def everything(sock: socket.socket) -> bytes:
    """What comes until the server closes the connection."""
    parts = []
    with contextlib.suppress(ConnectionResetError):
        while part := sock.recv(65_536):
            parts.append(part)
    return b"".join(parts)


def test_a_client_that_never_asks_is_left(hasty: Any) -> None:
    started = time.monotonic()
    with connected(hasty) as sock:
        assert everything(sock) == b""
    assert time.monotonic() - started < LIMIT


@pytest.mark.parametrize(
    "sent",
    [b"hello\r\n\r\n", b"\x16\x03\x01\x00", b"GET / HTTP/1.1\r\nX: " + b"a" * 200_000],
    ids=range(3),
)
def test_what_is_no_http(hasty: Any, sent: bytes) -> None:
    with connected(hasty) as sock:
        sock.sendall(sent)
        said = everything(sock)
    # TLS may look like a head that is not complete yet
    assert said.startswith(b"HTTP/1.1 400 ") or sent.startswith(b"\x16")
    assert b'{"error":"this is not HTTP' in said or said == b""


def test_a_body_that_does_not_come(hasty: Any) -> None:
    with connected(hasty) as sock:
        sock.sendall(HEAD + b"Content-Length: 100\r\n\r\n{")
        said = everything(sock)  # an answer, and then the end
    assert said.startswith(b"HTTP/1.1 408 ")
    assert b"the body did not arrive within 3 s" in said


def test_a_network_that_takes_too_long(
    hasty: Any, monkeypatch: pytest.MonkeyPatch, rows: list[dict[str, Any]]
) -> None:
    quick = TorchNetwork.run_pass

    def slow(*given: Any) -> Any:
        time.sleep(TIMEOUT + 0.5)
        return quick(*given)

    monkeypatch.setattr(TorchNetwork, "run_pass", slow)
    asked = {"inputs": rows[0], "preference": [1, 0]}
    answer = hasty.ask("/predict", asked)
    assert answer.status == 503
    assert answer.error == "the server is too busy: try again later"
    monkeypatch.undo()
    deadline = time.monotonic() + LIMIT
    while (answer := hasty.ask("/predict", asked)).status != 200:
        assert (answer.status, time.monotonic() < deadline) == (503, True)


def test_a_client_that_goes_in_the_middle(hasty: Any) -> None:
    for _ in range(20):
        with connected(hasty) as sock:
            sock.sendall(HEAD + b"Content-Length: 100\r\n\r\n{")
    assert hasty.ask("/health").status == 200
