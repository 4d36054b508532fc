"""`paretocosmos report`, on run folders made by hand and after a real rehearsal."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.paper.hand_made import write_recipe, write_run

from paretocosmos.paper.recipe import load_recipe

pytestmark = pytest.mark.system  # takes minutes

Call = Callable[..., Any]  # of `cli`: gives the code, what went out, and the errors
OUT = Path("reproduction")


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_one_recipe_is_written_and_told(cli: Call) -> None:
    write_recipe(load_recipe("table_1_small"), OUT.absolute())
    ended = cli("report", "table_1_small")
    assert ended.code == 0
    lines = ended.out.splitlines()
    assert (
        lines[0] == "table_1_small: A small Table 1: every method on four sets that need no files"
    )
    assert lines[1] == "  35 of 35 experiments complete"
    assert "COSMOS is not outperformed" in lines[2]
    assert lines[-2] == f"report  {OUT / 'report' / 'report.html'}"
    assert lines[-1].startswith("next  paretocosmos ")
    assert files(OUT / "report") == {*("report.md", "report.html", "figures", "table_1_small.json")}
    assert files(OUT / "report" / "figures") == {"table_1_small.png", "table_1_small.pdf"}


def test_a_report_counts_what_is_complete_begun_and_untouched(cli: Call) -> None:
    recipe = load_recipe("table_1")
    for cell in recipe.only(["adult", "cosmos"]):
        write_run(cell, OUT.absolute(), 1)
    lines = cli("report", "table_1").out.splitlines()
    assert lines[1] == "  0 of 45 experiments complete, 2 with 1 of 5 seeds, 43 not begun"
    assert lines[-1].endswith("reproduce table_1 --out reproduction")
    lines = cli("report", "table_1", "--seeds", "1").out.splitlines()
    assert lines[1] == "  2 of 45 experiments complete, 43 not begun"
    assert lines[-1].endswith("reproduce table_1 --out reproduction --seeds 1")


def test_without_a_name_all_that_is_there_is_reported(cli: Call) -> None:
    for name in ("table_celeba", "intuition"):
        write_recipe(load_recipe(name), OUT.absolute())
    ended = cli("report", "--json")
    assert ended.code == 0
    contents = json.loads(ended.out)
    # figure_celeba has no cell that table_celeba has not
    assert [c["recipe"] for c in contents] == ["figure_celeba", "intuition", "table_celeba"]
    saved = json.loads((OUT / "report" / "intuition.json").read_text(encoding="utf-8"))
    assert saved == contents[1]


@pytest.mark.system
def test_a_rehearsal_is_marked_and_kept_apart(cli: Call) -> None:
    done = cli("reproduce", "intuition", "--epochs", "2", "--only", "linear", "--device", "cpu")
    assert done.code == 0
    refused = cli("report", "intuition")
    assert refused.code == 2
    assert "`epochs` of a rehearsal" in refused.err
    ended = cli("report", "--epochs", "2")
    assert ended.code == 0
    assert ended.out.startswith("REHEARSAL, 2 epochs: intuition: What a weighted sum finds")
    assert "2 of 8 experiments complete" in ended.out
    folder = OUT / "rehearsal-2" / "report"
    assert not (OUT / "report").exists()
    assert json.loads((folder / "intuition.json").read_text())["rehearsal"] == 2
    for name in ("report.md", "report.html"):
        assert "Rehearsal: 2 epochs" in (folder / name).read_text(encoding="utf-8")


def test_other_seeds_are_reported_when_named(cli: Call) -> None:
    recipe = load_recipe("intuition").with_seeds([7])
    for cell in recipe.experiments:
        write_run(cell, OUT.absolute(), 7)
    assert cli("report", "intuition").code == 2
    ended = cli("report", "intuition", "--seeds", "7", "--json")
    assert {tuple(cell["seeds"]) for cell in json.loads(ended.out)[0]["cells"]} == {(7,)}


def test_what_cannot_be_reported_is_one_sentence(cli: Call) -> None:
    for arguments, words in (
        (("report",), "has no results of this package"),
        (("report", "table_1"), "has no finished run of `table_1`"),
        (("report", "tabel_1"), "did you mean `table_1`?"),
        (("report", "table_1", "--seeds", "one"), "whole numbers"),
        (("report", "table_1", "--epochs", "0"), "at least 1"),
    ):
        ended = cli(*arguments)
        assert ended.code == 2
        assert ended.out == ""
        assert words in ended.err
        assert ended.err.count("\n") == 1


def test_a_folder_that_cannot_be_written_is_one_sentence(cli: Call) -> None:
    write_recipe(load_recipe("intuition"), OUT.absolute())
    (OUT / "report").write_text("in the way")
    ended = cli("report", "intuition")
    assert ended.code == 2
    assert "cannot use `reproduction/report`" in ended.err


def test_a_folder_that_cannot_be_looked_into_is_one_sentence(cli: Callable[..., Any]) -> None:
    code, out, err = cli("report", "--out", "n" * 300)
    assert (code, out) == (2, "")
    assert "cannot use `nnn" in err
    assert "choose another" in err
