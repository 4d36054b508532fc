"""The live display of terminals and notebooks."""

import re
import sys
import threading
import time
import warnings
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from rich.text import Text

from paretocosmos import fit
from paretocosmos.errors import FrontWarning
from paretocosmos.io import progress
from paretocosmos.io.progress import get_console, print_note, progress_bar, show_live, status

SMALL: dict[str, Any] = {"epochs": 2, "device": "cpu", "engine": "eager"}


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both streams are a terminal of 80 columns."""
    for key, value in {"FORCE_COLOR": "1", "TERM": "xterm", "NO_COLOR": "1"}.items():
        monkeypatch.setenv(key, value)
    monkeypatch.setattr(get_console(), "_width", 80)
    monkeypatch.setattr(get_console(), "is_interactive", True)
    monkeypatch.setattr(progress, "_is_stdout_terminal", lambda: True)


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """The kernel of a notebook: gives the pictures of its one output, the last one last."""
    pictures: list[dict[str, str]] = []

    def show(picture: dict[str, str], *, raw: bool, display_id: bool) -> Any:
        assert raw
        assert display_id
        pictures.append(picture)
        return SimpleNamespace(update=lambda picture, *, raw: pictures.append(picture))

    ipython, shown = ModuleType("IPython"), ModuleType("IPython.display")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=1)  # type: ignore[attr-defined]
    shown.display = show  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", shown)
    return pictures


def _plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", text)


def test_a_pipe_sees_nothing_of_a_training(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    fit("toy_convex", out=tmp_path / "run", **SMALL)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("progress", [True, False])
def test_a_terminal_sees_the_bar_and_the_page(
    terminal: None, pages: None, capsys: pytest.CaptureFixture[str], tmp_path: Path, progress: bool
) -> None:
    run = fit("toy_convex", out=tmp_path / "run", progress=progress, **SMALL)
    shown = _plain(capsys.readouterr().err)
    assert ("epoch 2/2" in shown) == progress
    assert ("page: " in shown) == progress
    assert run.report == tmp_path / "run" / "report.html"


def test_a_notebook_sees_bars_notes_and_the_page(
    notebook: list[dict[str, str]], pages: None, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        run = fit("toy_convex", out=tmp_path / "run", **SMALL)
    last = notebook[-1]
    assert "epoch 2/2" in last["text/plain"]
    assert f"page: {run.report}" in last["text/plain"].replace("\n", "")
    assert last["text/html"].startswith("<pre")
    assert capsys.readouterr() == ("", "")


def test_warnings_of_this_package_are_notes_and_others_are_not(
    notebook: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    others: list[str] = []
    monkeypatch.setattr(warnings, "showwarning", lambda said, *_, **__: others.append(str(said)))
    before = warnings.showwarning
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        with show_live(lambda: Text("bar")):
            warnings.warn("<b>ours</b>", FrontWarning, stacklevel=1)
            warnings.warn("theirs", UserWarning, stacklevel=1)
    assert "note: <b>ours</b>" in notebook[-1]["text/plain"]
    assert "<b>ours" not in notebook[-1]["text/html"]  # text, never markup
    assert others == ["theirs"]
    assert warnings.showwarning is before


@pytest.mark.system
def test_what_takes_a_while_is_named_below(
    notebook: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "STATUS_DELAY", 0.0)

    def is_named() -> bool:
        return any(r"loading \x1b[2J" in picture["text/plain"] for picture in notebook)

    deadline = time.monotonic() + 60
    with show_live(lambda: None, keep=False), status("loading \x1b[2J"):
        while not is_named() and time.monotonic() < deadline:
            time.sleep(0.02)  # it is drawn three times a second
    assert is_named()
    assert notebook[-1]["text/plain"] == ""  # and nothing is left


def test_only_one_draws(notebook: list[dict[str, str]]) -> None:
    def elsewhere() -> None:
        with show_live(lambda: Text("inner")):
            print_note("nobody")

    with show_live(lambda: Text("outer")), show_live(lambda: Text("inner")):
        pass
    assert notebook[-1]["text/plain"].split() == ["outer", "inner"]
    count = len(notebook)
    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert len(notebook) == count


@pytest.mark.parametrize("of_bytes", [True, False])
def test_a_pipe_sees_no_bar(capsys: pytest.CaptureFixture[str], of_bytes: bool) -> None:
    with progress_bar("decoding", 3, of_bytes=of_bytes) as advance:
        advance(2)
    assert capsys.readouterr() == ("", "")
