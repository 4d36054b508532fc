"""A small run, and servers for it that stop by themselves."""

import contextlib
import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
import uvicorn
from starlette.testclient import TestClient

from paretocosmos import Run, fit, load_run
from paretocosmos.serving import Settings
from paretocosmos.serving.app import make_app
from paretocosmos.serving.server import make_config, open_socket

MARKED = "<b>pay</b>"
"""A column whose name is HTML: it is to be shown, not run."""


class Answer(NamedTuple):
    """What a server said."""

    status: int
    body: bytes
    headers: Any

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        (only,) = self.json.items()
        assert only[0] == "error"
        assert "\n" not in only[1]
        return str(only[1])


class Server(NamedTuple):
    """A server that answers within this process, or one that listens on a port."""

    port: int
    client: TestClient | None = None

    def ask(
        self,
        path: str,
        content: object = None,
        *,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
        method: str | None = None,
    ) -> Answer:
        """Send one request; `content` is sent as JSON."""
        data = json.dumps(content).encode() if body is None and content is not None else body
        every = ({} if data is None else {"Content-Type": "application/json"}) | (headers or {})
        verb = method or ("GET" if data is None else "POST")
        if self.client is not None:
            encoded = [(name.encode(), value.encode("latin-1")) for name, value in every.items()]
            reply = self.client.request(verb, path, content=data, headers=encoded)
            return Answer(reply.status_code, reply.content, reply.headers)
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        with contextlib.closing(link):
            link.request(verb, path, body=data, headers=every)
            response = link.getresponse()
            return Answer(response.status, response.read(), response.headers)


@contextlib.contextmanager
def answering(settings: Settings) -> Iterator[Server]:
    """Call the application without a socket; nothing in it waits for a deadline."""
    app = make_app(replace(settings, timeout=3600.0))
    with TestClient(app, "http://127.0.0.1:8000", raise_server_exceptions=False) as client:
        client.headers.clear()
        yield Server(8000, client)


@contextlib.contextmanager
def listening(settings: Settings) -> Iterator[Server]:
    """Run a real server in a thread of this process."""
    sock = open_socket(settings)
    server = uvicorn.Server(make_config(settings, make_app(settings)))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]})
    thread.start()
    try:
        port = sock.getsockname()[1]
        while not server.started:
            time.sleep(0.01)
        yield Server(port)
    finally:
        server.should_exit = True
        thread.join(60)
        assert not thread.is_alive()


@pytest.fixture(scope="session")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    draw, rows = np.random.default_rng(3), 600
    sex = draw.choice(["f", "m"], rows)
    skill, pay = draw.normal(size=rows).round(3), draw.normal(40, 9, rows).round()
    rich = draw.random(rows) < 1 / (1 + np.exp(-2 * skill - (sex == "m")))
    frame = pd.DataFrame({"skill": skill, MARKED: pay, "sex": sex})
    frame["city"] = draw.choice(["Bonn", "Köln", "Ulm"], rows)
    frame["rooms"] = pd.Categorical(draw.choice([1, 2, 3], rows)).astype(str)
    frame["old"] = draw.choice([True, False], rows)
    frame["rich"] = rich
    frame.loc[draw.random(rows) < 0.1, [MARKED, "city"]] = None
    path = tmp_path_factory.mktemp("people") / "people.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.fixture(scope="session")
def folder(people: Path) -> Path:
    settings = {"target": "rich", "sensitive": "sex", "hidden": "8", "batch_size": "16"}
    out = people.with_name("run")
    fit(str(people), preset="paper", epochs=20, settings=settings, out=out, device="cpu")
    return out


@pytest.fixture(scope="session")
def run(folder: Path) -> Run:
    return load_run(folder)


@pytest.fixture(scope="session")
def rows(people: Path) -> list[dict[str, Any]]:
    """Of the file, as JSON has them."""
    frame = pd.read_csv(people).drop(columns=["sex", "rich"])
    return json.loads(frame.to_json(orient="records"))


LIMITS: dict[str, Any] = {"max_rows": 100, "max_bytes": 100_000}


@pytest.fixture(scope="session")
def serving() -> Callable[[Settings], contextlib.AbstractContextManager[Server]]:
    return answering


@pytest.fixture(scope="session")
def serving_on_a_port() -> Callable[[Settings], contextlib.AbstractContextManager[Server]]:
    """For tests of connections, which are marked `system`."""
    return listening


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    with answering(Settings(folder=folder, port=0, **LIMITS)) as answered:
        yield answered


@pytest.fixture(scope="module")
def server_on_a_port(folder: Path) -> Iterator[Server]:
    with listening(Settings(folder=folder, port=0, timeout=600.0, **LIMITS)) as listened:
        yield listened
