"""The command line before its first line: Ctrl-C while imports take their seconds."""

import contextlib
import importlib.abc
import os
import pty
import re
import subprocess
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


def _in_terminal(command: list[str]) -> str:
    """Return all that a terminal is sent."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env={**os.environ, "TERM": "xterm"}
    ) as process:
        os.close(theirs)
        pieces = []
        with contextlib.suppress(OSError):  # the way a terminal ends on Linux
            while piece := os.read(ours, 65536):
                pieces.append(piece)
    os.close(ours)
    assert process.returncode == 0
    return b"".join(pieces).decode()


@pytest.mark.system
def test_the_module_runs_and_moves_before_its_imports_are_done() -> None:
    sent = _in_terminal([sys.executable, "-m", "paretocosmos", "list", "recipes"])
    before, table, after = sent.partition("table_1")
    assert before.count("starting") > 1  # it moved
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", table + after)
    assert "starting" not in shown  # and is gone
