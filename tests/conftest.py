"""What every test shares: repeatable examples, one thread, a fresh seed, nothing left behind."""

import importlib
import inspect
import os
import runpy
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import settings
from tests.browser import opened
from tests.isolation import isolated
from tests.strangers import copy

settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=40)
settings.load_profile("repeatable")

torch.set_num_threads(1)  # small tensors: threads only cost, and xdist takes the other core
os.environ["OMP_NUM_THREADS"] = "1"  # else scikit-learn asks the machine how many cores it has


EXTRAS = Path(__file__).with_name("extras")
ROOT = EXTRAS.parents[1]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs heavy extras or a browser as a test of the system.

    Such a test is not judged by errors that Python ignores, which libraries raise when they clean
    up after sockets, processes and signals, at moments that nobody chooses.
    """
    for item in items:
        if EXTRAS in item.path.parents or "chromium" in getattr(item, "fixturenames", ()):
            item.add_marker("system")
        if item.get_closest_marker("system"):
            ignored = "default::pytest.PytestUnraisableExceptionWarning"
            item.add_marker(pytest.mark.filterwarnings(ignored))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Run a test and its fixtures apart from the machine, unless it is one of the system."""
    # on a GPU, Triton starts a compiler
    if item.get_closest_marker("system") or torch.cuda.is_available():
        return (yield)
    with isolated():
        return (yield)


PEAKS: list[float] = []
"""Gigabytes that each worker had at most, in the process that leads them."""


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Tell the leading process how large this worker grew."""
    if sys.platform == "linux" and hasattr(session.config, "workeroutput"):
        import resource  # Windows has none, and macOS counts bytes

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # in kilobytes
        session.config.workeroutput["peak"] = peak / 2**20


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Keep what a worker tells."""
    PEAKS.append(getattr(node, "workeroutput", {}).get("peak", 0.0))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how large workers grew: one that grows past a gigabyte keeps too much."""
    if PEAKS:
        terminalreporter.write_line(f"largest worker: {max(PEAKS):.2f} GB")


@pytest.fixture(autouse=True)
def _fresh_torch() -> Iterator[None]:
    """Seed the global generator, and see that no test changes torch for the next one."""
    torch.manual_seed(0)
    yield
    assert torch.get_default_dtype() == torch.float32
    assert torch.is_grad_enabled()


@pytest.fixture(autouse=True)
def _no_pages(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trainings of tests write no page, which takes longer than they do; `pages` asks for it."""
    if "pages" not in request.fixturenames:
        # imported before either is patched: else `compare` would keep the patch of `fit` for good
        modules = [
            importlib.import_module(f"paretocosmos.training.{m}") for m in ("fit", "compare")
        ]
        for module in modules:
            monkeypatch.setattr(module, "write_pages", lambda *_: None)


@pytest.fixture
def pages() -> None:
    """Trainings write their pages."""


@pytest.fixture(scope="session")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run, to look at."""
    from paretocosmos import fit

    return fit(
        "toy_convex", preset="paper", epochs=1, out=tmp_path_factory.mktemp("toy") / "run"
    ).folder


@pytest.fixture
def folder(toy: Path, tmp_path: Path) -> Path:
    """A copy of it, to change."""
    return copy(toy, tmp_path / "run")


@pytest.fixture
def thing_in() -> Callable[[str, str], Any]:
    """Check what holds for every registered class or function, and return it."""

    from paretocosmos import registry

    def check(kind: str, name: str) -> Any:
        thing = registry.find(kind, name)
        module = importlib.import_module(thing.__module__)
        address = f"{module.__name__}:{thing.__name__}"  # where it is defined, not re-exported
        assert registry.get_table(kind)[name] == address
        for text in (module.__doc__, thing.__doc__, registry.summary(kind, name)):
            assert (text or "").partition("\n")[0].strip()
        for setting in registry.parameters(thing).values():  # what a user may set
            assert setting.default is not inspect.Parameter.empty, f"`{setting.name}` has none"
            assert setting.annotation is not inspect.Parameter.empty
            registry.convert(setting.name, setting.default, setting.annotation)
        return thing

    return check


@pytest.fixture
def shown_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[str], str]:
    """What a script of `examples/` prints in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(name: str) -> str:
        runpy.run_path(str(ROOT / "examples" / name), run_name="__main__")
        return capsys.readouterr().out

    return run


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """A real browser, headless: one for all, since a process can have but one."""
    with opened() as browser:
        yield browser
