"""`/`, `/openapi.json`, `/metrics`, `/health` and `/choose`."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import paretocosmos
from paretocosmos import Run
from paretocosmos.serving import Settings


def test_the_page_of_the_run_cannot_ask_the_server(server: Any, run: Run) -> None:
    answer = server.ask("/")
    assert answer.headers["content-type"].startswith("text/html")
    assert answer.body == (run.folder / "report.html").read_bytes()
    policy = answer.headers["content-security-policy"]
    assert "sandbox" in policy
    assert "allow-same-origin" not in policy


def test_the_example_of_the_description_works(server: Any) -> None:
    described = server.ask("/openapi.json").json
    for path in ("/predict", "/choose"):
        content = described["paths"][path]["post"]["requestBody"]["content"]["application/json"]
        assert server.ask(path, content["example"]).status == 200
    paths = {path for path in described["paths"] if "get" in described["paths"][path]}
    for path in paths:
        assert server.ask(path).status == 200
    assert paths == {"/front", "/health", "/metrics"}


def test_health(server: Any) -> None:
    assert server.ask("/health").json == {"status": "ok", "version": paretocosmos.__version__}


def test_metrics_count(
    serving: Callable[..., Any], folder: Path, rows: list[dict[str, Any]]
) -> None:
    with serving(Settings(folder=folder, port=0)) as server:
        for count in (1, 2, 5):
            server.ask("/predict", {"inputs": rows[:count], "preference": [1, 0]})
        server.ask("/predict", {"inputs": rows, "preference": [2, 0]})
        server.ask("/none")
        text = server.ask("/metrics").body.decode()
    found = dict(re.findall(r'^paretocosmos_(\w+\{.*process="\d+".*\}) (\S+)$', text, re.MULTILINE))
    numbers = {re.sub(r',?process="\d+"', "", name): float(value) for name, value in found.items()}
    assert numbers['requests_total{path="/predict",status="200"}'] == 3
    assert numbers['requests_total{path="/predict",status="422"}'] == 1
    assert numbers['requests_total{path="other",status="404"}'] == 1
    assert numbers["errors_total{}"] == 2
    assert numbers["rows_total{}"] == 8
    assert numbers["waiting_rows{}"] == 0
    assert numbers["open_requests{}"] == 1  # the one that asks
    assert numbers['batch_rows_bucket{le="1.0"}'] == 1
    assert numbers['batch_rows_bucket{le="2.0"}'] == 2
    assert numbers['batch_rows_bucket{le="4.0"}'] == 2
    assert numbers['batch_rows_bucket{le="+Inf"}'] == numbers["batch_rows_count{}"] == 3
    assert numbers["batch_rows_sum{}"] == 8
    assert numbers['request_seconds_count{path="/predict"}'] == 4
    named = set(re.findall(r"^# TYPE paretocosmos_(\w+) ", text, re.MULTILINE))
    assert len(named) == len(re.findall("^# HELP", text, re.MULTILINE)) == 8


@pytest.mark.filterwarnings("ignore:`tpr_gap` is hardly known")
def test_choosing_is_what_the_run_chooses(server: Any, run: Run) -> None:
    bound = float(sorted(run.front_val.values[:, 1])[8])
    answer = server.ask("/choose", {"max": {"tpr_gap": bound}, "evaluations": 8})
    assert answer.status == 200
    assert answer.json == run.choose(max={"tpr_gap": bound}, evaluations=8).to_dict()
    plain = server.ask("/choose", {"max": {"tpr_gap": bound}})
    assert plain.json == run.choose(max={"tpr_gap": bound}).to_dict()
    sure = server.ask("/choose", {"max": {"tpr_gap": 0.9}, "confidence": 0.9})
    assert sure.json == run.choose(max={"tpr_gap": 0.9}, confidence=0.9).to_dict()
    refused = server.ask("/choose", {"max": {"tpr_gap": 1e-4}, "confidence": 0.9})
    assert "hold out more rows" in refused.error
    assert answer.json["val"]["values"]["tpr_gap"] <= bound


def test_without_the_data_a_ray_of_the_front_is_chosen(
    serving: Callable[..., Any], folder: Path, run: Run, tmp_path: Path
) -> None:
    shutil.copytree(folder, tmp_path / "run")
    bound = float(sorted(run.front_val.values[:, 1])[8])
    gone = str(tmp_path / "gone.csv")
    with serving(Settings(folder=tmp_path / "run", port=0, data=gone)) as server:
        said = server.ask("/choose", {"max": {"tpr_gap": bound}, "evaluations": 8}).json
        refused = server.ask("/choose", {"max": {"tpr_gap": -1}})
        moved = server.ask("/choose", {"max": {"tpr_gap": 0.9}, "threshold": 0.4})
        unsure = server.ask("/choose", {"max": {"tpr_gap": 0.9}, "confidence": 0.9})
    expected = run.front_val.choose(max={"tpr_gap": bound})
    assert said["val"] == expected.to_dict()
    at = run.front_val.rays.tolist().index(list(expected.ray))
    assert list(said["test"]["values"].values()) == pytest.approx(run.front.values[at].tolist())
    assert said["evaluations"] == 0
    assert said["asked"] == {"max": {"tpr_gap": bound}}
    assert said["note"] == "chosen among the rays of the front: the data could not be read here"
    assert refused.status == 422
    assert said["threshold"] == 0.5
    assert (moved.status, moved.error.partition(" needs")[0]) == (422, "a `threshold`")
    assert unsure.status == 422
    assert "a `confidence` needs the data" in unsure.error
