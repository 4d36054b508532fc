"""The command line in this process."""

import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from paretocosmos import fit
from paretocosmos.cli import main
from paretocosmos.errors import BenchmarkWarning


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


@pytest.fixture(autouse=True)
def _ctrl_c() -> Iterator[None]:
    """Ctrl-C works, also where the tests were started in the background, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def columns() -> int:
    """How wide the terminal is."""
    return 100


@pytest.fixture
def cli(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    columns: int,
) -> Callable[..., Ended]:
    """Run the command line in this process, in an empty folder, which is not on the path."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place != ""])

    def call(*arguments: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["paretocosmos", *arguments])
        capsys.readouterr()
        code: object = 0
        try:
            main()
        except SystemExit as ended:
            code = ended.code
        assert isinstance(code, int | None)
        return Ended(code or 0, *capsys.readouterr())

    return call


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run on the embedded data; look, do not touch."""
    folder = tmp_path_factory.mktemp("compas") / "run"
    settings = {"fairness": "tpr_gap", "hidden": "8"}
    with pytest.warns(BenchmarkWarning):
        fit("compas", epochs=20, settings=settings, out=folder, device="cpu")
    return folder
