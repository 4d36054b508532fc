"""Requests that schemathesis makes up from the description: none is too much for the server."""

import contextlib
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from paretocosmos import fit


@pytest.fixture(scope="module", params=["table", "toy"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("schema")
    if request.param == "toy":
        return fit("toy_convex", preset="paper", epochs=3, out=place / "run", device="cpu").folder
    draw, rows = np.random.default_rng(1), 400
    frame = pd.DataFrame({"age": draw.normal(size=rows), "city": draw.choice(["a", "b"], rows)})
    frame["sex"] = draw.choice(["f", "m"], rows)
    frame["rich"] = frame["age"] + draw.normal(size=rows) > 0
    frame.to_csv(place / "people.csv", index=False)
    settings = {"target": "rich", "sensitive": "sex", "hidden": "4"}
    return fit(
        str(place / "people.csv"),
        preset="paper",
        epochs=3,
        settings=settings,
        out=place / "run",
        device="cpu",
    ).folder


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    pytest.importorskip("schemathesis", reason="pip install --group extras")
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port = sock.getsockname()[1]
    command = [sys.executable, "-m", "paretocosmos", "serve", str(folder), "--port", str(port)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        process.stderr.readline()  # it says where it listens
        yield f"http://127.0.0.1:{port}"
        process.terminate()
        assert process.wait(30) == 0
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        process.communicate()


def test_no_request_breaks_it_and_answers_are_as_described(address: str, tmp_path: Path) -> None:
    checks = "not_a_server_error,status_code_conformance,content_type_conformance"
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{address}/openapi.json"]
    options = ["--checks", f"{checks},response_schema_conformance", "--max-examples", "60"]
    done = subprocess.run(
        [*command, *options, "--mode", "all", "--seed", "1", "--no-color"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert re.search(r"[1-9]\d\d+ generated, \d+ passed", done.stdout)
