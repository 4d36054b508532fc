"""An exported file answers as the run does; another file is refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from paretocosmos import Run, fit
from paretocosmos.errors import RunError
from paretocosmos.serving import Settings
from paretocosmos.serving.service import Service


@pytest.fixture(scope="module")
def file(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from paretocosmos.export import export

    path: Path = export(run, out=tmp_path_factory.mktemp("onnx") / "model.onnx").path
    return path


def test_it_answers_as_the_run_does(
    serving: Callable[..., Any], folder: Path, run: Run, rows: list[dict[str, Any]], file: Path
) -> None:
    rays = np.random.default_rng(1).dirichlet([1, 1], 20).tolist()
    few = [*rows[:19], rows[19] | {"skill": None, "city": "Rom"}]
    with serving(Settings(folder=folder, port=0, onnx=file)) as server:
        each = server.ask("/predict", {"inputs": few, "preference": rays}).json
        one = server.ask("/predict", {"inputs": few[:19], "preference": rays[0]}).json
    for at in range(19):
        alone = run.predict(pd.DataFrame([few[at]]), ray=rays[at])
        assert each["probabilities"][at] == pytest.approx(alone[0], abs=1e-5)
    expected = run.predict(pd.DataFrame(few[:19]), ray=rays[0])
    assert one["probabilities"] == pytest.approx(expected.tolist(), abs=1e-5)
    assert len(each["warnings"]) == 1


def test_a_problem_that_is_no_table(serving: Callable[..., Any], tmp_path: Path) -> None:
    from paretocosmos.export import export

    run = fit("toy_convex", preset="paper", epochs=3, out=tmp_path / "run", device="cpu")
    body = {"inputs": [[1, 2, 3, 4], [0, 0, 0, 1]], "preference": [[0.2, 0.8], [1, 0]]}
    said = []
    for onnx in (None, export(run).path):
        with serving(Settings(folder=tmp_path / "run", port=0, onnx=onnx)) as server:
            said.append(server.ask("/predict", body).json)
    assert np.array(said[0]["outputs"]) == pytest.approx(np.array(said[1]["outputs"]), abs=1e-5)


def test_the_file_of_another_run_is_refused(
    folder: Path, people: Path, run: Run, file: Path, tmp_path: Path
) -> None:
    settings = {"target": "rich", "sensitive": "sex", "hidden": "8"}
    given: dict[str, Any] = {"settings": settings, "device": "cpu", "epochs": 2}
    fit(str(people), preset="paper", seed=2, out=tmp_path / "other", **given)
    with pytest.raises(RunError, match="differs from the run in"):
        Service(Settings(folder=tmp_path / "other", onnx=file))
    fit("toy_convex", preset="paper", epochs=2, out=tmp_path / "toy", device="cpu")
    with pytest.raises(RunError, match="was exported from another run"):
        Service(Settings(folder=tmp_path / "toy", onnx=file))


@pytest.mark.parametrize("content", [None, b"", b"nothing", json.dumps({}).encode()], ids=range(4))
def test_what_is_no_export(folder: Path, tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "model.onnx"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(RunError, match=r"is not a file that `paretocosmos export` wrote"):
        Service(Settings(folder=folder, onnx=path))
