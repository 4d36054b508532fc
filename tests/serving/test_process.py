"""The command in a process of its own: signals, workers, and what it refuses to start with."""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.system

LIMIT = 120.0
"""Seconds after which what has not happened never will."""
HEAD = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@contextlib.contextmanager
def started(folder: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """`paretocosmos serve` on a free port, and that port."""
    command = [sys.executable, "-m", "paretocosmos", "serve", str(folder), "--port", "0"]
    environment = os.environ | {"COLUMNS": "1000", "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [*command, *options], stderr=subprocess.PIPE, text=True, env=environment
    )
    try:
        given_up = threading.Timer(LIMIT, process.kill)  # so that the line ends, whatever happens
        given_up.start()
        said = process.stderr.readline()
        given_up.cancel()
        found = re.search(r"http://127\.0\.0\.1:(\d+)\b", said)
        assert found, said
        yield process, int(found[1])
    finally:
        process.kill()
        process.communicate()


def begun(port: int, body: bytes) -> socket.socket:
    """A request whose body is not complete."""
    sock = socket.create_connection(("127.0.0.1", port), timeout=LIMIT)
    sock.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body[:10])
    return sock


def ended(sock: socket.socket, rest: bytes) -> bytes:
    sock.sendall(rest)
    said = b""
    with sock:
        while part := sock.recv(65_536):
            said += part
    return said


def refused(port: int, within: float = LIMIT) -> bool:
    """Whether nobody listens there any more, before long."""
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
        except ConnectionRefusedError:
            return True
        except ConnectionResetError:  # it waited to be accepted when the server stopped listening
            continue
    return False


def answered(port: int, body: bytes) -> Any:
    with socket.create_connection(("127.0.0.1", port), timeout=LIMIT) as sock:
        length = b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(body)
        sock.sendall(HEAD + length + body)
        said = b"".join(iter(lambda: sock.recv(65_536), b""))
    return json.loads(said.partition(b"\r\n\r\n")[2])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_what_was_begun_is_finished(
    folder: Path, rows: list[dict[str, Any]], number: signal.Signals
) -> None:
    body = json.dumps({"inputs": rows[:3], "preference": [0.5, 0.5]}).encode()
    with started(folder) as (process, port):
        expected = answered(port, body)
        sock = begun(port, body)
        answered(port, body)  # so that what came before has been read
        process.send_signal(number)
        assert refused(port)
        said = ended(sock, body[10:])
        assert said.startswith(b"HTTP/1.1 200 ")
        assert json.loads(said.partition(b"\r\n\r\n")[2]) == expected
        assert process.wait(LIMIT) == 0


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("moment", ["when it says that it listens", "just before uvicorn hears"])
def test_a_signal_that_comes_early_ends_it_cleanly(
    folder: Path, workers: int, number: signal.Signals, moment: str
) -> None:
    # raised at that very moment, in the process itself: nothing depends on time
    code = f"""
import signal, sys, uvicorn
from paretocosmos.serving import Settings, serve, server

told = lambda _at: signal.raise_signal({int(number)}) if "says" in {moment!r} else None
def early(kind, name):
    def first(*given, before=getattr(kind, name), **named):
        signal.raise_signal({int(number)})
        return before(*given, **named)
    if "hears" in {moment!r}:
        setattr(kind, name, first)
early(uvicorn.Server, "run")
early(server.Multiprocess, "__init__")
serve(Settings(folder=sys.argv[1], port=0, workers={workers}), started=told)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder)],
        capture_output=True,
        text=True,
        timeout=5 * LIMIT,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_several_workers_answer_alike(folder: Path, rows: list[dict[str, Any]]) -> None:
    body = json.dumps({"inputs": rows[:3], "preference": [0.5, 0.5]}).encode()
    with started(folder, "--workers", "2") as (process, port):
        said = [answered(port, body)["probabilities"] for _ in range(20)]
        assert all(one == pytest.approx(said[0], abs=1e-6) for one in said)
        process.send_signal(signal.SIGTERM)
        assert process.wait(LIMIT) == 0


def test_killed_and_started_again_it_says_the_same(
    folder: Path, rows: list[dict[str, Any]]
) -> None:
    body = json.dumps({"inputs": rows[:3], "preference": [0.25, 0.75]}).encode()
    said = []
    for _ in range(2):
        with started(folder) as (process, port):
            said.append(answered(port, body))
            process.kill()
            process.wait(LIMIT)
            with pytest.raises(OSError, match="refused"):
                socket.create_connection(("127.0.0.1", port), timeout=5)
    assert said[0] == said[1]


@pytest.fixture
def other_version(folder: Path, tmp_path: Path) -> Path:
    copy = tmp_path / "other"
    shutil.copytree(folder, copy)
    record = json.loads((copy / "run.json").read_text())
    (copy / "run.json").write_text(json.dumps(record | {"format": 999, "version": "9.9"}))
    return copy


def test_what_it_does_not_start_with(folder: Path, other_version: Path, tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from paretocosmos.cli import app
    from paretocosmos.errors import ParetoCosmosError

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for arguments, says in (
            ([str(other_version)], "was written by another version (9.9)"),
            ([str(tmp_path / "nowhere")], "is not a folder"),
            ([str(folder), "--port", port], "cannot listen on `127.0.0.1` port"),
            ([str(folder), "--host", "0.0.0.0"], "clients need a token"),
            ([str(folder), "--host", "no such host", "--token", "x" * 16], "cannot listen on"),
            ([str(folder), "--device", "cuda:77"], "cuda"),
        ):
            done = CliRunner().invoke(app, ["serve", *arguments])
            assert isinstance(done.exception, ParetoCosmosError), arguments
            assert says in str(done.exception)


@pytest.mark.parametrize("package", ["fastapi", "prometheus_client", "uvicorn"])
def test_a_missing_extra_gives_the_command(folder: Path, package: str) -> None:
    code = (
        f"import sys; sys.modules[{package!r}] = None; sys.argv = ['paretocosmos', 'serve', 'run'];"
        "from paretocosmos.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert " ".join(done.stderr.split()) == (
        f"error: `paretocosmos serve` needs `{package}`, which is not installed; "
        'run: pip install "paretocosmos[serve]"'
    )
