"""Hostile requests to `paretocosmos serve`: never a 5xx, right answers afterwards, a clean stop.

A 503 is what a server says that has more to do than it can, so it is counted by itself; it must
come with one of the sentences that say so.
"""

import http.client
import json
import os
import queue
import re
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from faults.fixtures import train_runs
from faults.hostile_requests import Ask, asks
from faults.outcome import Outcome

__all__ = ["Server", "answered", "inflict", "send", "started"]

CLIENTS = 12
MEGABYTES = 1024
# Seconds: what a server is told to wait for its clients, and what a client waits for a server.
TIMEOUT, PATIENCE = 5, 300
EVERY = 500
"""So many requests, and then one that is right."""
TOKEN = "a-token-for-the-faults"
BUSY = ("the server is too busy", "choosing took longer than")
STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) ")


@dataclass(frozen=True)
class Server:
    """A process that serves, and what a right request to it looks like."""

    process: "subprocess.Popen[bytes]"
    port: int
    log: Path
    good: dict[str, Any]
    token: str | None = None

    def megabytes(self) -> float:
        """The most memory it had so far."""
        said = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.findall(r"VmHWM:\s+(\d+) kB", said)[0]) / 1024

    def right(self) -> bytes:
        """The answer to the right request."""
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        named = {"Content-Type": "application/json"}
        if self.token is not None:
            named["Authorization"] = f"Bearer {self.token}"
        try:
            link.request("POST", "/predict", json.dumps(self.good), named)
            answer = link.getresponse()
            return b"%d %b" % (answer.status, answer.read())
        finally:
            link.close()


@contextmanager
def started(
    folder: Path, good: dict[str, Any], log: Path, token: str | None = None
) -> Iterator[Server]:
    """`paretocosmos serve` on a free port, as a process of its own."""
    command = [sys.executable, "-P", "-m", "paretocosmos", "serve", str(folder), "--port", "0"]
    environment = os.environ | {"COLUMNS": "1000", "OMP_NUM_THREADS": "1"}
    if token is not None:
        environment["PARETOCOSMOS_TOKEN"] = token
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [*command, "--timeout", str(TIMEOUT)], stderr=stream, env=environment
        )
    try:
        deadline = time.monotonic() + PATIENCE
        while not (found := re.search(r"http://127\.0\.0\.1:(\d+)\b", log.read_text())):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the server did not start: {log.read_text()[-500:]}")
            time.sleep(0.05)
        yield Server(process, int(found[1]), log, good, token)
    finally:
        process.kill()
        process.wait()


def inflict(count: int, *, seed: int, folder: Path) -> Outcome:
    """Send so many hostile requests, half to a server of a table, half to one with a token.

    Args:
        count: how many.
        seed: chooses them.
        folder: an empty one, to work in.
    """
    train_runs(folder)
    made = Outcome()
    table = {"inputs": [{"skill": 3}, {"skill": None}], "preference": [0.25, 0.75]}
    numbers = {"inputs": [[0.5] * _width(folder / "run")] * 2, "preference": [0.25, 0.75]}
    for name, good, token, part in (
        ("table", table, None, count - count // 2),
        ("run", numbers, TOKEN, count // 2),
    ):
        log = folder / f"{name}.log"
        with started(folder / name, good, log, token) as server:
            every = list(islice(asks(seed, good, token), part))
            attack(server, every, made)
    return made


def _width(run: Path) -> int:
    (width,) = json.loads((run / "run.json").read_text())["input_shape"]
    return int(width)


def attack(server: Server, every: list[Ask], made: Outcome) -> None:
    """Send them all to a server, and see that it keeps its promises."""
    before = server.right()
    if not before.startswith(b"200 "):
        made.broken.append(f"a right request was answered with {before[:200]!r}")
        return
    for start in range(0, len(every), EVERY):
        _send_all(server, every[start : start + EVERY], made)
        if server.process.poll() is not None:
            made.broken.append(f"the server died with {server.process.returncode}")
            return
        after = server.right()
        deadline = time.monotonic() + PATIENCE
        while after.startswith((b"503 ", b"429 ")) and time.monotonic() < deadline:
            after = server.right()
        if after != before:
            made.broken.append(f"after {start + EVERY} requests the right one got {after[:200]!r}")
        made.measure("megabytes", round(server.megabytes()))
    if server.megabytes() > MEGABYTES:
        made.broken.append(f"the server took {server.megabytes():.0f} MB")
    with socket.create_connection(("127.0.0.1", server.port)):  # who never asks does not keep it
        server.process.terminate()
        try:
            code = server.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            made.broken.append("the server did not stop when it was told to")
            return
    if code != 0:
        made.broken.append(f"the server ended with {code} when it was told to stop")
    if "Traceback" in (said := server.log.read_text(errors="replace")):
        made.broken.append(f"the server's log has a traceback: {said.strip()[-300:]!r}")


def _send_all(server: Server, every: list[Ask], made: Outcome) -> None:
    waiting: queue.SimpleQueue[Ask] = queue.SimpleQueue()
    for ask in every:
        waiting.put(ask)
    lock = threading.Lock()

    def work() -> None:
        while True:
            try:
                ask = waiting.get_nowait()
            except queue.Empty:
                return
            began = time.monotonic()
            said, wrong = send(server.port, ask)
            told = answered(said)
            with lock:
                made.done[ask.kind] += 1
                made.measure("seconds of a request", round(time.monotonic() - began, 1))
                if ask.alone and told != ["400"]:
                    wrong = f"answered with {', '.join(told)}"
                for answer in told or ["no answer, and the connection was closed"]:
                    made.answered[answer] += 1
                    if answer.startswith("BROKEN"):
                        wrong = f"{answer[8:]}: {said[-200:]!r}"
                if wrong is not None:
                    made.broken.append(f"{ask.kind}: {wrong}: {ask.sent[:300]!r}")

    threads = [threading.Thread(target=work) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def send(port: int, ask: Ask) -> tuple[bytes, str | None]:
    """What a server says to one ask, and what is wrong with how it ended, if anything."""
    said = b""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as sock:
        try:
            sock.sendall(ask.sent)
            if ask.end == "abort":
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return b"", None
            if ask.end == "leave":
                return b"", None
            if ask.end == "half":
                sock.shutdown(socket.SHUT_WR)
            while part := sock.recv(65_536):
                said += part
        except TimeoutError:
            return said, f"the server kept the connection for {PATIENCE} s"
        except OSError:  # it closed the connection while we wrote
            with suppress(OSError):
                while part := sock.recv(65_536):
                    said += part
    return said, None


def answered(said: bytes) -> list[str]:
    r"""The answers in what a server said, each a status in words; `BROKEN` what must not be.

    >>> answered(b'HTTP/1.1 500 x\r\n\r\n')
    ['BROKEN: 500']
    """
    told = []
    for found in STATUS.finditer(said):
        code = int(found[1])
        body = said[found.end() :].partition(b"\r\n\r\n")[2]
        if code == 503 and any(words.encode() in body for words in BUSY):
            told.append("503: too busy, and it says so")
        elif code >= 500:
            told.append(f"BROKEN: {code}")
        elif code >= 400 and body and not body.startswith(b'{"error":"'):
            told.append(f"BROKEN: {code} without a sentence")
        else:
            told.append(str(code))
    return told
