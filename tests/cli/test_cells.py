"""What a person sees of a reproduction while it runs."""

import re
import time
from pathlib import Path

import pytest
from tests.paper.hand_made import write_run

from paretocosmos.cli.console import err
from paretocosmos.cli.reproduce import show_experiments
from paretocosmos.paper.recipe import Experiment, Recipe, load_recipe
from paretocosmos.paper.reproduction import Reproduction
from paretocosmos.training.progress import Progress
from paretocosmos.training.tasks import Outcome

CELLS = tuple(Experiment("toy_convex", method) for method in ("cosmos", "linear", "mgda"))


@pytest.fixture
def at(tmp_path: Path) -> Reproduction:
    """Three cells, none begun."""
    made = Reproduction(Recipe("mine", "My [toys]", "none", "table", CELLS), tmp_path)
    for cell in CELLS:
        made.enter(cell, "waiting", asked=True)
    return made


def _progress(epoch: int, left: float) -> Progress:
    return Progress(epoch, 9, {}, 1.5, 1.0, "eager", Path(), "samples", 1.0, left, None, 0.0)


def _plain(text: str) -> str:
    """A terminal's text without what moves its cursor."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "\n", text)


@pytest.mark.system
def test_a_terminal_shows_the_cells_that_run(
    at: Reproduction, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for key, value in {"FORCE_COLOR": "1", "TERM": "xterm", "NO_COLOR": "1"}.items():
        monkeypatch.setenv(key, value)
    monkeypatch.setattr(err, "_width", 100)
    monkeypatch.setattr(err, "is_interactive", True)
    with show_experiments() as show:
        show(at)
        at.update(CELLS[0], None)
        show(at)
        at.update(CELLS[0], Outcome(None, 60.0))
        show(at)
        at.update(CELLS[1], None)
        at.update(CELLS[1], _progress(3, 75.0))
        show(at)
        shown, deadline = "", time.monotonic() + 60
        while "3/9" not in shown and time.monotonic() < deadline:
            time.sleep(0.05)  # it is redrawn by itself, five times a second
            shown += capsys.readouterr().err
    shown = _plain(shown + capsys.readouterr().err)
    assert re.match(r"\s*mine: My \[toys\]\n+3 experiments: 3 waiting\n", shown)
    assert re.search(r"^done    toy_convex/cosmos  HV -  1 seed  0:01:00$", shown, re.MULTILINE)
    assert re.search(r"toy_convex/linear +3/9 +\S+ +HV val 1\.5000 0:01:1", shown), shown


def test_a_log_has_lines(
    at: Reproduction, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 1000.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    with show_experiments() as show:
        show(at)
        at.update(CELLS[0], None)
        at.update(CELLS[0], _progress(2, 30.0))
        show(at)
        assert capsys.readouterr().err.splitlines() == [
            "mine: My [toys]",
            "3 experiments: 3 waiting",
        ]
        now += 31
        at.update(CELLS[0], _progress(5, 20.0))
        show(at)
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("toy_convex/cosmos  epoch 5/9  ")
        assert "HV val 1.5000" in line
        at.update(CELLS[0], Outcome("no [disk] left", 32.0))
        show(at)
    assert capsys.readouterr().err.splitlines() == [
        "failed  toy_convex/cosmos: no [disk] left",
        "3 experiments: 2 waiting, 1 failed",
    ]


def test_a_cell_ends_with_the_papers_number_beside_ours(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = load_recipe("table_1").with_seeds([1])
    done = Reproduction(recipe, tmp_path)
    for cell in recipe.only(["compas", "cosmos"]):
        done.enter(cell, "waiting", asked=True)
        with show_experiments() as show:
            show(done)
            write_run(cell, tmp_path, 1)
            done.update(cell, Outcome(None, 60.0))
            show(done)
    shown = capsys.readouterr().err
    # the paper has a number under its own protocol
    assert re.search(
        r"^done    compas-paper/cosmos  HV \d\.\d{4} \(the paper's 3\.72\)", shown, re.MULTILINE
    )
    assert re.search(r"^done    compas-clean/cosmos  HV \d\.\d{4}  1 seed", shown, re.MULTILINE)
