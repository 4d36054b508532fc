"""`/`, `/openapi.json`, `/metrics`, `/health` and `/choose`."""

import html
import json
import re
import shlex
import shutil
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import paretocosmos
from paretocosmos import Run
from paretocosmos.serving import Settings

LINKS = {"openapi.json", "front", "health", "metrics"}


class Seen(HTMLParser):
    """The elements of a page, and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: list[str | None] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.links += [value for name, value in attrs if name in ("src", "href", "action")]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_fetches_nothing_runs_nothing_and_shows_html_as_text(server: Any) -> None:
    answer = server.ask("/")
    assert answer.headers["content-type"].startswith("text/html")
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'")
    assert "script-src" not in policy
    seen = Seen()
    seen.feed(answer.body.decode())
    assert {*seen.links} == LINKS | {"data:,"}
    assert not seen.tags & {"img", "iframe", "object", "base", "script"}
    assert "<b>pay</b>" in seen.text
    assert b"<b>pay" not in answer.body


def test_the_example_of_the_description_works(server: Any) -> None:
    described = server.ask("/openapi.json").json
    for path in ("/predict", "/choose"):
        content = described["paths"][path]["post"]["requestBody"]["content"]["application/json"]
        assert server.ask(path, content["example"]).status == 200
    paths = {path for path in described["paths"] if "get" in described["paths"][path]}
    for path in paths:
        assert server.ask(path).status == 200
    assert paths == {"/front", "/health", "/metrics"}


def test_the_curl_lines_of_the_page_work_when_pasted(server: Any) -> None:
    page = server.ask("/", headers={"Host": f"localhost:{server.port}"}).body.decode()
    lines = [html.unescape(line) for line in re.findall(r"<pre[^>]*>(curl .*?)</pre>", page)]
    assert len(lines) == 2
    for line in lines:
        words = shlex.split(line)
        path = urlsplit(words[1]).path
        assert words[:2] == ["curl", f"http://localhost:{server.port}{path}"]
        assert server.ask(path, body=words[words.index("-d") + 1].encode()).status == 200, line
    assert json.loads(shlex.split(lines[0])[-1])["inputs"]["<b>pay</b>"] is not None


def test_a_strange_host_is_not_repeated(server: Any) -> None:
    page = server.ask("/", headers={"Host": "localhost:1;reboot"}).body.decode()
    assert "reboot" not in page
    assert "curl http://localhost:8000/predict" in page


def test_the_home_page_tells_what_is_traded(server: Any, run: Run) -> None:
    seen = Seen()
    seen.feed(server.ask("/").body.decode())
    assert "less confident mistakes against a smaller gap in who is found" in seen.text
    assert "rich = True" in seen.text
    assert f"{100 * run.front.values[0, 1]:.1f} points" in seen.text
    assert f"{run.front.values[-1, 0]:.4g}" in seen.text


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
