"""`/predict` says what `run.predict` says, whoever else is asking."""

import concurrent.futures
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from paretocosmos import Run, fit
from paretocosmos.serving import Settings

Row = dict[str, Any]


def known(run: Run, rows: list[Row], ray: list[float]) -> Any:
    return pytest.approx(run.predict(pd.DataFrame(rows), ray=ray).tolist(), abs=1e-6)


def test_many_rows_at_one_preference(server: Any, run: Run, rows: list[Row]) -> None:
    answer = server.ask("/predict", {"inputs": rows[:50], "preference": [0.3, 0.7]})
    assert answer.status == 200
    said = answer.json
    assert said["probabilities"] == known(run, rows[:50], [0.3, 0.7])
    assert said["decisions"] == [value > 0.5 for value in said["probabilities"]]
    assert len(set(said["decisions"])) == 2
    assert (said["target"], said["positive"]) == ("rich", "True")
    assert said["preference"] == pytest.approx([0.3, 0.7])
    assert said["warnings"] == []


def test_decisions_at_another_threshold(server: Any, run: Run, rows: list[Row]) -> None:
    asked = {"inputs": rows[:50], "preference": [0.3, 0.7]}
    plain = server.ask("/predict", asked).json
    said = server.ask("/predict", asked | {"threshold": 0.2}).json
    assert (plain["threshold"], said["threshold"]) == (0.5, 0.2)
    assert said["probabilities"] == plain["probabilities"]
    assert said["decisions"] == [value > 0.2 for value in said["probabilities"]]
    assert said["decisions"] != plain["decisions"]
    for wrong in (0, 1, -1, "0.3"):
        assert server.ask("/predict", asked | {"threshold": wrong}).status == 422
    middle = round(float(np.median(plain["probabilities"])), 3)
    chosen = server.ask("/choose", {"maximize": "accuracy", "threshold": middle})
    assert chosen.json == run.choose(maximize="accuracy", threshold=middle).to_dict()
    assert chosen.json["threshold"] == middle


def test_a_preference_for_each_row(server: Any, run: Run, rows: list[Row]) -> None:
    rays = np.random.default_rng(1).dirichlet([1, 1], 90).tolist()
    said = server.ask("/predict", {"inputs": rows[:90], "preference": rays}).json
    expected = [
        run.predict(pd.DataFrame([row]), ray=ray)[0]
        for row, ray in zip(rows[:90], rays, strict=True)
    ]
    assert said["probabilities"] == pytest.approx(expected, abs=1e-6)
    assert said["preference"] == pytest.approx(np.array(rays), abs=1e-6)
    # the preference matters, or this test could not fail
    assert said["probabilities"] != known(run, rows[:90], [0.5, 0.5])


def test_one_row_as_an_object(server: Any, run: Run, rows: list[Row]) -> None:
    row = rows[0] | {"rich": True, "anything": [1]}  # what is no feature is ignored
    said = server.ask("/predict", {"inputs": row, "preference": [[1, 0]]}).json
    assert said["probabilities"] == known(run, [rows[0]], [1, 0])


def test_missing_and_unseen_values(server: Any, run: Run, rows: list[Row]) -> None:
    row = rows[0] | {"skill": None, "city": "Rom", "rooms": 2, "old": True}
    said = server.ask("/predict", {"inputs": [row, rows[1]], "preference": [0.5, 0.5]}).json
    (warning,) = said["warnings"]
    assert warning.startswith("the column `city` has values that were not in the training rows: `R")
    frame = pd.DataFrame([row, rows[1]])
    with pytest.warns(UserWarning, match="city"):
        expected = run.predict(frame, ray=[0.5, 0.5])
    assert said["probabilities"] == pytest.approx(expected.tolist(), abs=1e-6)


def test_requests_at_once_get_their_own_answers(
    serving: Callable[..., Any], folder: Path, run: Run, rows: list[Row]
) -> None:
    draw = np.random.default_rng(2)
    rays = draw.dirichlet([1, 1], 160).tolist()
    sizes = draw.integers(1, 4, 160).tolist()
    asked = [(rows[at : at + size], ray) for at, (size, ray) in enumerate(zip(sizes, rays))]  # noqa: B905
    expected = [run.predict(pd.DataFrame(few), ray=ray).tolist() for few, ray in asked]
    with (
        serving(Settings(folder=folder, port=0)) as server,
        concurrent.futures.ThreadPoolExecutor(16) as clients,
    ):

        def ask(question: tuple[list[Row], list[float]]) -> Any:
            few, ray = question
            return server.ask("/predict", {"inputs": few, "preference": ray}).json

        said = list(clients.map(ask, asked))
        text = server.ask("/metrics").body.decode()
    for one, right in zip(said, expected, strict=True):
        assert one["probabilities"] == pytest.approx(right, abs=1e-6)
    passes = next(line for line in text.splitlines() if "batch_requests_count" in line)
    assert float(passes.rpartition(" ")[2]) < 160


def test_a_problem_that_is_no_table(serving: Callable[..., Any], tmp_path: Path) -> None:
    run = fit("toy_convex", preset="paper", epochs=20, out=tmp_path / "run", device="cpu")
    inputs = torch.randn(3, 4, dtype=torch.float64).tolist()
    with serving(Settings(folder=tmp_path / "run", port=0)) as server:
        said = server.ask("/predict", {"inputs": inputs, "preference": [0.2, 0.8]}).json
        alone = server.ask("/predict", {"inputs": inputs[1], "preference": [0.2, 0.8]}).json
        wrong = server.ask("/predict", {"inputs": [[1, 2]], "preference": [0.2, 0.8]})
        worse = server.ask("/predict", {"inputs": [["1", 2, 3, 4]], "preference": [0.2, 0.8]})
        odd = server.ask("/predict", {"inputs": [[1, 2], [3]], "preference": [0.2, 0.8]})
        huge = server.ask("/predict", {"inputs": [1e300, 1, 1, 1], "preference": [0.2, 0.8]})
        again = server.ask("/choose", {"max": {"second": 0.42}})
    expected = run.model(torch.tensor(inputs), torch.tensor([0.2, 0.8]))
    assert np.array(said["outputs"]) == pytest.approx(expected.detach().numpy(), abs=1e-5)
    assert alone["outputs"] == [pytest.approx(said["outputs"][1], abs=1e-5)]
    assert "probabilities" not in said  # two numbers, no classes
    assert wrong.status == 422
    rule = "`inputs` must be 4 finite numbers in nested lists, or a list of such rows, found"
    assert wrong.error == odd.error == f"{rule} [1, 2] in row 0"
    assert worse.error == f'{rule} "1" in row 0'
    assert huge.status == 422
    assert "too large for the network" in huge.error
    assert again.json["val"]["values"]["second"] <= 0.42


def test_heads_with_classes_have_probabilities(serving: Callable[..., Any], tmp_path: Path) -> None:
    run = fit(
        "multi_digits",
        preset="paper",
        epochs=1,
        settings={"copies": "1", "reference": "9,9"},
        out=tmp_path / "run",
        device="cpu",
    )
    image = run.problem().split("test").inputs
    pixels = run.problem().prepare(image[:2], torch.float32)
    body = {"inputs": pixels.tolist(), "preference": [[0.2, 0.8], [0.7, 0.3]]}
    with serving(Settings(folder=tmp_path / "run", port=0)) as server:
        said = server.ask("/predict", body).json
    with torch.inference_mode():
        outputs = run.model(pixels, torch.tensor([[0.2, 0.8], [0.7, 0.3]]))
    for head, logits in outputs.items():
        assert np.array(said["outputs"][head]) == pytest.approx(logits.numpy(), abs=1e-4)
        likely = torch.softmax(logits, dim=1).numpy()
        assert np.array(said["probabilities"][head]) == pytest.approx(likely, abs=1e-5)


def test_networks_for_single_rays_say_which_one_answered(
    serving: Callable[..., Any], people: Path, rows: list[Row], tmp_path: Path
) -> None:
    settings = {"target": "rich", "sensitive": "sex", "hidden": "4"}
    given: dict[str, Any] = {"method": "single_task", "settings": settings, "device": "cpu"}
    run = fit(str(people), preset="paper", epochs=2, out=tmp_path / "run", **given)
    held = run.record["fixed_rays"]
    assert held == [[1, 0], [0, 1]]
    rays = [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]]
    with serving(Settings(folder=tmp_path / "run", port=0)) as server:
        said = server.ask("/predict", {"inputs": rows[:3], "preference": rays}).json
    assert said["preference"] == [[1, 0], [0, 1], [1, 0]]
    for at, ray in enumerate(said["preference"]):
        alone = run.predict(pd.DataFrame([rows[at]]), ray=ray)
        assert said["probabilities"][at] == pytest.approx(alone[0], abs=1e-6)


def test_the_fronts(server: Any, run: Run) -> None:
    said = server.ask("/front").json
    assert said == {"test": run.front.to_dict(), "val": run.front_val.to_dict()}


def test_the_body_may_come_in_pieces(server: Any, run: Run, rows: list[Row]) -> None:
    body = json.dumps({"inputs": rows[:9], "preference": [0.3, 0.7]}).encode()
    pieces = iter([body[:50], body[50:51], body[51:]])
    said = server.ask("/predict", body=pieces).json
    assert said["probabilities"] == known(run, rows[:9], [0.3, 0.7])
