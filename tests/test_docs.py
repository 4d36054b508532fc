"""What a program writes is what is committed, and what the docs point to is there."""

import json
import math
import re
from collections.abc import Sequence
from importlib import util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paretocosmos.paper._recipe_file import read_recipe

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def _script(name: str) -> Any:
    spec = util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_written_pages_are_current() -> None:
    for path, text in _script("write_docs").texts().items():
        assert (ROOT / path).read_text(encoding="utf-8") == text, f"{path}: run `make docs`"


def _cell(problem: str, method: str, volume: float) -> dict[str, Any]:
    told = {"problem": problem, "method": method, "seeds": [1], "volume": {"mean": volume}}
    return told | {"volume_of": "ideal point" if method == "single_task" else "front"}


def _content(*ahead: tuple[str, str], cells: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    rows = [{"problem": p, "method": m, "verdict": "ahead"} for p, m in ahead]
    near = {"problem": "multi_mnist", "method": "phn_ls", "verdict": "ahead within the noise"}
    return {"cells": list(cells), "claims": [{"rows": [near, *rows]}]}


def test_why_cosmos_is_behind_is_asked_only_where_it_is() -> None:
    page = _script("reproduction_page")
    ablation = {"cells": [_cell("multi_fashion", "cosmos", v) for v in (2.1, 2.2, 2.15)]}
    cells = [
        _cell("multi_fashion", method, volume)
        for method, volume in (("cosmos", 2.0), ("phn_ls", 2.3), ("single_task", 2.9))
    ]
    alone = ("multi_mnist", "single_task")  # of which the ideal point counts, no front
    assert page.behind(_content(alone), ablation) == []
    asked = page.behind(_content(alone, ("multi_fashion", "phn_ls"), cells=cells), ablation)
    assert asked[0].startswith("**Why is COSMOS behind on Multi-Fashion?**")
    assert asked[-1] == "| Multi-Fashion | 2.200 of 3 | 2.300, PHN-LS |"
    assert page.harder_draw(_content(alone)) == []
    (told,) = page.harder_draw(_content(("multi_fashion", "phn_ls"), cells=cells))
    # what the authors' code reached there is in published.toml
    assert told.endswith("COSMOS reaches 2.000; the authors' own code for it, with seed 1, 2.058.")


def test_what_a_change_does_is_told_seed_by_seed() -> None:
    page = _script("reproduction_page")
    cell = _cell("multi_mnist", "cosmos", 9.0) | {"settings": {}, "seeds": [1, 2, 3]}
    cell["volume"] = {"mean": 9.0, "each": [2.0, 2.1, 2.9]}
    cell["against"] = {"hypervolume": {"paper": 2.94}}
    trial = {"change": "nothing", "problem": "multi_mnist", "method": "cosmos"}
    lines = page.left([trial | {"seeds": [1, 2], "test": [1.9, 1.8]}], {"cells": [cell]})
    # -0.1 and -0.3 apart: a mean of -0.2, whose standard error is 0.1414 / sqrt(2)
    assert lines[-1] == (
        "| nothing | Multi-MNIST | COSMOS | 2.94 | 2.050 | 1.850 | −0.200 ± 0.100 | 2 |"
    )


def test_the_draw_s_noise_is_as_measured() -> None:
    """What a reason says of another draw, from the losses of a network on eight of them."""
    found = json.loads((ROOT / "results" / "fingerprint.json").read_text())["sets"]["multi_mnist"]
    loss = np.std(found["draws"]["loss"], ddof=1)
    assert 0.0055 < loss < 0.0065
    # both losses of a point near (.28, .28) move so: the hypervolume is (2 - a)(2 - b)
    assert math.sqrt(2) * (2 - 0.28) * loss == pytest.approx(0.015, abs=0.001)
    (best, *_) = found["rules"]
    assert (best["top_left"], best["bottom_right"]) == ([0, 4], [5, 7])
    assert best["classes"] == "different"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    dead = [x for x in links if "://" not in x and not (page.parent / x).exists()]
    assert dead == []


def test_recipes_in_the_guide_can_be_read() -> None:
    guide = (ROOT / "docs" / "guide.md").read_text(encoding="utf-8")
    found = re.findall(r"```toml\n(.*?)```", guide, flags=re.DOTALL)
    recipes = [text for text in found if "[[grid]]" in text]
    assert recipes
    for text in recipes:
        assert len(read_recipe("guide.md", text).grid) == 2


def test_the_readme_example_is_short() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    example = readme.partition("<!-- written: own_model -->")[2].partition("<!-- end -->")[0]
    lines = [line for line in example.splitlines() if line and not line.startswith("```")]
    assert 5 < len(lines) <= 12


def test_promises_are_told_with_the_counts_there_are(tmp_path: Path) -> None:
    page = _script("promises_page").promises_page
    counted = tmp_path / "faults.json"
    assert "Tried" not in page(counted)
    part = {"done": {"a": 1200, "b": 34}, "answered": {"422": 1234}, "measured": {"megabytes": 5}}
    counted.write_text(json.dumps({"parts": {"requests": part | {"broken": []}}}))
    told = page(counted)
    assert told.count("Tried") == 1
    assert "Tried 1,234 times: no promise was broken." in told
    assert "| HTTP 422 | 1,234 |" in told
    assert "At most 5 megabytes." in told
    counted.write_text(json.dumps({"parts": {"requests": part | {"broken": ["it died"]}}}))
    assert "promises broken: 1" in page(counted)
