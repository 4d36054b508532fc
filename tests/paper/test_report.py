"""Reports of recipes made by hand: what stands where, and that nothing in it is more than text."""

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from tests.paper.hand_made import write_recipe, write_run

from paretocosmos.errors import MissingExtraError
from paretocosmos.io.files import write_json
from paretocosmos.paper import report as module
from paretocosmos.paper.collect import collect, read_result
from paretocosmos.paper.recipe import Experiment, Recipe, load_recipe, recipe_names
from paretocosmos.paper.report import (
    Claim,
    Section,
    Table,
    build_sections,
    build_verdict,
    render_markdown,
    render_page,
    write_report,
)
from paretocosmos.paper.report.sections import TABLES
from paretocosmos.paper.results import RecipeResult

pytestmark = pytest.mark.system  # takes minutes

EVIL = "<script>alert('x')</script> & `b` | $\\input{/etc/passwd}$ %_#^~ \"q\" ä □"


class Page(HTMLParser):
    """What a page has: tags, addresses, texts, and whether every tag is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.rows: list[list[str]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [value or "" for key, value in attrs if key in ("src", "href", "action")]
        assert not any(key.startswith("on") for key, _ in attrs)
        if tag not in ("meta", "img"):
            self._open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)
        if self.rows and {"td", "th"} & set(self._open):
            self.rows[-1][-1] += data


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the report of every recipe of this package, two seeds each."""
    out = tmp_path_factory.mktemp("reproduction")
    contents = []
    for name in recipe_names():
        recipe = load_recipe(name)
        write_recipe(recipe, out, seeds=recipe.experiments[0].seeds[:2])
        contents.append(collect(recipe, out))
    assert write_report(contents, out / "report") == []
    return out / "report"


def made(recipe: str, out: Path, epochs: int | None = None) -> RecipeResult:
    wanted = load_recipe(recipe).rehearsal(epochs)
    write_recipe(wanted, out, seeds=wanted.experiments[0].seeds[:2])
    return collect(wanted, out)


def test_every_recipe_has_its_json_tables_and_pictures(written: Path) -> None:
    for name in recipe_names():
        assert read_result(written / f"{name}.json").recipe == name
        assert (written / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert (written / "figures" / f"{name}.pdf").read_bytes().startswith(b"%PDF")
    text = (written / "report.md").read_text(encoding="utf-8")
    for name in recipe_names():
        assert f"](figures/{name}.png)" in text
    links = re.findall(r"\]\((.+?)\)", text)
    assert links
    assert all((written / link).exists() for link in links)


def test_the_pictures_of_faces_are_of_pairs_and_of_three_tasks(tmp_path: Path) -> None:
    (section,), _ = build_sections([made("celeba_objectives", tmp_path)], None)
    captions = [picture.caption for picture in section.pictures]
    three = "front of COSMOS on CelebA, 3 tasks, one seed"
    assert captions == ["fronts on the test split, one seed", three]
    (section,), _ = build_sections([made("table_celeba", tmp_path)], None)
    assert [picture.name for picture in section.pictures] == ["table_celeba"]


def test_every_kind_is_drawn_and_told() -> None:
    kinds = {load_recipe(name).shows for name in recipe_names()}
    assert kinds == set(TABLES)


def test_the_page_asks_for_nothing(written: Path) -> None:
    text = (written / "report.html").read_text(encoding="utf-8")
    found = Page(text)
    assert "script" not in found.tags
    assert "link" not in found.tags
    assert "iframe" not in found.tags
    for address in found.addresses:
        assert address.startswith(("data:image/png;base64,", "#"))
    assert "default-src 'none'" in text
    style = re.search(r"<style>(.*)</style>", text, re.DOTALL)
    assert style is not None
    assert "url(" not in style[1]
    assert "@import" not in style[1]
    assert "prefers-color-scheme: dark" in style[1]
    assert 'name="viewport"' in text
    assert found.tags.count("img") == len(list((written / "figures").glob("*.png")))


def test_table_1_has_the_paper_s_number_ours_and_the_difference(tmp_path: Path) -> None:
    content = made("table_1", tmp_path)
    (section,), _ = build_sections([content], None)
    volumes, times, both, detailed, went = section.tables
    assert volumes.head[1:] == (
        *("Adult", "COMPAS", "Default", "Multi-MNIST", "Multi-Fashion", "Fashion+MNIST"),
    )
    assert [row[0] for row in volumes.rows] == [
        *("Single Task, ideal point", "PHN-EPO", "PHN-LS", "ParetoMTL", "COSMOS"),
    ]
    cell = next(c for c in content.experiments if c.name == "adult-paper/cosmos")
    mean, std = cell.volume.mean, cell.volume.std
    assert volumes.rows[-1][1] == f"{mean:.3f} ± {std:.3f} (3.34)"
    assert volumes.strong == {(4, column) for column in range(1, 7)}  # COSMOS was made the best
    assert "(501 s)" in times.rows[-1][4]
    assert both.head[1:3] == ("Adult, paper", "Adult, clean")
    assert len(both.head) == 7
    assert len(detailed.rows) == len(content.experiments) == 45
    row = next(r for r in detailed.rows if r[:2] == ("Adult, paper", "COSMOS"))
    sign = "−" if mean < 3.34 else "+"
    assert row[2:5] == (f"{mean:.3f} ± {std:.3f}", "3.34 ± 0.01", f"{sign}{abs(mean - 3.34):.3f}")
    seconds = cell.seconds.to_selected.mean
    assert row[7] == f"{31 / seconds:,.0f}"
    assert row[8:11] == ("1 x 7,011", "7k", "2 of 5")
    assert all(mark in detailed.notes for r in detailed.rows for mark in r[-1].split())
    assert went.rows[-1][:2] == ("all", "45")


def test_what_is_missing_failed_or_unexplained_is_told(tmp_path: Path) -> None:
    recipe = load_recipe("table_1")
    first, second, third, *_ = recipe.experiments
    for seed in first.seeds[:3]:
        write_run(first, tmp_path, seed)
    third.folder(tmp_path).mkdir(parents=True)
    write_json(third.folder(tmp_path) / "cell.json", {"error": "the loss became nan"})
    content = collect(recipe, tmp_path)
    (section,), _ = build_sections([content], None)
    notes = " ".join(section.notes)
    assert "Failed: PHN-EPO on Adult, paper (`adult-paper/phn_epo`): the loss became nan" in notes
    assert "Missing: seeds 4, 42 of COSMOS on Adult, paper." in notes
    assert "seeds 1, 2, 3, 4, 42 of each of PHN-LS on Adult, paper; PHN-EPO" in notes
    states = {row[1]: row[2] for row in section.tables[-2].rows[:5]}
    assert (states["PHN-EPO"], states[second.method.replace("phn_ls", "PHN-LS")]) == (
        "failed",
        "not run",
    )
    alone = content.to_dict() | {"cells": content.to_dict()["cells"][:1]}
    alone["cells"][0]["against"]["reasons"] = []
    (section,), _ = build_sections([RecipeResult.model_validate(alone)], None)
    assert any("no known reason" in note for note in section.tables[-2].notes.values())


def test_fewer_seeds_are_marked_beside_others(tmp_path: Path) -> None:
    recipe = load_recipe("table_1_small").with_seeds([1, 2])
    write_recipe(recipe, tmp_path)
    cell = next(c for c in recipe.experiments if c.name == "adult-paper/pareto_mtl")
    (cell.runs(tmp_path)[2] / "run.json").unlink()
    (section,), _ = build_sections([collect(recipe, tmp_path)], None)
    assert section.tables[0].rows[3][1].endswith("(2.90) [1 seed]")


@pytest.mark.parametrize("name", recipe_names())
def test_a_rehearsal_is_marked_everywhere(name: str, tmp_path: Path) -> None:
    content = made(name, tmp_path, epochs=3)
    assert content.rehearsal == 3
    assert all(cell.rehearsal == 3 for cell in content.experiments)
    (section,), _ = build_sections([content], None)
    assert section.claims == ()
    text = render_markdown([section])
    pictures = {f"figures/{picture.name}.png": b"" for picture in section.pictures}
    for one in (text, render_page(text, pictures)):
        assert "Rehearsal: 3 epochs instead of the paper's" in one
    assert all("rehearsal, 3 epochs" in table.title for table in section.tables)
    assert section.tables
    assert all("REHEARSAL, 3 epochs" in picture.caption for picture in section.pictures)
    assert section.pictures


def test_faces_have_the_overhead_and_tasks_of_both_methods(tmp_path: Path) -> None:
    content = made("table_celeba", tmp_path)
    (section,), _ = build_sections([content], None)
    pairs = section.tables[0]
    by = {row[:2]: row for row in pairs.rows}
    hard = by["CelebA, hard", "COSMOS"]
    assert (hard[3], hard[7], hard[10]) == ("2.221", "25.29", "3.30 h")
    one = next(c for c in content.experiments if c.name == "celeba_hard/cosmos")
    alone = next(c for c in content.experiments if c.name == "celeba_hard/single_task")
    ratio = one.seconds.training.mean / (alone.seconds.training.mean / 2) - 1
    assert hard[11] == f"{ratio:+.1%}"
    assert one.metrics["span"] is not None
    assert hard[5] == f"{one.metrics['span'].mean:.3f}"
    alone_row = by["CelebA, hard", "Single Task"]
    assert (alone_row[5], alone_row[11]) == ("–", "–")
    (section,), _ = build_sections([made("celeba_objectives", tmp_path)], None)
    (alone_there,) = section.tables[0].rows  # no Single Task beside the easy pair
    assert alone_there[:2] == ("CelebA, easy", "COSMOS")
    assert (alone_there[3], alone_there[11]) == (by["CelebA, easy", "COSMOS"][3], "–")
    three = next(t for t in section.tables if t.title.startswith("CelebA, 3 tasks"))
    assert [row[0] for row in three.rows] == ["Goatee", "Mustache", "No Beard"]
    assert [row[2] for row in three.rows] == ["3.16", "3.93", "5.28"]
    assert [row[5] for row in three.rows] == ["2.87", "3.30", "4.82"]
    assert all(row[4] != "–" for row in three.rows)  # the networks of four tasks
    assert "CelebA, 4 tasks" in three.notes["1"]
    reasons = [note for table in section.tables for note in table.notes.values()]
    told = [note for note in reasons if "networks of Single Task" not in note]
    told = [note for note in told if "as above" not in note]
    assert len(told) == len(set(told))  # each once
    ten = next(t for t in section.tables if t.title.startswith("CelebA, 10 tasks"))
    assert len(ten.rows) == 10


def evil() -> Section:
    table = Table(EVIL, (EVIL, "b"), ((EVIL, "1"), ("x", EVIL)), frozenset({(1, 1)}), {"1": EVIL})
    claims = (Claim(EVIL, EVIL, (EVIL,)),)
    return Section("evil", EVIL, EVIL, EVIL, claims, (table,), (), (EVIL,), EVIL)


def test_names_never_become_markup() -> None:
    found = Page(render_page(render_markdown([evil()], title=EVIL), {}))
    assert {"script", "b", "a"}.isdisjoint(found.tags)
    shown = EVIL.replace("`", "")
    assert "".join(found.rows[1][:1]) == shown
    assert found.rows[2][1] == shown
    assert "".join(found.texts).count(shown) == 15  # every text, the title in the head too


def test_html_and_entities_in_markdown_are_text() -> None:
    found = Page(render_page("# A\n\n<img src=x> &lt;", {}))
    assert "img" not in found.tags
    assert "<img src=x> <" in "".join(found.texts)
    found = Page(render_page(render_markdown([Section("a", "&lt; &amp;")]), {}))
    assert "&lt; &amp;" in "".join(found.texts)


def test_markdown_cells_stay_cells() -> None:
    lines = render_markdown([evil()]).splitlines()
    rows = [line for line in lines if line.startswith("| ")]
    assert len(rows) == 3
    for row in rows:
        assert len(re.findall(r"(?<!\\)\|", row)) == 3
        assert "<script>" not in re.sub(r"\\.", "", row)


def test_the_page_has_every_row_and_column_of_the_tables(written: Path) -> None:
    contents = [read_result(written / f"{name}.json") for name in recipe_names()]
    found, _ = build_sections(contents, None)
    tables = [table for section in (*build_verdict(contents), *found) for table in section.tables]
    rows = [list(row) for table in tables for row in (table.head, *table.rows)]
    page = Page((written / "report.html").read_text(encoding="utf-8"))
    assert page.rows == [[text.replace("`", "") for text in row] for row in rows]


def test_without_matplotlib_there_is_a_report_and_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(*_: Any) -> None:
        raise MissingExtraError("matplotlib", "plot", "drawing a front")

    monkeypatch.setattr(module, "save_figure", absent)
    (note,) = write_report([made("intuition", tmp_path)], tmp_path / "report")
    assert note.startswith("no pictures: drawing a front needs `matplotlib`")
    assert "<img" not in (tmp_path / "report" / "report.html").read_text(encoding="utf-8")


def test_runs_that_recipes_share_have_their_time_told_once(tmp_path: Path) -> None:
    contents = [made(name, tmp_path) for name in ("table_1", "figure_vs_sota", "figure_ablation")]
    told = [
        next(note for note in one.notes if note.startswith("Time: "))
        for one in build_sections(contents, None)[0]
    ]
    assert told[1] == "Time: included in `table_1`, which has the same runs."
    assert all("training" in told[at] for at in (0, 2))


def test_a_report_is_the_same_from_its_json(tmp_path: Path) -> None:
    write_report([made("table_celeba", tmp_path)], tmp_path / "one")
    write_report([read_result(tmp_path / "one" / "table_celeba.json")], tmp_path / "two")
    for name in ("report.md", "report.html", "figures/table_celeba.pdf"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_a_recipe_of_one_s_own_is_reported(tmp_path: Path) -> None:
    cells = tuple(Experiment("toy_convex", method, seeds=(1,)) for method in ("cosmos", "linear"))
    recipe = Recipe("mine", "Mine", "nowhere", "fronts", cells)
    write_recipe(recipe, tmp_path)
    (section,), _ = build_sections([collect(recipe, tmp_path)], tmp_path)
    assert section.title == "Mine"
    assert [row[1] for row in section.tables[0].rows] == ["COSMOS", "Weighted sum"]
    assert (tmp_path / "mine.png").exists()
