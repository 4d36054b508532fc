"""Serve a page that follows a training, to this machine only."""

import json
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from typing import Any

from paretocosmos.errors import RunError
from paretocosmos.io import palette
from paretocosmos.io.files import is_locked
from paretocosmos.objectives import measure_of
from paretocosmos.runs.checkpoint import list_checkpoints, read_numbers
from paretocosmos.runs.folders import find_runs
from paretocosmos.runs.record import load_record
from paretocosmos.runs.run import PAGE


def read_state(folder: Path) -> dict[str, Any]:
    """Read the state of the runs in a folder: one run, or all runs below it.

    `over` is true if none of them is being trained.
    """
    runs = []
    for run_folder in find_runs(folder):
        with suppress(RunError):  # a file is being replaced: the next poll can read it
            runs.append(_read_run(run_folder, folder))
    return {
        "runs": runs,
        "over": bool(runs) and not any(run["status"] == "training" for run in runs),
        "page": (folder / PAGE).exists(),
    }


def _read_run(folder: Path, root: Path) -> dict[str, Any]:
    record = load_record(folder)
    finished = record["status"] == "finished"
    # a run in training writes its numbers into checkpoints alone
    numbers = record if finished else _read_checkpoint_numbers(folder)
    evaluations = numbers.get("evaluations", [])
    epochs = record["training"]["epochs"]
    epoch = epochs if finished else numbers.get("epoch", 0)
    seconds = numbers.get("seconds_training" if finished else "seconds", 0.0)
    return {
        "name": folder.name if folder == root else str(folder.relative_to(root)),
        "problem": record["name"],
        "method": record["label"],
        "seed": record["seed"],
        "status": "finished" if finished else "training" if is_locked(folder) else "stopped",
        "epoch": epoch,
        "epochs": epochs,
        "seconds": seconds,
        "seconds_left": 0.0 if finished else _estimate_seconds_left(numbers, epochs),
        "names": record["names"],
        "labels": [measure_of(name).label for name in record["names"]],
        "evaluations": [
            {key: evaluation.get(key) for key in EVALUATION_KEYS} for evaluation in evaluations
        ],
    }


def _read_checkpoint_numbers(folder: Path) -> Mapping[str, Any]:
    """Read the numbers of the newest readable checkpoint."""
    checkpoints = (read_numbers(path) for path in list_checkpoints(folder).values())
    return next((numbers for numbers in checkpoints if numbers is not None), {})


def _estimate_seconds_left(numbers: Mapping[str, Any], epochs: int) -> float | None:
    """Estimate the seconds left from the mean epoch, including validation; `None` before one."""
    done = numbers.get("epoch", 0)
    # nothing is known of the speed before the first epoch
    if not done:
        return None
    spent = numbers["seconds"] + numbers["seconds_evaluating"]
    return float((epochs - done) * spent / done)


HOST = "127.0.0.1"
# Seconds between two polls of the folder, and polls in a row without a training that mean its end.
POLL_SECONDS, IDLE_POLLS = 1.0, 4
# Seconds that the server stays up after the end, so that open pages show it.
LINGER_SECONDS = 2.0
EVALUATION_KEYS = ("epoch", "hypervolume_val", "values", "losses")
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:"
)
# A report is one file with its own script; it also has a stricter policy inside.
REPORT_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"
)


class Watch:
    """Server of the page of a training; a context manager.

    Args:
        folder: returns the run folder, or a folder with runs below it; `None` before there is one.

    >>> with Watch(lambda: None) as watch:  # doctest: +SKIP
    ...     webbrowser.open(watch.address)
    """

    def __init__(self, folder: Callable[[], Path | None]) -> None:
        self._server = _Server((HOST, 0), _Handler)  # 0: any free port
        self._server.folder = folder
        self.address = f"http://{HOST}:{self._server.server_port}/"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def wait(self) -> dict[str, Any]:
        """Wait until no run is being trained, and return the last state."""
        idle_polls = 0
        while idle_polls < IDLE_POLLS:
            state = self._server.read_state()
            # `compare` trains nothing for a moment between two methods
            idle_polls = idle_polls + 1 if state["over"] else 0
            time.sleep(POLL_SECONDS)
        return state

    def linger(self) -> None:
        """Stay up for a moment, so that open pages show how it ended."""
        time.sleep(LINGER_SECONDS)


class _Server(ThreadingHTTPServer):
    # a connection that a browser keeps open must not keep the process alive
    daemon_threads = True
    folder: Callable[[], Path | None]

    def read_state(self) -> dict[str, Any]:
        folder = self.folder()
        return {"runs": [], "over": False, "page": False} if folder is None else read_state(folder)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "paretocosmos", ""

    def do_GET(self) -> None:
        """Send the page, one of its files, or the state of the training."""
        hosts = {f"{name}:{self.server.server_port}" for name in (HOST, "localhost")}
        # DNS rebinding: a site may point its own name to this machine, but sends that name
        if self.headers.get("Host") not in hosts:
            self._send(403, "text/plain", b"This page is for this machine only.\n")
            return
        path = self.path.partition("?")[0]
        if path == "/state.json":
            self._send(200, "application/json", json.dumps(self.server.read_state()).encode())
        elif path in _load_pages():
            self._send(200, *_load_pages()[path])
        elif path == f"/{PAGE}" and (page := self._read_report()) is not None:
            self._send(200, "text/html", page, policy=REPORT_POLICY)
        else:
            self._send(404, "text/plain", b"There is no such page.\n")

    def _read_report(self) -> bytes | None:
        folder = self.server.folder()
        page = None if folder is None else folder / PAGE
        return page.read_bytes() if page is not None and page.is_file() else None

    def _send(self, code: int, kind: str, content: bytes, *, policy: str = PAGE_POLICY) -> None:
        self.send_response(code)
        for name, value in {
            "Content-Type": f"{kind}; charset=utf-8",
            "Content-Length": str(len(content)),
            "Content-Security-Policy": policy,
            # the state changes every second, and a port may serve another training tomorrow
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Log nothing: the terminal shows the training."""


@cache
def _load_pages() -> dict[str, tuple[str, bytes]]:
    """Load the page's files; it shares the explorer's style sheet."""
    page = files("paretocosmos.explorer") / "page"
    return {
        "/": ("text/html", (page / "watch.html").read_bytes()),
        "/watch.js": ("text/javascript", (page / "watch.js").read_bytes()),
        "/watch.css": ("text/css", (page / "watch.css").read_bytes()),
        "/page.css": ("text/css", palette.css().encode() + (page / "page.css").read_bytes()),
    }
