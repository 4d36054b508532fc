"""A small run, and servers for it that stop by themselves."""

import contextlib
import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
import uvicorn

from paretocosmos import Run, fit, load_run
from paretocosmos.serving import Settings
from paretocosmos.serving._app import make_app
from paretocosmos.serving._server import configured, listen

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
    """Where a server listens."""

    port: int

    def ask(
        self,
        path: str,
        content: object = None,
        *,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
        method: str | None = None,
    ) -> Answer:
        """One request on a connection of its own; `content` is sent as JSON."""
        sent = json.dumps(content).encode() if body is None and content is not None else body
        named = {} if sent is None else {"Content-Type": "application/json"}
        verb = method or ("GET" if sent is None else "POST")
        with contextlib.closing(
            http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        ) as link:
            link.request(verb, path, body=sent, headers=named | (headers or {}))
            answer = link.getresponse()
            return Answer(answer.status, answer.read(), answer.headers)


@contextlib.contextmanager
def running(settings: Settings) -> Iterator[Server]:
    """A server in a thread of this process."""
    sock = listen(settings)
    server = uvicorn.Server(configured(settings, make_app(settings)))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]})
    thread.start()
    try:
        port = sock.getsockname()[1]
        while not server.started:
            time.sleep(0.01)
        yield Server(port)
    finally:
        server.should_exit = True
        thread.join(30)
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
    found: list[dict[str, Any]] = json.loads(frame.to_json(orient="records"))
    return found


@pytest.fixture(scope="session")
def serving() -> Callable[[Settings], contextlib.AbstractContextManager[Server]]:
    return running


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    limits: dict[str, Any] = {"max_rows": 100, "max_bytes": 100_000, "timeout": 5.0}
    with running(Settings(folder=folder, port=0, **limits)) as found:
        yield found
