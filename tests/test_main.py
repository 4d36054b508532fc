"""The command line before its first line: Ctrl-C while imports take their seconds."""

import contextlib
import importlib.abc
import os
import pty
import re
import sys
from typing import Any

import pytest

from paretocosmos import __main__


class Interrupting(importlib.abc.MetaPathFinder):
    """Ctrl-C while the command line is imported."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> None:
        if fullname == "paretocosmos.cli":
            raise KeyboardInterrupt


def test_an_early_interrupt_is_one_word(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in sys.modules if name.startswith("paretocosmos.cli")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Interrupting(), *sys.meta_path])
    with pytest.raises(SystemExit) as ended:
        __main__.main()
    assert ended.value.code == 130
    assert capsys.readouterr() == ("", "interrupted\n")


def _in_terminal(command: list[str]) -> list[str]:
    """What a terminal is sent, piece by piece."""
    process, terminal = pty.fork()
    if process == 0:  # pragma: no cover, it becomes another program
        os.execve(command[0], command, {**os.environ, "TERM": "xterm"})
    pieces = []
    with contextlib.suppress(OSError):  # the way a terminal ends on Linux
        while piece := os.read(terminal, 65536):
            pieces.append(piece.decode())
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0
    return pieces


@pytest.mark.system
def test_the_module_runs_and_moves_before_its_imports_are_done() -> None:
    pieces = _in_terminal([sys.executable, "-m", "paretocosmos", "list", "recipes"])
    told = next(at for at, piece in enumerate(pieces) if "table_1" in piece)
    assert "starting" in "".join(pieces[:told])
    assert len(pieces[:told]) > 2  # it moved
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", "".join(pieces[told:]))
    assert "starting" not in shown  # and is gone
