"""Small recipes, and a module of one's own that other processes can import too."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from paretocosmos.paper.recipe import Recipe, load_recipe

# A problem that fails, or whose process is killed until it has been begun often enough.
OWN = '''
import os, signal
from pathlib import Path
from paretocosmos.problems import load_problem

def broken(*, protocol: str = "clean"):
    """Stops with what nobody foresaw."""
    raise ZeroDivisionError("on purpose")

def deadly(*, protocol: str = "clean", marks: str = "", times: int = 1):
    """Kills its process, so many times."""
    begun = len(list(Path(marks).iterdir()))
    Path(marks, str(begun)).touch()
    if begun < times:
        os.kill(os.getpid(), signal.SIGKILL)
    return load_problem("toy_convex")
'''


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module with problems of one's own."""
    folder = tmp_path / "modules"
    folder.mkdir()
    (folder / "own_problems.py").write_text(OWN)
    monkeypatch.syspath_prepend(folder)  # what processes are started with as well
    monkeypatch.setenv("PYTHONPATH", str(folder), prepend=":")
    return "own_problems"


@pytest.fixture
def recipe(tmp_path: Path) -> Callable[..., Recipe]:
    """Writes a recipe with one grid and reads it."""

    def write(
        problems: list[str],
        methods: list[str],
        *,
        seeds: tuple[int, ...] = (1,),
        name: str = "mine",
        **settings: Any,
    ) -> Recipe:
        text = f'title = "Mine"\nsection = "none"\nshows = "table"\nseeds = {list(seeds)}\n'
        text += f"[[grid]]\nproblems = {problems}\nmethods = {methods}\n[grid.settings]\n"
        given = {"epochs": 2, "hidden": [8]} | settings
        text += "".join(f"{k} = {value!r}\n" for k, value in given.items() if value is not None)
        path = tmp_path / f"{name}.toml"
        path.write_text(text)
        return load_recipe(path, trust=["own_problems"])

    return write
