"""Terminals of 50 columns: no word is broken, and what is copied is what was meant."""

import io
import re
import shlex

import numpy as np
import pytest
from rich.console import Console
from rich.table import Table

from paretocosmos import Front
from paretocosmos.cli.console import print_markup, print_next_command, print_table
from paretocosmos.cli.evaluate import print_front


def _console(width: int = 50, *, terminal: bool = True) -> Console:
    return Console(file=io.StringIO(), width=width, force_terminal=terminal, color_system=None)


def _shown(console: Console) -> list[str]:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def test_words_stay_whole_and_a_long_one_has_its_own_line() -> None:
    words = "a sentence with `binary_cross_entropy` in it and a [bold]path[/]"
    path = "/a/very/long/path/that/nobody/can/shorten/and/must/be/copied/run.json"
    console = _console()
    print_markup(console, f"{words} {path} in it")
    lines = _shown(console)
    assert path in lines
    assert " ".join(lines) == f"{words.replace('[bold]', '').replace('[/]', '')} {path} in it"
    assert all(len(line) <= 50 for line in lines if line != path)
    log = _console(terminal=False)
    print_markup(log, "word " * 40)
    assert len(_shown(log)) == 1


@pytest.mark.parametrize("width", [40, 100])
def test_a_table_without_room_is_a_block_for_each_row(width: int) -> None:
    table = Table(box=None)
    for name in ("method", "hypervolume", "order", "dominated by"):
        table.add_column(name, no_wrap=True)
    table.add_row("[bold]linear[/]", "3.8151 ± 0.0012", "0.99", "separate 4%")
    table.add_row("[bold]uniform[/]", "3.7282 ± 0.0011", "-", "")
    console = _console(width)
    print_table(console, table)
    lines = _shown(console)
    assert ("method linear" in lines) == (width == 40)
    assert len(lines) == (7 if width == 40 else 3)
    for text in ("3.8151 ± 0.0012", "separate 4%"):
        assert any(text in line for line in lines)


def test_a_front_leaves_out_what_has_no_room_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    console = _console()
    monkeypatch.setattr("paretocosmos.cli.evaluate.get_stdout", lambda: console)
    names = ("binary_cross_entropy", "demographic_parity")
    metrics = {"accuracy": np.ones(2), "misclassification": np.zeros(2), "calibration": np.ones(2)}
    print_front(Front(np.eye(2), np.eye(2), names, np.full(2, 2.0), metrics))
    lines = _shown(console)
    assert max(map(len, lines)) <= 50
    assert "no room for accuracy, calibration: see them with" in lines
    words = set(re.findall(r"[a-z]+", " ".join(lines)))
    assert {"binary", "cross", "entropy", "demographic", "parity", "weight", "on"} <= words


def test_the_next_command_is_one_for_a_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    console = _console()
    monkeypatch.setattr("paretocosmos.cli.console.get_stdout", lambda: console)
    print_next_command(
        "choose", "runs/my run", "--max", "demographic_parity=0.02", "--maximize", "x"
    )
    text = "\n".join(_shown(console))
    assert text.count("\n") >= 1
    assert max(map(len, text.splitlines())) <= 50
    command = text.removeprefix("next  ").replace("\\\n", "")
    assert shlex.split(command) == [
        *("paretocosmos", "choose", "runs/my run", "--max", "demographic_parity=0.02"),
        *("--maximize", "x"),
    ]
