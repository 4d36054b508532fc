"""Runs frozen at one preference: the oracle is the run that takes any."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pandas as pd
import pytest
import torch
from sklearn.metrics import accuracy_score
from tests.estimators.conftest import draw_people
from tests.serving.conftest import answering

from paretocosmos.errors import ConfigurationError, RunError
from paretocosmos.estimators import ParetoClassifier
from paretocosmos.explorer import build_page_model
from paretocosmos.export import FramePredictor, export
from paretocosmos.nn.conditioning import Concat, PerRayEnsemble
from paretocosmos.runs import Run, load_run
from paretocosmos.runs.frozen import freeze_run
from paretocosmos.serving import Settings

RAY, THRESHOLD = [0.3, 0.7], 0.4


@pytest.fixture(scope="module")
def fair() -> ParetoClassifier:
    people = draw_people(600)
    fitted = ParetoClassifier(random_state=0, epochs=20).fit(
        people.x, people.rich, sensitive=people.sex
    )
    return fitted.choose(weights=[0.5, 0.5], threshold=THRESHOLD)


@pytest.fixture(scope="module")
def saved(fair: ParetoClassifier, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("frozen") / "run"
    return fair.save(folder, preference=RAY).folder


@pytest.fixture(scope="module")
def strangers() -> pd.DataFrame:
    return draw_people(50, seed=3).x


@pytest.mark.filterwarnings("ignore:the column")
def test_a_file_without_a_preference(
    trained: Run, strangers: pd.DataFrame, tmp_path: Path, fair: ParetoClassifier
) -> None:
    choice = trained.choose(weights=[0.5, 0.5], threshold=THRESHOLD, allow_constant=True)
    for at in (choice, RAY):
        done = export(trained, at=at, out=tmp_path / f"{type(at).__name__}.onnx")
        session = onnxruntime.InferenceSession(str(done.path))
        assert [(node.name, node.shape) for node in session.get_inputs()] == [("x", ["rows", 4])]
        about = json.loads(session.get_modelmeta().custom_metadata_map["paretocosmos"])
        ray, threshold = (RAY, 0.5) if at is RAY else (list(choice.ray), THRESHOLD)
        assert about["predicts_at"] == pytest.approx(ray)
        assert about["threshold"] == threshold
        rows = trained.problem().split("test")
        known, label = torch.as_tensor(rows.inputs), rows.targets["label"].numpy()
        with torch.inference_mode():
            logits = trained.model(known, torch.tensor(ray))
        right = accuracy_score(label, logits.sigmoid().flatten().numpy() > threshold)
        assert about["reached"]["test"]["accuracy"] == pytest.approx(right)
        card = done.card.read_text()
        assert "A network frozen at one preference" in card
        assert f"with a decision at probability {threshold:g}" in card
        assert "`preference`" not in card


@pytest.mark.filterwarnings("ignore:the column")
def test_a_frozen_file_gives_what_the_estimator_predicts(
    fair: ParetoClassifier, strangers: pd.DataFrame, tmp_path: Path
) -> None:
    done = export(fair, at=RAY, out=tmp_path / "a.onnx")
    session = onnxruntime.InferenceSession(str(done.path))
    probability, decision = session.run(None, {"x": fair.encode(strangers)})
    wanted = fair.predict_proba(strangers, preference=RAY)[:, 1]
    np.testing.assert_allclose(probability, wanted, atol=1e-5)
    np.testing.assert_array_equal(decision, wanted > THRESHOLD)
    np.testing.assert_allclose(
        FramePredictor(done)(strangers)["probability"], probability, atol=1e-6
    )
    with pytest.raises(ConfigurationError, match=r"frozen at \[0\.3, 0\.7\]: leave it out"):
        FramePredictor(done, RAY)


@pytest.mark.filterwarnings("ignore:the column")
def test_a_saved_run_knows_no_other_preference(
    fair: ParetoClassifier, saved: Path, strangers: pd.DataFrame
) -> None:
    run = load_run(saved)
    wanted = fair.predict_proba(strangers, preference=RAY)[:, 1]
    for ray in (RAY, None):
        np.testing.assert_allclose(run.predict(strangers, ray=ray), wanted, atol=1e-6)
    with pytest.raises(ConfigurationError, match=r"frozen at \[0\.3, 0\.7\]"):
        run.predict(strangers, ray=[0.9, 0.1])
    assert run.front.rays.tolist() == [pytest.approx(RAY)]
    assert "estimates from the other columns" in export(run).card.read_text()
    page = build_page_model([run])
    assert page.runs[0].network is not None
    with pytest.raises(RunError, match="comes from an estimator"):
        run.problem()


@pytest.mark.filterwarnings("ignore:the column")
def test_a_server_answers_at_the_frozen_preference(
    fair: ParetoClassifier, saved: Path, strangers: pd.DataFrame
) -> None:
    rows = json.loads(strangers[:3].to_json(orient="records"))
    wanted = fair.predict_proba(strangers[:3], preference=RAY)[:, 1]
    with answering(Settings(folder=saved)) as server:
        answer = server.ask("/predict", {"inputs": rows}).json
        assert answer["probabilities"] == pytest.approx(wanted, abs=1e-5)
        assert answer["preference"] == pytest.approx(RAY)
        assert answer["threshold"] == THRESHOLD
        refused = server.ask("/predict", {"inputs": rows, "preference": [0.9, 0.1]})
    assert refused.status == 422
    assert "at which this run is frozen" in refused.error


def test_what_cannot_be_frozen(fair: ParetoClassifier, trained: Run) -> None:
    with pytest.raises(ConfigurationError, match="`at` must be one ray, found 2"):
        freeze_run(trained, [[1.0, 0.0], [0.0, 1.0]])
    choice = trained.choose(weights=[0.5, 0.5], allow_constant=True)
    with pytest.raises(ConfigurationError, match=r"that of the choice, 0\.5, found 0\.3"):
        freeze_run(trained, choice, 0.3)


def test_one_of_several_networks(run_of: Callable[..., Run]) -> None:
    networks = [Concat(torch.nn.Linear(5, 1), 2) for _ in range(2)]
    run = run_of(PerRayEnsemble(networks, torch.eye(2)))
    with pytest.raises(ConfigurationError, match="choose one of them with `at`"):
        export(run)
    ray: Any = run.front.rays[0].tolist()
    frozen = freeze_run(run, ray)
    x, at = torch.randn(4, 5), torch.tensor(ray)
    assert torch.equal(frozen.model(x, torch.tensor([0.5, 0.5])), run.model(x, at))
