"""How a view is packed into a page."""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paretocosmos.errors import ConfigurationError
from paretocosmos.explorer import PageModel, RunView, write_report
from paretocosmos.pareto import Front


def read_data(page: Path) -> Any:
    text = page.read_text(encoding="utf-8").partition('id="data">')[2].partition("</script>")[0]
    return json.loads(text)


def test_answers_are_thinned_before_a_page_is_refused(
    tmp_path: Path, make_page: Callable[..., PageModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.html"
    write_report(path, make_page())
    whole = path.stat().st_size
    monkeypatch.setattr("paretocosmos.explorer.serialize.MAX_BYTES", whole - 100)
    write_report(path, make_page())
    answers = read_data(path)["runs"][0]["answers"]
    assert answers["ray_indices"] == list(range(0, 25, 2))
    bytes_of_val = base64.b64decode(answers["confusion"]["val"][0])
    counts = np.frombuffer(bytes_of_val, dtype="<u4").reshape(-1, 2, 2)
    assert counts[:, 0, 1].tolist() == answers["ray_indices"]
    path.unlink()
    monkeypatch.setattr("paretocosmos.explorer.serialize.MAX_BYTES", 1000)
    with pytest.raises(ConfigurationError, match=r"0\.001 MB.*fewer"):
        write_report(path, make_page())
    assert list(tmp_path.iterdir()) == []


def test_runs_are_told_apart_by_method_then_seed_then_folder(
    tmp_path: Path, make_front: Callable[..., Front]
) -> None:
    views = [
        RunView({"label": label, "seed": seed}, [make_front()], folder)
        for label, seed, folder in (("a", 1, "x"), ("b", 1, "x"), ("b", 2, "x"), ("b", 2, "y"))
    ]
    wanted = ["a", "b, seed 1", "b, seed 2, x", "b, seed 2, y"]
    write_report(tmp_path / "report.html", PageModel(views))
    data = read_data(tmp_path / "report.html")
    assert [run["label"] for run in data["runs"]] == wanted


def test_more_is_better_for_accuracy_and_area_alone(
    tmp_path: Path, make_front: Callable[..., Front]
) -> None:
    front = make_front()
    ones = np.ones(len(front))
    names = ("accuracy", "accuracy_top", "roc_auc_x", "tpr_gap", "misclassification")
    many = Front(front.rays, front.values, front.names, front.reference, dict.fromkeys(names, ones))
    write_report(tmp_path / "report.html", PageModel([RunView({}, [many])]))
    larger = read_data(tmp_path / "report.html")["larger"]
    assert larger == ["accuracy", "accuracy_top", "roc_auc_x"]
