"""A few hostile requests; `make faults` sends thousands."""

import subprocess
import sys
import time
from itertools import islice
from pathlib import Path

import pytest
from faults.hostile_requests import Ask, asks
from faults.outcome import Outcome
from faults.requests import Server, answered, attack, inflict

GOOD = {"inputs": [[0.5, 0.5]], "preference": [0.5, 0.5]}
FAKE = """
import itertools, sys
from http.server import BaseHTTPRequestHandler, HTTPServer
class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    count = itertools.count()
    def do_POST(self):
        right = self.headers["Content-Length"] == sys.argv[1]
        body = b"answer %d" % next(self.count)  # never the same
        self.send_response(200 if right else 500)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True
server = HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, file=sys.stderr, flush=True)
server.serve_forever()
"""


@pytest.mark.system
def test_hostile_requests_break_nothing(tmp_path: Path) -> None:
    made = inflict(120, seed=7, folder=tmp_path)
    assert made.broken == []
    assert made.done.total() == 120


def test_requests_are_of_every_kind() -> None:
    kinds = {ask.kind for ask in islice(asks(1, GOOD, "a token of sixteen"), 3000)}
    assert len(kinds) == 14


def test_answers() -> None:
    refused = b'HTTP/1.1 422 x\r\nA: b\r\n\r\n{"error":"no"}'
    busy = b'HTTP/1.1 503 x\r\n\r\n{"error":"the server is too busy: try again later"}'
    assert answered(refused * 2) == ["422", "422"]
    assert answered(busy) == ["503: too busy, and it says so"]
    assert answered(b"") == []
    for said in (b"HTTP/1.1 502 x\r\n\r\n", busy.replace(b"busy", b"odd")):
        assert answered(said)[0].startswith("BROKEN")
    assert answered(b"HTTP/1.1 404 x\r\n\r\n<html>") == ["BROKEN: 404 without a sentence"]


@pytest.mark.system
def test_a_broken_server_is_noticed(tmp_path: Path) -> None:
    import json

    log, made = tmp_path / "log", Outcome()
    with log.open("wb") as stream:
        command = [sys.executable, "-c", FAKE, str(len(json.dumps(GOOD)))]
        process = subprocess.Popen(command, stderr=stream)
    try:
        while not (said := log.read_text()).endswith("\n"):
            assert process.poll() is None
            time.sleep(0.01)
        body = b"{}"
        head = b"POST /predict HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body)
        server = Server(process, int(said), log, GOOD)
        attack(server, [Ask("any", head + body)], made)
    finally:
        process.kill()
        process.wait()
    told = "\n".join(made.broken)
    assert "any: 500" in told
    assert "the right one got b'200 answer" in told
    assert "ended with -15" in told
