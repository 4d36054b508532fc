"""`paretocosmos demo`, on run folders made by hand."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.paper.hand_made import write_run

from paretocosmos import fit
from paretocosmos.cli.demo import load_demo_recipe
from paretocosmos.runs import Run

Call = Callable[..., Any]  # of `cli`: gives the code, what went out, and the errors
PUBLISHED = {"adult": 3.34, "compas": 3.72, "default_credit": 3.12}  # Table 1 of the paper
OUT = Path("demo")
PAGE = OUT / "report" / "report.html"


@pytest.fixture(scope="module")
def default(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A finished run that stands for the default on Adult; look, do not touch."""
    out = tmp_path_factory.mktemp("default") / "run"
    given: dict[str, Any] = {"epochs": 1, "settings": {"hidden": "8"}, "engine": "eager"}
    return fit("toy_convex", preset="paper", out=out, device="cpu", report=False, **given)


@pytest.fixture
def trained(cli: Call, default: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """All trainings are finished before the command begins."""
    for cell in load_demo_recipe().experiments:
        write_run(cell, OUT.absolute(), 1, device="cpu")
    run = replace(default, trained_on=None)
    monkeypatch.setattr("paretocosmos.cli.demo.load", lambda name: run)


def test_cosmos_is_trained_as_published() -> None:
    published = load_demo_recipe().experiments
    assert [cell.problem for cell in published] == ["adult", "compas", "default_credit"]
    for cell in published:
        assert (cell.method, cell.protocol, cell.preset) == ("cosmos", "paper", "paper")
        assert not cell.settings
        assert cell.asked["epochs"] == 50


@pytest.mark.usefixtures("trained")
def test_our_hypervolumes_stand_beside_the_papers(cli: Call) -> None:
    ended = cli("demo", "--out", str(OUT))
    assert ended.code == 0
    cells = {cell["problem"]: cell for cell in json.loads((OUT / "demo.json").read_text())["cells"]}
    page = PAGE.read_text(encoding="utf-8")
    for problem, paper in PUBLISHED.items():
        ours = f"{cells[problem]['hypervolume']:.4f}"
        assert re.search(rf"{problem}-paper/cosmos +{ours} +{paper:.2f} +1/1", ended.out)
        assert f"<td>{paper:.2f} ± " in page
    assert "not COSMOS" in ended.out
    assert "not COSMOS" in page
    assert f"page  {PAGE}" in ended.out
    assert 'href="slider.html"' in page
    assert PAGE.with_name("slider.html").is_file()


@pytest.mark.usefixtures("trained")
def test_json_is_one_object_and_nothing_else(cli: Call, default: Run) -> None:
    ended = cli("demo", "--out", str(OUT), "--json")
    assert (ended.code, ended.err) == (0, "")
    found = json.loads(ended.out)
    assert found["page"] == str(PAGE)
    assert [cell["hypervolume_paper"] for cell in found["cells"]] == [*PUBLISHED.values()]
    assert found["default"]["run"] == str(default.folder)


def test_a_folder_with_other_runs_is_refused(cli: Call) -> None:
    for cell in load_demo_recipe().experiments:
        write_run(cell, OUT.absolute(), 1, device="cpu", version="0.0.1")
    ended = cli("demo", "--out", str(OUT))
    assert (ended.code, ended.out) == (1, "")
    assert "version" in ended.err
    assert not PAGE.exists()
