"""A page that follows a training: a server that only this machine can reach."""

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
    """Read what a page shows of a folder: one run, or all runs below it.

    `over` says that nothing in it is trained any more.
    """
    runs = []
    for place in find_runs(folder):
        with suppress(RunError):  # a file that is being replaced: the next look has it
            runs.append(_read_run(place, folder))
    return {
        "runs": runs,
        "over": bool(runs) and not any(run["status"] == "training" for run in runs),
        "page": (folder / PAGE).exists(),
    }


def _read_run(place: Path, root: Path) -> dict[str, Any]:
    record = load_record(place)
    finished = record["status"] == "finished"
    numbers = record if finished else _read_checkpoint_numbers(place)
    evaluations = numbers.get("evaluations", [])
    epochs = record["training"]["epochs"]
    epoch = epochs if finished else numbers.get("epoch", 0)
    seconds = numbers.get("seconds_training" if finished else "seconds", 0.0)
    return {
        "name": place.name if place == root else str(place.relative_to(root)),
        "problem": record["name"],
        "method": record["label"],
        "seed": record["seed"],
        "status": "finished" if finished else "training" if is_locked(place) else "stopped",
        "epoch": epoch,
        "epochs": epochs,
        "seconds": seconds,
        "seconds_left": 0.0 if finished else _estimate_seconds_left(numbers, epochs),
        "names": record["names"],
        "labels": [measure_of(name).label for name in record["names"]],
        "evaluations": [
            {key: one.get(key) for key in ("epoch", "hypervolume_val", "values", "losses")}
            for one in evaluations
        ],
    }


def _read_checkpoint_numbers(place: Path) -> Mapping[str, Any]:
    """Read the numbers of the newest readable checkpoint."""
    found = (read_numbers(path) for path in list_checkpoints(place).values())
    return next((numbers for numbers in found if numbers is not None), {})


def _estimate_seconds_left(numbers: Mapping[str, Any], epochs: int) -> float | None:
    """Seconds left by the mean epoch so far, its validation included; `None` before the first."""
    done = numbers.get("epoch", 0)
    if not done:
        return None
    spent = numbers["seconds"] + numbers["seconds_evaluating"]
    return float((epochs - done) * spent / done)


HOST = "127.0.0.1"
# Seconds between two looks at the folder, and looks without a training that mean its end.
EVERY, LOOKS = 1.0, 4
# Seconds after the end in which a page sees how it ended.
AFTER = 2.0
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:"
)
REPORT = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"


class Watch:
    """The page of a training, from the first look to the end of the run.

    Args:
        folder: gives the run folder, or a folder with runs below it; `None` while it is not known.

    >>> with Watch(lambda: None) as watch:  # doctest: +SKIP
    ...     webbrowser.open(watch.address)
    """

    def __init__(self, folder: Callable[[], Path | None]) -> None:
        self._server = _Server((HOST, 0), _Handler)  # any port that is free
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
        """Until nothing is trained any more, nor begins within a few looks; gives how it ended."""
        looks = 0
        while looks < LOOKS:
            state = self._server.state()
            looks = looks + 1 if state["over"] else 0  # between two methods nothing is trained
            time.sleep(EVERY)
        return state

    def linger(self) -> None:
        """Stay a moment, in which pages see how it ended."""
        time.sleep(AFTER)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    folder: Callable[[], Path | None]

    def state(self) -> dict[str, Any]:
        folder = self.folder()
        return {"runs": [], "over": False, "page": False} if folder is None else read_state(folder)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "paretocosmos", ""

    def do_GET(self) -> None:
        """Answer with the page, one of its files, or where the training stands."""
        known = {f"{name}:{self.server.server_port}" for name in (HOST, "localhost")}
        if self.headers.get("Host") not in known:  # a page elsewhere that has our address
            self._send(403, "text/plain", b"only this machine\n")
            return
        path = self.path.partition("?")[0]
        if path == "/state.json":
            self._send(200, "application/json", json.dumps(self.server.state()).encode())
        elif path in _load_pages():
            self._send(200, *_load_pages()[path])
        elif path == f"/{PAGE}" and (page := self._report()) is not None:
            self._send(200, "text/html", page, policy=REPORT)
        else:
            self._send(404, "text/plain", b"there is no such page\n")

    def _report(self) -> bytes | None:
        folder = self.server.folder()
        page = None if folder is None else folder / PAGE
        return page.read_bytes() if page is not None and page.is_file() else None

    def _send(self, code: int, kind: str, content: bytes, *, policy: str = POLICY) -> None:
        self.send_response(code)
        for name, value in {
            "Content-Type": f"{kind}; charset=utf-8",
            "Content-Length": str(len(content)),
            "Content-Security-Policy": policy,
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Nothing: a terminal shows the training."""


@cache
def _load_pages() -> dict[str, tuple[str, bytes]]:
    """The page's files; its colours and letters are the explorer's."""
    page = files("paretocosmos.explorer") / "page"
    return {
        "/": ("text/html", (page / "watch.html").read_bytes()),
        "/watch.js": ("text/javascript", (page / "watch.js").read_bytes()),
        "/watch.css": ("text/css", (page / "watch.css").read_bytes()),
        "/page.css": ("text/css", palette.css().encode() + (page / "page.css").read_bytes()),
    }
