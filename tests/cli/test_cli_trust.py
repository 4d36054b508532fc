import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.strangers import PAYLOAD, RECIPE, change, mark_of, names

Cli = Callable[..., tuple[int, str, str]]

COMMANDS = {
    "evaluate": ("evaluate", "run"),
    "choose": ("choose", "run", "--knee"),
    "explore": ("explore", "run", "--no-open", "--out", "page.html"),
    "export": ("export", "run"),
    "serve": ("serve", "run", "--port", "0"),
}


@pytest.fixture
def payload(folder: Path, tmp_path: Path) -> Iterator[Path]:
    """A run that names a module, which lies in the current folder."""
    path = tmp_path / "payload.py"
    path.write_text(PAYLOAD)
    change(folder, names(backbone="payload:backbone"))
    yield path
    sys.modules.pop("payload", None)


@pytest.mark.parametrize("command", COMMANDS.values(), ids=list(COMMANDS))
def test_a_command_imports_nothing_that_a_folder_names(
    cli: Cli, payload: Path, command: tuple[str, ...]
) -> None:
    code, out, err = cli(*command)
    assert (code, out) == (2, "")
    assert " ".join(err.split()) == (
        "error: `run/run.json` names `payload:backbone`, code outside paretocosmos that would "
        'be imported and run: if you trust it, allow it with trust=["payload"] (here: --trust '
        "payload)"
    )
    assert not mark_of(payload).exists()


@pytest.mark.parametrize("name", ["evaluate", "choose", "explore", "export"])
def test_a_command_uses_what_its_user_trusts(cli: Cli, payload: Path, name: str) -> None:
    code, _, err = cli(*COMMANDS[name], "--trust", "payload")
    assert code == 0, err
    assert mark_of(payload).exists()


def test_recipes_are_trusted_by_the_command_line_only(cli: Cli, payload: Path) -> None:
    Path("mine.toml").write_text(RECIPE)
    for command in ("reproduce", "report"):
        code, _, err = cli(command, "mine.toml")
        assert code == 2
        assert "`payload:problem` and `payload:method`" in " ".join(err.split())
    assert not mark_of(payload).exists()
    given = ("--device", "cpu", "--workers", "0", "--trust", "payload")
    assert cli("reproduce", "mine.toml", *given)[0] == 0
    code, _, err = cli("report", "mine.toml", "--trust", "payload")
    assert code == 0, err


def test_a_cell_that_nobody_trusts_is_not_imported_and_fails_with_the_option_that_would(
    cli: Cli, payload: Path
) -> None:
    given = ("--only", "linear", "--epochs", "1", "--device", "cpu", "--workers", "0")
    assert cli("reproduce", "intuition", *given)[0] == 0
    for record in Path("reproduction").rglob("run.json"):
        change(record.parent, names(conditioning="payload:conditioning"))
    code, _, err = cli("report", "intuition", "--epochs", "1")
    assert code == 2
    assert "--trust payload" in " ".join(err.split())
    code, _, err = cli("reproduce", "intuition", *given)
    assert code == 1
    told = " ".join(err.split())
    assert "(here: --trust payload)" in told
    assert told.count("--trust payload") == told.count("error:") == 2
    assert not mark_of(payload).exists()


def test_a_name_on_the_command_line_needs_no_trust(cli: Cli, payload: Path) -> None:
    given = ("--epochs", "1", "--device", "cpu", "--out", "mine")
    code, _, err = cli("train", "toy_convex", "--method", "payload:method", *given)
    assert code == 0, err
    assert sys.path[-1] == ""  # where it can hide nothing
    assert cli("train", "toy_convex", "--method", "payload:method", *given, "--resume")[0] == 0


def test_names_of_this_package_do_not_look_into_the_current_folder(cli: Cli, payload: Path) -> None:
    before = list(sys.path)
    assert (
        cli("train", "toy_convex", "--method", "linear", "--epochs", "1", "--device", "cpu")[0] == 0
    )
    assert sys.path == before


@pytest.mark.system
@pytest.mark.parametrize("way", [["-m", "paretocosmos"], ["-P", "-c"]], ids=["module", "script"])
def test_a_module_in_the_current_folder_does_not_hide_an_installed_one(
    tmp_path: Path, way: list[str]
) -> None:
    for name in ("pandas", "torch", "numpy", "typer", "rich", "payload"):
        (tmp_path / f"{name}.py").write_text(PAYLOAD)
    rows = "".join(f"{n % 7},{'fm'[n % 2]},{n * n % 11 > 4}\n" for n in range(200))
    (tmp_path / "people.csv").write_text(f"age,sex,rich\n{rows}")
    code = ["from paretocosmos.cli import main; main()"] if "-c" in way else []
    options = ["--target", "rich", "--sensitive", "sex", "--method", "payload:method"]
    done = subprocess.run(
        [sys.executable, *way, *code, "train", "people.csv", *options, "--epochs", "1"],
        cwd=tmp_path,
        env=os.environ | {"CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.glob("*.mark")] == ["payload.mark"]


def test_too_many_rays_are_one_sentence(cli: Cli, toy: Path) -> None:
    code, _, err = cli("evaluate", str(toy), "--rays", "2000000000")
    said = "error: `rays` must be at most 1,000,000, found 2000000000"
    assert (code, " ".join(err.split())) == (2, said)


def test_too_many_epochs_are_one_sentence(cli: Cli) -> None:
    for command in (("train", "toy_convex"), ("compare", "toy_convex"), ("reproduce", "intuition")):
        code, _, err = cli(*command, "--epochs", "2000000000", "--device", "cpu")
        assert code == 2
        assert "1,000,000, found 2000000000" in " ".join(err.split())
    assert not list(Path().iterdir())
