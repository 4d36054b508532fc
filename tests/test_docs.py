"""What a program writes is what is committed, and what the docs point to is there."""

import json
import math
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.main import get_command

import paretocosmos
from paretocosmos.cli import app
from paretocosmos.paper.recipe import parse_recipe

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def _script(name: str) -> Any:
    if str(ROOT / "scripts") not in sys.path:
        sys.path.append(str(ROOT / "scripts"))
    return import_module(name)


def test_the_written_pages_are_current() -> None:
    for path, text in _script("write_docs").write_texts().items():
        assert (ROOT / path).read_text(encoding="utf-8") == text, f"{path}: run `make docs`"


def test_what_a_change_does_is_told_seed_by_seed() -> None:
    compare = _script("pages.reproduction").compare_changes
    same = {"problem": "multi_mnist", "method": "cosmos"}
    cell = same | {"settings": {}, "seeds": [1, 2, 3], "volume": {"each": [2.0, 2.1, 2.9]}}
    trial = same | {"change": "nothing", "seeds": [1, 2], "test": [1.9, 1.8]}
    *_, line = compare([trial], {"cells": [cell]})
    # -0.1 and -0.3 apart: a mean of -0.2, whose standard error is 0.1414 / sqrt(2)
    assert line == "| nothing | Multi-MNIST, COSMOS | 1.850 | −0.200 ± 0.100 | 2 |"


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "results").glob("*.md")), ids=str)
def test_every_table_of_results_says_when_and_on_what(page: Path) -> None:
    regions = re.findall(r"<!-- written.*?<!-- end -->", page.read_text("utf-8"), re.DOTALL)
    assert regions
    for region in regions:
        assert re.search(r"20\d\d(-\d\d-\d\d)?, version 0\.\d", region), region


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
    links = re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", page.read_text(encoding="utf-8"))
    dead = [
        f"{place}#{anchor}"
        for place, anchor in links
        if "://" not in place and not _leads(page, page.parent / place if place else page, anchor)
    ]
    assert dead == []


def _leads(page: Path, place: Path, anchor: str) -> bool:
    if not place.exists():
        return False
    return not anchor or place.suffix != ".md" or anchor in _anchors(place)


def _anchors(page: Path) -> set[str]:
    """GitHub's and MyST's names of headings."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.M)
    titles = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_blocks_name_their_language(page: Path) -> None:
    fences = re.findall(r"^ *(?:```+)(.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert [at for at, opened in enumerate(fences[::2]) if not opened] == []


def test_the_recipe_of_the_docs_can_be_read() -> None:
    page = (ROOT / "docs" / "howto" / "reproduce.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"```toml\n(.*?)```", page, flags=re.DOTALL)
    assert len(parse_recipe("reproduce.md", text).grid) == 2


README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 120
    titles = re.findall(r"^## (.+)$", README, flags=re.MULTILINE)
    assert {"Quick start", "COSMOS as published", "Your own table", "Your own model"} <= {*titles}


SHELL = [
    (page.name, line.partition("  #")[0].strip())
    for page in PAGES
    for block in re.findall(r"```bash\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    for line in block.splitlines()
]


@pytest.mark.parametrize(("page", "line"), SHELL, ids=lambda text: text)
def test_commands_of_the_docs_exist(page: str, line: str) -> None:
    """Targets of make, and commands and options of the command line, by the programs themselves."""
    words = line.split()
    if words[:1] == ["make"]:
        makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
        assert re.search(rf"^{words[1]}:", makefile, flags=re.MULTILINE), line
    if "paretocosmos" in words and words[0] in ("paretocosmos", "torchrun"):
        name, *rest = words[words.index("paretocosmos") + 1 :]
        found = get_command(app).commands[name]  # type: ignore[attr-defined]
        known = {text for one in found.params for text in (*one.opts, *one.secondary_opts)}
        assert {word for word in rest if word.startswith("--")} <= known, line


def test_the_reference_has_every_public_name() -> None:
    page = (ROOT / "docs" / "api" / "core.md").read_text(encoding="utf-8")
    found = re.findall(r"^\.\. auto\w+:: (\w+)$", page, flags=re.MULTILINE)
    assert sorted(found) == sorted(paretocosmos.__all__)


def test_the_default_is_ahead_of_the_papers_recipe() -> None:
    """As docs/choosing_a_method.md says, wherever both were trained."""
    page = _script("pages.results")
    both = [arms for arms in page.group_fronts().values() if "paper" in arms]
    assert len(both) == 6
    for name in ("hypervolume", "monotonicity"):
        for arms in both:
            assert page.average(arms["default"], name) > page.average(arms["paper"], name)


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b.html").write_text('<h1 id="here">b</h1><a href="../a.html">a</a>')
    (tmp_path / "a.html").write_text(
        '<a href="sub/b.html#here">1</a><a href="sub/b.html#there">2</a><img src="c%20d.png">'
        '<a href="https://example.org/x">3</a><a href="e.txt">4</a><a href="#f">5</a>'
    )
    (tmp_path / "c d.png").write_bytes(b"")
    dead = _script("build_site").dead_links(tmp_path)
    assert dead == ["a.html: sub/b.html#there", "a.html: e.txt", "a.html: #f"]


def test_a_notebook_is_a_page_with_what_it_showed() -> None:
    outputs = [
        {"output_type": "stream", "text": ["one\n"]},
        {"output_type": "display_data", "data": {"image/png": "QUJD\n", "text/plain": "Picture"}},
        {"output_type": "execute_result", "data": {"text/html": "<iframe>", "text/plain": "page"}},
    ]
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "text"]},
        {"cell_type": "code", "source": ["print(1)"], "outputs": outputs},
    ]
    page = _script("pages.notebook").page_of(json.dumps({"cells": cells}))
    assert page.startswith("# Title\ntext\n\n```python\nprint(1)\n```\n\n````text\none\n````")
    assert "](data:image/png;base64,QUJD)" in page
    assert "iframe" not in page
    assert page.endswith("````text\npage\n````\n")


def test_what_the_gallery_shows_belongs_to_an_example() -> None:
    for path in (ROOT / "docs" / "gallery").glob("*"):
        assert (ROOT / "examples" / f"{path.stem.removesuffix('-dark')}.py").exists(), path.name
        if path.suffix == ".png":
            assert path.with_name(f"{path.stem.removesuffix('-dark')}-dark.png").exists()


def test_a_codec_is_told_beside_nine() -> None:
    compare_codecs = _script("pages.measured").compare_codecs
    # PSNR of 20 dB is a loss of 1: at (.5, .5) 1 bit gives 1, 1.2 bits 1.1 and .6 bits .8
    runs = [
        {
            "bd_rate": share,
            "one": [[1.2, 20.0], [0.6, 20.0]],
            "separate": [[1.0, 20.0], [1.0, 20.0]],
            "cpu_seconds": {"one": 2.0, "separate": 9.0},
        }
        for share in (-0.04, 0.006)
    ]
    found = {"runs": runs, "rays": [[0.5, 0.5], [0.5, 0.5]], "unit": 0.01, "steps": 7}
    numbers = compare_codecs(found)
    assert (numbers["least"], numbers["most"], numbers["ahead"]) == (-0.04, 0.006, 1)
    assert numbers["behind"] == pytest.approx(0.1)
    assert numbers["times"] == 4.5


def test_guarantees_have_the_counts_there_are(tmp_path: Path) -> None:
    page = _script("pages.guarantees").write_guarantees
    counted = tmp_path / "faults.json"
    assert "Tried" not in page(counted)
    part = {"done": {"a": 1200, "b": 34}, "answered": {"422": 1234}, "measured": {"megabytes": 5}}
    counted.write_text(json.dumps({"parts": {"requests": part | {"broken": []}}}))
    told = page(counted)
    assert told.count(" trials, ") == 1
    assert "1,234 trials, no failure." in told
    assert "HTTP 422 1,234." in told
    assert "At most 5 megabytes." in told
    counted.write_text(json.dumps({"parts": {"requests": part | {"broken": ["it died"]}}}))
    assert "1 failures." in page(counted)
