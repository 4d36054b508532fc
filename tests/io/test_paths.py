"""Paths of users: the home folder, names that cannot be."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from paretocosmos import fit, load_problem, load_run
from paretocosmos.errors import ParetoCosmosError, RunError
from paretocosmos.io.files import user_path
from paretocosmos.paper.recipe import load_recipe
from paretocosmos.problems.tables import read_table

NOBODY = "~nobody-of-that-name/x"
LONG = "x" * 300


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_home_folder_is_put_in(home: Path) -> None:
    assert user_path("~/runs/one") == home / "runs" / "one"
    assert user_path("~") == home
    assert user_path(Path("runs/~one")) == Path("runs/~one")
    (home / "file").touch()
    assert user_path(home / "file" / "below") == home / "file" / "below"  # the caller will say


@pytest.mark.parametrize(
    ("path", "says"), [(NOBODY, "`~nobody-of-that-name` is not known.*`./~"), (LONG, "too long")]
)
def test_what_cannot_be_a_path(path: str, says: str) -> None:
    with pytest.raises(RunError, match=says):
        user_path(path)
    with pytest.raises(RunError, match="null"):
        user_path("a\0b")


def test_a_folder_that_may_not_be_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "lstat", refused)
    with pytest.raises(RunError, match="cannot use `secret/x`: Permission denied"):
        user_path("secret/x")


def test_a_run_is_written_to_and_read_from_the_home_folder(home: Path) -> None:
    run = fit("toy_convex", preset="paper", epochs=1, out="~/one", engine="eager", report=False)
    assert run.folder == home / "one"
    assert load_run("~/one").folder == home / "one"


READERS: dict[str, Callable[[str], object]] = {
    "a run": load_run,
    "a run to be": lambda path: fit("toy_convex", epochs=1, out=path),
    "runs of several seeds": lambda path: fit("toy_convex", epochs=1, out=path, seeds=[1, 2]),
    "a table": lambda path: read_table(Path(f"{path}.csv")),
    "a problem": lambda path: load_problem(f"{path}.csv", settings={"target": "a"}),
    "its test rows": lambda path: load_problem("a.csv", settings={"target": "a", "test": path}),
    "images": lambda path: load_problem("multi_mnist", data=path),
    "faces": lambda path: load_problem("celeba_easy", data=path),
    "raw files": lambda path: load_problem("compas", data=path),
    "a recipe": lambda path: load_recipe(f"{path}.toml"),
}


@pytest.mark.parametrize("path", [NOBODY, LONG], ids=["nobody", "long"])
@pytest.mark.parametrize("what", READERS)
def test_every_reader_refuses_it_in_one_sentence(what: str, path: str, home: Path) -> None:
    pd.DataFrame({"a": [0, 1], "b": [1, 2]}).to_csv("a.csv", index=False)
    with pytest.raises(ParetoCosmosError) as refused:
        READERS[what](path)
    assert "\n" not in str(refused.value)
    assert [file.name for file in home.iterdir()] == ["a.csv"]
