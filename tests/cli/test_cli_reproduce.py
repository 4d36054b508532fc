"""`paretocosmos reproduce` as a person meets it."""

import json
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.paper.hand_made import write_run

from paretocosmos import fit
from paretocosmos.paper import experiment
from paretocosmos.paper.recipe import load_recipe, recipe_names
from paretocosmos.training.loop import Trainer

Call = Callable[..., Any]  # of `cli`: gives the code, what went out, and the errors

RECIPE = """\
title = "Two toys"
section = "none"
shows = "table"
seeds = [1, 2]

[[grid]]
problems = ["toy_convex", "toy_concave"]
methods = ["cosmos"]

[grid.settings]
hidden = [8]
epochs = 2
"""
NAMES = [f"{name}/cosmos-epochs_2-hidden_8" for name in ("toy_convex", "toy_concave")]


@pytest.fixture
def go(cli: Call) -> Call:
    """Run `reproduce` on a recipe in the folder the command line runs in."""
    Path("mine.toml").write_text(RECIPE)
    own = ("--device", "cpu", "--workers", "0")  # in this process: it is quicker
    return lambda *more: cli("reproduce", "mine.toml", *own, *more)


def test_cells_are_told_as_they_end_and_all_at_the_end(go: Call) -> None:
    ended = go()
    assert ended.code == 0
    found = json.loads(Path("reproduction/mine.json").read_text())
    for name, cell in zip(NAMES, found["cells"], strict=True):
        hypervolume = f"{cell['hypervolume']:.4f}"
        assert re.search(rf"^done +{name}  HV {hypervolume}  2 seeds", ended.err, re.MULTILINE)
        assert re.search(rf"^{name} +{hypervolume} +2/2 .* done", ended.out, re.MULTILINE)
    assert "2 experiments: 2 done" in ended.err
    assert "reproduction/mine.json" in ended.out
    assert "rehearsal" not in (ended.out + ended.err).lower()
    again = go()
    assert again.code == 0
    assert "done " not in again.err  # nothing was trained


@pytest.mark.system
def test_cells_are_trained_in_a_process_of_their_own(cli: Call, go: Call) -> None:
    ended = cli("reproduce", "mine.toml", "--device", "cpu", "--seeds", "1", "--json")
    assert (ended.code, ended.err) == (0, "")
    assert [cell["seeds_done"] for cell in json.loads(ended.out)["cells"]] == [[1], [1]]
    assert "done " not in go("--seeds", "1").err  # they are the same cells


def test_json_is_one_object_and_nothing_else(go: Call) -> None:
    ended = go("--json", "--out", "here", "--only", "toy_convex", "--seeds", "2")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.count("\n") == 1
    assert json.loads(ended.out) == json.loads(Path("here/mine.json").read_text())
    states = [(cell["state"], cell["seeds_done"]) for cell in json.loads(ended.out)["cells"]]
    assert states == [("done", [2]), ("waiting", [])]


def test_a_rehearsal_says_so_everywhere(go: Call) -> None:
    ended = go("--epochs", "1", "--only", "toy_convex")
    for text in (ended.out, ended.err):
        assert text.startswith("REHEARSAL, 1 epoch, no results: mine: Two toys")
    assert "1 experiments that were not asked for" in ended.out
    assert json.loads(Path("reproduction/rehearsal-1/mine.json").read_text())["rehearsal"] == 1
    assert not Path("reproduction/mine.json").exists()


def test_a_failed_cell_is_told_at_the_end_and_in_the_code(
    go: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def some(problem: str, **given: Any) -> Any:
        if problem == "toy_convex":
            raise TypeError("no\nway")
        return fit(problem, **given)

    monkeypatch.setattr(experiment, "fit", some)
    ended = go()
    assert ended.code == 1
    assert "Traceback" not in ended.err
    last = ended.err.strip().splitlines()[-1]
    log = f"reproduction/cells/{NAMES[0]}/error.log"
    assert last.startswith(f"error: {NAMES[0]}: stopped by TypeError (no way)")
    assert f"`{log}`" in last
    assert "Traceback" in Path(log).read_text()
    assert re.search(rf"^{NAMES[1]} .* done", ended.out, re.MULTILINE)


def test_warnings_are_notes_with_the_name_of_their_cell(go: Call) -> None:
    Path("mine.toml").write_text(RECIPE + "reference = [1e-9, 1e-9]\n")
    ended = go("--only", "toy_convex")
    assert ended.code == 0
    name = "toy_convex/cosmos-epochs_2-hidden_8-reference_1e-09_1e-09"
    assert f"note: {name}: no point" in ended.err


@pytest.mark.system
def test_an_interrupt_says_how_to_go_on(go: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    epoch, count = Trainer.train_epoch, 0

    def interrupted(self: Trainer, *, prepare: bool) -> None:
        nonlocal count
        count += 1
        if count == 3:  # the second cell's first epoch
            signal.raise_signal(signal.SIGINT)
        epoch(self, prepare=prepare)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Trainer, "train_epoch", interrupted)
        ended = go()
    assert ended.code == 130
    assert ended.err.strip().endswith(
        "note: interrupted; finished experiments are in reproduction: run the same command to "
        "continue"
    )
    again = go()
    assert again.code == 0
    assert NAMES[0] not in again.err  # it was done
    assert f"done    {NAMES[1]}" in again.err


def test_the_papers_number_stands_beside_ours(cli: Call) -> None:
    """Table 1 of the paper: 3.72; it has no number under the clean protocol."""
    for cell in load_recipe("table_1").only(["compas", "cosmos"]):
        write_run(cell, Path("reproduction").absolute(), 1)
    ended = cli("reproduce", "table_1", "--only", "compas,cosmos", "--seeds", "1")
    assert ended.code == 0
    assert re.search(r"^experiment +hypervolume +the paper's +seeds", ended.out, re.MULTILINE)
    assert re.search(r"^compas-paper/cosmos +\d\.\d{4} +3\.72 +1/1", ended.out, re.MULTILINE)
    assert re.search(r"^compas-clean/cosmos +\d\.\d{4} +- +1/1", ended.out, re.MULTILINE)
    assert "report table_1 --out reproduction --seeds 1" in ended.out
    cells = json.loads(Path("reproduction/table_1.json").read_text())["cells"]
    papers = {cell["name"]: cell["hypervolume_paper"] for cell in cells}
    assert papers["default_credit-paper/pareto_mtl"] == 3.10
    assert papers["adult-clean/cosmos"] is None


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("reproduce", "tabel_1"), "`tabel_1`; did you mean `table_1`"),
        (("reproduce", "table_1", "--only", "adlut"), "did you mean `adult`?"),
        (("reproduce", "table_1", "--seeds", "a"), "--seeds takes whole numbers"),
        (("reproduce", "none.toml"), "`none.toml` cannot be read"),
        (("reproduce", "table_1", "--data", "nowhere"), "folder, found `nowhere`"),
        (("reproduce", "table_1", "--workers", "2", "--cluster", "auto"), "found both"),
        (("reproduce", "table_1", "--workers", "2", "--cluster"), "found both"),
    ],
)
def test_what_is_refused_is_one_sentence(cli: Call, arguments: tuple[str, ...], says: str) -> None:
    ended = cli(*arguments)
    assert ended.code == 2
    assert ended.out == ""
    assert len(ended.err.strip().splitlines()) == 1
    assert says in ended.err


def test_every_recipe_is_listed(cli: Call) -> None:
    listed = cli("list").out
    for name in recipe_names():
        assert re.search(rf"^\s*{name}\s", listed, re.MULTILINE)


def test_a_missing_ray_is_one_sentence(cli: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    ended = cli("reproduce", "table_1", "--cluster")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("error: training on a Ray cluster needs `ray`, which is not")
    assert 'pip install "paretocosmos[ray]"' in ended.err
    assert not Path("reproduction").exists()
