"""What a prompt and a notebook show of fronts, runs, choices and comparisons."""

import html
import json
import re
from pathlib import Path

import numpy as np
import pytest

from paretocosmos import Front, load_run
from paretocosmos.explorer import Page
from paretocosmos.training.compare import Comparison


@pytest.fixture
def front() -> Front:
    first = np.linspace(0.1, 0.9, 25)
    rays = np.stack([first, 1 - first], axis=1)
    metrics = {"accuracy": 1 - first, "<script>": first}
    return Front(rays, rays[:, ::-1] ** 2, ("loss", "gap"), np.full(2, 2.0), metrics)


def test_names_are_text_in_a_notebook(front: Front) -> None:
    shown = front._repr_html_()
    assert "<script>" not in shown
    assert html.escape("<script>") in shown
    assert shown.count("<tr>") == 10


def test_a_front_is_drawn(front: Front, tmp_path: Path) -> None:
    picture = front.plot(title="mine")
    drawn, about = picture._repr_png_()
    assert drawn.startswith(b"\x89PNG")
    assert 300 < about["width"] < 1200
    assert picture.save(tmp_path / "front.png").read_bytes().startswith(b"\x89PNG")


def test_a_choice_tells_what_was_bounded_and_what_it_got(toy: Path) -> None:
    run = load_run(toy)
    bound = float(np.median(run.front_val.values[:, 1]))
    choice = run.choose(max={"second": bound}, minimize="first")
    assert choice.asked is not None
    lines = repr(choice).splitlines()
    told = next(line for line in lines if "at most" in line)
    assert told.split()[:4] == ["second", "at", "most", f"{bound:g}"]
    assert f"{choice.val['second']:.4f}" in told
    assert f"{choice.test['second']:.4f}" in told
    assert any(line.split()[:2] == ["first", "minimised"] for line in lines)
    assert "at most" in choice._repr_html_()
    assert choice.to_dict()["asked"] == {"max": {"second": bound}, "minimize": "first"}


def test_a_run_s_page_is_shown_in_a_frame_without_an_origin(folder: Path) -> None:
    run = load_run(folder)
    shown = run.explore(height=500)
    assert isinstance(shown, Page)
    assert shown.path == run.report == folder / "report.html"
    frame = shown._repr_html_()
    inside = re.search(r'srcdoc="([^"]*)"', frame)
    assert html.unescape(inside[1]) == shown.path.read_text(encoding="utf-8")
    assert "allow-same-origin" not in frame
    assert "height:500px" in frame
    assert f"{run.hypervolume:.4f}" in run._repr_html_()


def test_a_comparison_is_a_row_per_method(folder: Path) -> None:
    run = load_run(folder)
    done = Comparison(folder.parent, "toy_convex", {"one": [run], "two": [run]}, {"three": "why"})
    rows = [line.split() for line in repr(done).splitlines()]
    assert [row[0] for row in rows if row[0] in ("one", "two")] == ["one", "two"]
    assert "failed: three, why" in repr(done)
    assert json.dumps(run.record["name"])[1:-1] in done._repr_html_()
    assert done.explore().path == folder.parent / "report.html"
