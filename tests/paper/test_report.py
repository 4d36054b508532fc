"""Reports of recipes made by hand: what stands where, and that nothing in it is more than text."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.markup import Page
from tests.paper.hand_made import make_result, write_recipe, write_run
from tests.paper.reports import (
    collect_experiments,
    collect_recipe,
    parse_markdown,
    read_report,
    read_tables,
)

from paretocosmos.errors import MissingExtraError
from paretocosmos.io.files import write_json
from paretocosmos.paper import report as module
from paretocosmos.paper.collect import collect_results
from paretocosmos.paper.recipe import Experiment, Recipe, load_recipe, recipe_names
from paretocosmos.paper.report import (
    format_ratio,
    list_pictures,
    render_page,
    render_report,
    write_report,
)
from paretocosmos.paper.results import ClaimResult, ClaimRow, RecipeResult

EVIL = "<script>alert('x')</script> & `b` | $\\input{/etc/passwd}$ %_#^~ \"q\" ä □"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the report of every recipe of this package, two seeds each."""
    out = tmp_path_factory.mktemp("reproduction")
    results = [collect_recipe(name, out) for name in recipe_names()]
    assert write_report(results, out / "report") == []
    return out / "report"


@pytest.mark.system  # draws all pictures, which takes minutes
def test_every_recipe_has_its_json_tables_and_pictures(written: Path) -> None:
    text = (written / "report.md").read_text(encoding="utf-8")
    for name in recipe_names():
        assert RecipeResult.read(written / f"{name}.json").recipe == name
        assert (written / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert (written / "figures" / f"{name}.pdf").read_bytes().startswith(b"%PDF")
        assert f"](figures/{name}.png)" in text
    assert all((written / link).exists() for link in re.findall(r"\]\((.+?)\)", text))


@pytest.mark.system
def test_the_page_asks_for_nothing_and_has_every_row(written: Path) -> None:
    text = (written / "report.html").read_text(encoding="utf-8")
    page = Page(text)
    assert {"script", "link", "iframe"}.isdisjoint(page.names)
    for address in page.get("src", "href", "action"):
        assert address.startswith(("data:image/png;base64,", "#"))
    assert "default-src 'none'" in text
    style = re.search(r"<style>(.*)</style>", text, re.DOTALL)
    assert not re.search(r"url\(|@import", style[1])
    assert "prefers-color-scheme: dark" in style[1]
    assert 'name="viewport"' in text
    assert page.names.count("img") == len(list((written / "figures").glob("*.png")))
    sections = parse_markdown((written / "report.md").read_text(encoding="utf-8"))
    tables = [table for section in sections for table in section.tables]
    rows = [list(row) for table in tables for row in (table.head, *table.rows)]
    assert page.rows == [[text.replace("`", "") for text in row] for row in rows]


def test_the_pictures_of_faces_are_of_pairs_and_of_three_tasks(tmp_path: Path) -> None:
    pictures = list_pictures(collect_recipe("celeba_objectives", tmp_path))
    three = "front of COSMOS on CelebA, 3 tasks, one seed"
    assert [picture.caption for picture in pictures] == [
        *("fronts on the test split, one seed", three)
    ]
    pictures = list_pictures(collect_recipe("table_celeba", tmp_path))
    assert [picture.name for picture in pictures] == ["table_celeba"]


def test_table_1_has_the_paper_s_number_ours_and_the_difference(tmp_path: Path) -> None:
    result = collect_recipe("table_1", tmp_path)
    volumes, detailed = read_tables(result)
    assert volumes.head[1:] == (
        *("Adult", "COMPAS", "Default", "Multi-MNIST", "Multi-Fashion", "Fashion+MNIST"),
    )
    assert [row[0] for row in volumes.rows] == [
        *("Single Task, ideal point", "PHN-EPO", "PHN-LS", "ParetoMTL", "COSMOS")
    ]
    cosmos = next(e for e in result.experiments if e.name == "adult-paper/cosmos")
    mean, std = cosmos.volume.mean, cosmos.volume.std
    assert volumes.rows[-1][1] == f"{mean:.3f} ± {std:.3f} (3.34)"
    assert volumes.strong == {(4, column) for column in range(1, 7)}  # COSMOS was made the best
    assert len(detailed.rows) == len(result.experiments) == 45
    row = next(r for r in detailed.rows if r[:2] == ("Adult, paper", "COSMOS"))
    sign = "−" if mean < 3.34 else "+"
    assert row[2:5] == (f"{mean:.3f} ± {std:.3f}", "3.34 ± 0.01", f"{sign}{abs(mean - 3.34):.3f}")
    ratio = f"{31 / cosmos.seconds['to_selected'].mean:,.0f}"
    assert row[5:9] == ("2.30 s", "31 s", ratio, "NVIDIA H200, 5 at once")
    assert row[9:12] == ("1 x 7,011", "7k", "2 of 5")
    assert all(mark in detailed.notes for r in detailed.rows for mark in r[-1].split())


def test_a_slower_training_is_no_zero(tmp_path: Path) -> None:
    experiment = Experiment("adult", "cosmos", "paper")
    recipe = Recipe("mine", "Mine", "nowhere", "table", (experiment,))
    write_run(experiment, tmp_path, 1, seconds_to_selected=70.0, seeds_together=1)
    (row,) = read_tables(collect_results(recipe, tmp_path))[-1].rows
    assert row[5:9] == ("70 s", "31 s", "0.44", "NVIDIA H200, 1 at once")


def test_what_is_missing_failed_or_unexplained_is_told(tmp_path: Path) -> None:
    recipe = load_recipe("table_1")
    first, _, third, *_ = recipe.experiments
    for seed in first.seeds[:3]:
        write_run(first, tmp_path, seed)
    third.folder(tmp_path).mkdir(parents=True)
    write_json(third.folder(tmp_path) / "cell.json", {"error": "the loss became nan"})
    result = collect_results(recipe, tmp_path)
    section = read_report(result)[-1]
    notes = " ".join(section.notes)
    assert "Failed: `adult-paper/phn_epo`: the loss became nan" in notes
    assert "Missing: seeds 4, 42 of `adult-paper/cosmos`." in notes
    assert "seeds 1, 2, 3, 4, 42 of `adult-paper/phn_ls`, `adult-paper/phn_epo`, " in notes
    states = {row[1]: row[2] for row in section.tables[-1].rows[:5]}
    assert (states["PHN-EPO"], states["PHN-LS"]) == ("failed", "not run")
    cosmos = result.experiments[0]
    unknown = replace(cosmos, comparison=replace(cosmos.comparison, reasons=[], differs=True))
    tables = read_tables(replace(result, experiments=[unknown]))
    assert any("no known reason" in note for note in tables[-1].notes.values())


def test_fewer_seeds_are_marked_beside_others(tmp_path: Path) -> None:
    recipe = load_recipe("table_1_small").with_seeds([1, 2])
    write_recipe(recipe, tmp_path)
    pareto_mtl = next(e for e in recipe.experiments if e.name == "adult-paper/pareto_mtl")
    (pareto_mtl.runs(tmp_path)[2] / "run.json").unlink()
    assert read_tables(collect_results(recipe, tmp_path))[0].rows[3][1].endswith("(2.90) [1 seed]")


@pytest.mark.parametrize("name", recipe_names())
def test_a_rehearsal_is_marked_everywhere(name: str, tmp_path: Path) -> None:
    result = collect_recipe(name, tmp_path, epochs=3)
    assert result.rehearsal == 3
    assert all(e.rehearsal == 3 for e in result.experiments)
    (section,) = read_report(result)
    assert any("Rehearsal: 3 epochs instead of the paper's" in line for line in section.lines)
    assert section.tables
    assert all("rehearsal, 3 epochs" in table.title for table in section.tables)
    assert section.captions
    assert all("REHEARSAL, 3 epochs" in caption for caption in section.captions)


def test_faces_have_the_overhead_and_every_task(tmp_path: Path) -> None:
    result = collect_recipe("table_celeba", tmp_path)
    by_row = {row[:2]: row for row in read_tables(result)[0].rows}
    hard = by_row["CelebA, hard", "COSMOS"]
    assert (hard[3], hard[7], hard[10]) == ("2.221", "25.29", "3.30 h")
    cosmos, alone = (
        next(e for e in result.experiments if e.name == f"celeba_hard/{method}")
        for method in ("cosmos", "single_task")
    )
    ratio = cosmos.seconds["training"].mean / (alone.seconds["training"].mean / 2) - 1
    assert hard[11] == f"{ratio:+.1%}"
    assert (by_row["CelebA, hard", "Single Task"][5::6]) == ("–", "–")
    pairs, tasks = read_tables(collect_recipe("celeba_objectives", tmp_path))
    assert pairs.rows[0][:2] == ("CelebA, easy", "COSMOS")
    assert pairs.rows[0][3] == by_row["CelebA, easy", "COSMOS"][3]
    three = [row[2:] for row in tasks.rows if row[0] == "CelebA, 3 tasks"]
    assert [row[0] for row in three] == ["Goatee", "Mustache", "No Beard"]
    assert [row[2] for row in three] == ["3.16", "3.93", "5.28"]
    for _, ours, paper, difference, single in three:
        assert difference == f"{float(ours) - float(paper):+.2f}".replace("-", "−")
        assert single != "–"  # the networks of four tasks
    short = read_tables(collect_recipe("celeba_objectives", tmp_path, epochs=1))
    assert {row[5] for row in short[1].rows} == {"–"}


def make_evil_result() -> RecipeResult:
    """Return results in which every text that a file can hold tries to be more than text."""
    experiment = make_result("adult", "cosmos", [3.0, 3.1], error=EVIL, settings={EVIL: EVIL})
    experiment.made["caveats"].append(EVIL)
    claim = ClaimResult(EVIL, [ClaimRow(("adult", "", EVIL), None, EVIL, EVIL)])
    return RecipeResult("evil", EVIL, EVIL, "fronts", None, [experiment], [claim])


def test_names_never_become_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "paretocosmos.paper.report.tables.label_experiments", lambda e, **_: {e[0].name: EVIL}
    )
    result = make_evil_result()
    markdown = render_report([result], title=EVIL)
    page = Page(render_page(markdown, {}))
    assert {"script", "b", "i"}.isdisjoint(page.names)
    assert all(address.startswith("#") for address in page.get("src", "href", "action"))
    shown = EVIL.replace("`", "")
    assert page.rows[-1][1] == shown
    # titles, claims in both places, notes
    assert "".join(page.texts).count(shown) >= 10
    rows = [line for line in markdown.splitlines() if line.startswith("| ")]
    for row in rows:
        assert "<script>" not in re.sub(r"\\.", "", row)
    # a pipe in a name does not add a column
    assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows[-2:]}) == 1


def test_html_and_entities_in_markdown_are_text() -> None:
    page = Page(render_page("# A\n\n<img src=x> &lt;", {}))
    assert "img" not in page.names
    assert "<img src=x> <" in "".join(page.texts)
    page = Page(render_page(render_report([], title="&lt; &amp;"), {}))
    assert "&lt; &amp;" in "".join(page.texts)


def test_without_matplotlib_there_is_a_report_and_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise MissingExtraError("matplotlib", "plot", "drawing a front")

    monkeypatch.setattr(module, "save_figure", fail)
    (note,) = write_report([collect_recipe("intuition", tmp_path)], tmp_path / "report")
    assert note.startswith("no pictures: drawing a front needs `matplotlib`")
    assert "<img" not in (tmp_path / "report" / "report.html").read_text(encoding="utf-8")


@pytest.mark.system
def test_a_report_is_the_same_from_its_json(tmp_path: Path) -> None:
    write_report([collect_recipe("table_celeba", tmp_path)], tmp_path / "one")
    write_report([RecipeResult.read(tmp_path / "one" / "table_celeba.json")], tmp_path / "two")
    for name in ("report.md", "report.html", "figures/table_celeba.pdf"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_a_recipe_of_one_s_own_is_reported(tmp_path: Path) -> None:
    experiments = [Experiment("toy_convex", method, seeds=(1,)) for method in ("cosmos", "linear")]
    result = collect_experiments("fronts", experiments, tmp_path, name="my (own) recipe")
    write_report([result], tmp_path)
    section = read_report(result)[-1]
    assert section.title == "Mine"
    assert [row[1] for row in section.tables[0].rows] == ["COSMOS", "Weighted sum"]
    assert (tmp_path / "figures" / "my (own) recipe.png").exists()
    assert "](figures/my%20%28own%29%20recipe.png)" in (tmp_path / "report.md").read_text()


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(0.0996, "0.10"), (0.00123, "0.0012"), (1.0, "1.0"), (9.96, "10"), (12345.6, "12,346")],
)
def test_a_ratio_has_two_digits(ratio: float, text: str) -> None:
    assert format_ratio(ratio) == text
