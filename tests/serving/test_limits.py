"""Large bodies, many rows, slow and broken clients: the server stays, and answers the others."""

import contextlib
import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from paretocosmos.serving import Settings, request_body
from paretocosmos.serving.batching import Network

HEAD = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@contextlib.contextmanager
def connected(server: Any) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", server.port), timeout=120) as sock:
        yield sock


def answer_of(sock: socket.socket) -> bytes:
    """One whole answer; its head and its body may come one after the other."""
    said = b""
    while b"\r\n\r\n" not in said or not said.endswith(b"}"):
        part = sock.recv(65_536)
        assert part, said
        said += part
    return said


def memory() -> int:
    """Bytes of this process, which is the server's as well."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.system
def test_a_body_that_says_it_is_too_large_is_refused_unread(server_on_a_port: Any) -> None:
    with connected(server_on_a_port) as sock:
        sock.sendall(HEAD + b"Content-Length: 1073741824\r\nExpect: 100-continue\r\n\r\n")
        said = answer_of(sock)
    assert said.startswith(b"HTTP/1.1 413 ")
    assert b"a body has at most 100,000 bytes, found 1,073,741,824" in said


@pytest.mark.system
def test_a_body_that_does_not_say_is_refused_while_it_comes(server_on_a_port: Any) -> None:
    before, most, piece = memory(), 0, b"%x\r\n%b\r\n" % (1 << 20, b" " * (1 << 20))
    with connected(server_on_a_port) as sock:
        sock.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        for _ in range(200):  # MB
            sock.sendall(piece)
            most = max(most, memory() - before)
        sock.sendall(b"0\r\n\r\n")
        said = answer_of(sock)
    assert said.startswith(b"HTTP/1.1 413 ")
    assert b"and more: send several" in said
    assert most < 40 << 20
    assert server_on_a_port.ask("/health").status == 200


def test_too_many_rows(server: Any, rows: list[dict[str, Any]]) -> None:
    answer = server.ask("/predict", {"inputs": rows[:101], "preference": [1, 0]})
    assert answer.status == 413
    assert answer.error == "a request can have at most 100 rows, found 101: send several"


def test_a_large_body_within_the_limits(
    serving: Callable[..., Any], folder: Path, run: Any, rows: list[dict[str, Any]]
) -> None:
    import pandas as pd

    many = rows * 5
    with serving(Settings(folder=folder, port=0)) as server:
        said = server.ask("/predict", {"inputs": many, "preference": [0.5, 0.5]}).json
    assert len(json.dumps(many)) > request_body.MAX_INLINE_BYTES  # so that it is read in a thread
    expected = run.predict(pd.DataFrame(many), ray=[0.5, 0.5])
    assert said["probabilities"] == pytest.approx(expected.tolist(), abs=1e-6)


@pytest.mark.system
def test_bodies_of_all_clients_together(
    server_on_a_port: Any, monkeypatch: pytest.MonkeyPatch, rows: list[dict[str, Any]]
) -> None:
    monkeypatch.setattr(
        request_body, "MAX_TOTAL_BYTES", 0
    )  # then there is room for one of the largest
    body = json.dumps({"inputs": rows[:99], "preference": [1, 0]}).encode()
    with contextlib.ExitStack() as stack:
        for _ in range(2):
            sock = stack.enter_context(connected(server_on_a_port))
            sock.sendall(HEAD + b"Content-Length: 60000\r\n\r\n" + b" " * 59_000)
        said = answer_of(sock)
    assert said.startswith(b"HTTP/1.1 429 ")
    deadline = time.monotonic() + 60
    while (answer := server_on_a_port.ask("/predict", body=body)).status == 429:
        assert time.monotonic() < deadline  # room is free again when the clients have left
    assert answer.status == 200


# Seconds that a server waits: enough for a busy machine to get from one call to the next.
TIMEOUT = 3.0


@pytest.fixture(scope="module")
def hasty(serving_on_a_port: Callable[..., Any], folder: Path) -> Iterator[Any]:
    """A server that does not wait for long."""
    settings = Settings(folder=folder, port=0, timeout=TIMEOUT, max_bytes=100_000)
    with serving_on_a_port(settings) as server:
        yield server


def everything(sock: socket.socket) -> bytes:
    """What comes until the server closes the connection."""
    return b"".join(iter(lambda: sock.recv(65_536), b""))


@pytest.mark.system
@pytest.mark.parametrize("sent", [b"hello\r\n\r\n", b"GET / HTTP/1.1\r\nX: " + b"a" * 200_000])
def test_what_is_no_http(hasty: Any, sent: bytes) -> None:
    with connected(hasty) as sock, contextlib.suppress(ConnectionResetError):
        sock.sendall(sent)
        said = everything(sock)
        assert said.startswith(b"HTTP/1.1 400 ")
        assert b'{"error":"this is not HTTP' in said
    assert hasty.ask("/health").status == 200


CHUNKED = b"Transfer-Encoding: chunked\r\n"


@pytest.mark.system
@pytest.mark.parametrize(
    "head",
    [
        b"POST / HTTP/1.1\r\nContent-Length: 4\r\n" + CHUNKED,
        b"GET / HTTP/1.1\r\nTransfer-Encoding:chunked\r\nCONTENT-LENGTH:   0\r\n",
        b"POST / HTTP/1.0\r\nConnection: keep-alive\r\n" + CHUNKED,
    ],
)
def test_a_request_behind_a_body_of_two_lengths_is_not_answered(hasty: Any, head: bytes) -> None:
    """A proxy that goes by the other length takes the second request for a part of the body."""
    behind = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with connected(hasty) as sock:
        sock.sendall(head + b"Host: localhost\r\n\r\n0\r\n\r\n" + behind)
        said = everything(sock)
    assert said.startswith(b"HTTP/1.1 400 ")
    assert b"connection: close" in said.lower()
    assert said.count(b"HTTP/1.1 ") == 1


@pytest.mark.system
def test_a_body_that_does_not_come(hasty: Any) -> None:
    with connected(hasty) as sock:
        sock.sendall(HEAD + b"Content-Length: 100\r\n\r\n{")
        said = everything(sock)  # an answer, and then the end
    assert said.startswith(b"HTTP/1.1 408 ")
    assert b"the body did not arrive within 3 s" in said
    for _ in range(20):  # clients that go in the middle
        with connected(hasty) as sock:
            sock.sendall(HEAD + b"Content-Length: 100\r\n\r\n{")
    assert hasty.ask("/health").status == 200


@pytest.mark.system
def test_a_network_that_takes_too_long(
    hasty: Any, monkeypatch: pytest.MonkeyPatch, rows: list[dict[str, Any]]
) -> None:
    monkeypatch.setattr(Network, "run_pass", lambda *_: time.sleep(TIMEOUT + 0.5))
    answer = hasty.ask("/predict", {"inputs": rows[0], "preference": [1, 0]})
    assert (answer.status, answer.error) == (503, "the server is too busy: try again later")
