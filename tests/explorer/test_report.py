import base64
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tests.markup import Page

from paretocosmos.errors import ConfigurationError
from paretocosmos.explorer import PageModel, RunView, write_report
from paretocosmos.pareto import Front, even_rays
from paretocosmos.pareto.metrics import MEANINGS, front_report

HOSTILE = "</script><img src=x onerror=alert(1)><!--\u2028{{data}} & \"'"


def data_of(page: Page) -> Any:
    return json.loads(page.inside["script"][0])


def front(split: str = "test", *, objectives: int = 2, count: int = 25) -> Front:
    rays = even_rays(count, objectives).numpy().astype(np.float64)
    values = 0.6 - 0.5 * np.sqrt(rays) + (0.01 if split == "val" else 0.0)
    names = ("loss", "gap", "third")[:objectives]
    metrics = {"accuracy": 1 - values[:, 0], "tpr_gap": values[:, 1] / 3}
    reference = np.full(objectives, 2.0)
    return Front(rays, values, names, reference, metrics, split, {"problem": "adult"})


def record(fronts: list[Front]) -> dict[str, Any]:
    return {
        "problem": {"name": "adult", "settings": {"sensitive": "sex"}},
        "method": {"name": "cosmos", "settings": {"alpha": 0.75, "penalty": 0.001}},
        "conditioning": "concat",
        "training": {"epochs": 50, "schedule": {"milestones": [20, 40]}},
        "seed": 0,
        "protocol": "clean",
        "parameters": 6891,
        "metrics": {one.split: front_report(one).to_dict()["numbers"] for one in fronts},
        "epoch_selected": 44,
        "seconds_training": 41.7,
        "evaluations": [
            {"epoch": epoch, "hypervolume_val": 3.0 + epoch / 100, "losses": [0.4, 0.1]}
            for epoch in range(0, 50, 2)
        ],
        "caveats": ["a caveat"],
    }


def unpacked(text: str, kind: str = "<f8") -> npt.NDArray[Any]:
    return np.frombuffer(base64.b64decode(text), dtype=kind)


def written(folder: Path, content: dict[str, Any], fronts: list[Front]) -> str:
    write_report(folder / "report.html", PageModel([RunView(content, fronts, str(folder))]))
    return (folder / "report.html").read_text(encoding="utf-8")


@pytest.fixture
def text(tmp_path: Path) -> str:
    fronts = [front(), front("val")]
    return written(tmp_path, record(fronts), fronts)


def test_nothing_is_loaded_from_anywhere(text: str) -> None:
    page = Page(text)
    for value in page.get("src", "href", "srcset", "action", "data", "poster"):
        assert value.startswith(("#", "data:"))
    assert "url(" not in text
    assert "@import" not in text
    assert re.findall(r"\b(?:fetch|XMLHttpRequest|WebSocket|import)\s*\(", text) == []
    # The one address is the name of SVG's namespace, which nothing asks for.
    assert set(re.findall(r"https?://[^\"'\s]*", text)) == {"http://www.w3.org/2000/svg"}


def test_the_policy_forbids_the_network_and_allows_what_is_inside_by_hash(text: str) -> None:
    page = Page(text)
    metas = (attributes for tag, attributes in page.tags if tag == "meta")
    (policy,) = (m["content"] for m in metas if m.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    assert len(page.inside["script"]) == 2
    for content in (page.inside["script"][1], page.inside["style"][0]):
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy


def test_the_structure_is_balanced_and_ids_are_unique(text: str) -> None:
    page = Page(text)
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    pointed = {
        str(attributes[name])
        for _, attributes in page.tags
        for name in ("aria-labelledby", "for")
        if name in attributes
    }
    assert pointed <= set(ids)
    asked = set(re.findall(r"\$\(\"([\w-]+)\"\)", page.inside["script"][1]))
    assert asked <= set(ids)


@pytest.mark.parametrize("objectives", [2, 3])
def test_the_fronts_inside_are_the_fronts_given(tmp_path: Path, objectives: int) -> None:
    fronts = [front(objectives=objectives), front("val", objectives=objectives)]
    run = data_of(Page(written(tmp_path, record(fronts), fronts)))["runs"][0]
    for one, packed in zip(fronts, run["fronts"], strict=True):
        same(packed, one)
        assert packed["report"] == front_report(one).to_dict()
        assert packed["reference"] == one.reference.tolist()
    assert run["folder"] == str(tmp_path)


def test_fronts_beside_separate_networks_are_measured_by_them(tmp_path: Path) -> None:
    own, bar = front(count=9), front("test", count=5)
    separate = {**record([bar]), "method": {"name": "separate", "settings": {}}}
    views = [RunView(record([own]), [own], "one"), RunView(separate, [bar], "two")]
    write_report(tmp_path / "report.html", PageModel(views))
    data = data_of(Page((tmp_path / "report.html").read_text(encoding="utf-8")))
    for run, one in zip(data["runs"], (own, bar), strict=True):
        assert run["fronts"][0]["report"] == front_report(one, bar).to_dict()
    assert data["meanings"] == dict(MEANINGS)


def same(packed: dict[str, Any], one: Front) -> None:
    """Bit for bit, NaN included."""
    assert packed["split"] == one.split
    assert packed["count"] == len(one)
    assert unpacked(packed["rays"]).tobytes() == one.rays.tobytes()
    assert unpacked(packed["values"]).tobytes() == np.ascontiguousarray(one.values.T).tobytes()
    assert list(packed["metrics"]) == list(one.metrics)
    for name, values in one.metrics.items():
        assert unpacked(packed["metrics"][name]).tobytes() == values.tobytes()
    assert unpacked(packed["dominated"], "u1").tolist() == (~one.non_dominated).tolist()


def test_names_from_data_are_text(tmp_path: Path) -> None:
    half, at = np.array([[0.5, 0.5]]), np.array([[0.3, 0.2]])
    metrics = {HOSTILE: np.ones(1)}
    hostile = Front(half, at, (HOSTILE, "gap"), np.array([2.0, 2.0]), metrics, HOSTILE)
    content = {"problem": {"name": HOSTILE}, "caveats": [HOSTILE], HOSTILE: {HOSTILE: HOSTILE}}
    text = written(tmp_path, content, [hostile])
    assert "<img" not in text
    assert "\u2028" not in text.split('id="data">')[1]
    page = Page(text)
    assert len(page.inside["script"]) == 2
    assert page.inside["title"] == page.inside["h1"] == [HOSTILE]
    same(data_of(page)["runs"][0]["fronts"][0], hostile)
    assert data_of(page)["names"] == [HOSTILE, "gap"]
    assert data_of(page)["runs"][0]["record"] == content


def test_the_script_never_parses_markup(text: str) -> None:
    script = Page(text).inside["script"][1]
    for way in ("innerHTML", "outerHTML =", "insertAdjacentHTML", "document.write", "eval("):
        assert way not in script
    assert "</" not in script


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"problem": "adult", "method": None, "evaluations": None, "caveats": None},
        {"metrics": {"test": {"angle": float("nan")}}, "evaluations": [{"epoch": 1}, 3]},
        {"anything": {"deep": [{"er": (1, np.float32(2.5))}]}, "path": Path("a"), "n": np.int64(3)},
    ],
)
def test_every_key_of_the_record_is_optional(tmp_path: Path, content: dict[str, Any]) -> None:
    page = Page(written(tmp_path, content, [front()]))
    assert set(data_of(page)["runs"][0]["record"]) == set(content)


def test_what_json_cannot_say_is_said_in_words(tmp_path: Path) -> None:
    content = {"a": float("nan"), "b": float("inf"), "c": Path("x"), "d": np.arange(2)}
    found = data_of(Page(written(tmp_path, content, [front()])))["runs"][0]["record"]
    assert found == {"a": "not a number", "b": "infinity", "c": "x", "d": [0, 1]}


def test_long_runs_stay_small(tmp_path: Path) -> None:
    """An evaluation costs its epoch and its hypervolume, not what else was measured then."""
    content = record([front()])
    content["evaluations"] = []
    without = len(written(tmp_path, content, [front()]).encode())
    content["evaluations"] = [
        {"epoch": epoch, "hypervolume_val": 3.3, "losses": [0.1] * 50} for epoch in range(1000)
    ]
    assert len(written(tmp_path, content, [front()]).encode()) - without < 40_000


def test_mistakes_are_one_sentence() -> None:
    with pytest.raises(ConfigurationError, match="one run with a front"):
        PageModel([])
    with pytest.raises(ConfigurationError, match="one run with a front"):
        PageModel([RunView({}, [])])
    with pytest.raises(ConfigurationError, match="the same objectives"):
        PageModel([RunView({}, [front()]), RunView({}, [front(objectives=3)])])
