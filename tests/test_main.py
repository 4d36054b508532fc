"""The command line before its first line: Ctrl-C while imports take their seconds."""

import importlib.abc
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


def test_the_module_runs() -> None:
    command = [sys.executable, "-m", "paretocosmos", "--version"]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert found.stdout.startswith("paretocosmos ")
