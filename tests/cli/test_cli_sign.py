import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.keys import ssh_pair
from tests.strangers import change, copy

from paretocosmos import fit, load_run
from paretocosmos.io.signatures import fingerprint_of, read_public_key
from paretocosmos.runs import sign_run

Cli = Callable[..., tuple[int, str, str]]

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="needs ssh-keygen"),
]

COMMANDS = {
    "evaluate": ("evaluate", "run"),
    "choose": ("choose", "run", "--knee"),
    "explore": ("explore", "run", "--no-open", "--out", "page.html"),
    "export": ("export", "run", "--format", "torch"),
    "serve": ("serve", "run", "--port", "0"),
}
SHORT = ("--epochs", "1", "--device", "cpu")


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two pairs, ours and other."""
    place = tmp_path_factory.mktemp("keys")
    ssh_pair(place / "ours")
    ssh_pair(place / "other")
    return place


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory, keys: Path) -> Path:
    folder = fit(
        "toy_convex", preset="paper", epochs=1, out=tmp_path_factory.mktemp("toy") / "run"
    ).folder
    sign_run(folder, keys / "ours")
    return folder


def _said(err: str) -> str:
    return " ".join(err.split())


@pytest.mark.parametrize("name", ["evaluate", "choose", "explore", "export"])
def test_a_command_opens_what_is_signed(
    cli: Cli, toy: Path, keys: Path, tmp_path: Path, name: str
) -> None:
    copy(toy, tmp_path / "run")
    code, _, err = cli(*COMMANDS[name], "--verify", str(keys / "ours.pub"))
    assert code == 0, err
    card = tmp_path / "run" / "export" / "model.pt2.md"
    if name == "export":
        assert fingerprint_of(read_public_key(keys / "ours.pub")) in card.read_text()


@pytest.mark.parametrize("command", COMMANDS.values(), ids=list(COMMANDS))
def test_a_command_refuses_what_is_not(
    cli: Cli, toy: Path, keys: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    folder = copy(toy, tmp_path / "run")
    code, out, err = cli(*command, "--verify", str(keys / "other.pub"))
    assert (code, out) == (2, "")
    assert "with another key" in _said(err)
    change(folder, lambda record: record.update(label="Another"))
    code, out, err = cli(*command, "--verify", str(keys / "ours.pub"))
    assert (code, out) == (2, "")
    assert _said(err) == (
        "error: `run/run.json` was changed after it was signed: restore the signed version"
    )
    (folder / "signature.json").unlink()
    code, out, err = cli(*command, "--verify", str(keys / "ours.pub"))
    assert (code, out) == (2, "")
    assert "`run` is not signed" in _said(err)
    assert not (tmp_path / "page.html").exists()


def test_train_signs_every_seed(cli: Cli, keys: Path) -> None:
    given = ("--seeds", "1,2", "--out", "two", "--sign", str(keys / "ours"))
    code, _, err = cli("train", "toy_convex", *SHORT, *given)
    assert code == 0, err
    for seed in (1, 2):
        assert load_run(f"two/seed-{seed}", verify=keys / "ours.pub").signed_by


def test_a_finished_run_is_signed_when_it_is_resumed(cli: Cli, keys: Path) -> None:
    assert cli("train", "toy_convex", *SHORT, "--out", "run")[0] == 0
    again = ("--out", "run", "--resume", "--sign", str(keys / "ours"))
    assert cli("train", "toy_convex", *SHORT, *again)[0] == 0
    assert load_run("run", verify=keys / "ours.pub").signed_by


def test_a_key_that_cannot_sign_is_refused_before_training(cli: Cli, keys: Path) -> None:
    code, _, err = cli("train", "toy_convex", *SHORT, "--sign", str(keys / "ours.pub"))
    assert code == 2
    assert "is not a private key" in _said(err)
    assert not list(Path().iterdir())


def test_runs_are_signed_afterwards(cli: Cli, toy: Path, keys: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        copy(toy, tmp_path / name)
    code, out, err = cli("sign", "one", "two", "--key", str(keys / "other"))
    assert (code, out) == (
        0,
        f"next  paretocosmos explore one two --verify {keys / 'other.pub'}\n",
    )
    key = fingerprint_of(read_public_key(keys / "other.pub"))
    assert (
        _said(err)
        == f"note: one is signed with the key {key} note: two is signed with the key {key}"
    )
    code, out, _ = cli("sign", "one", "--key", str(keys / "ours"), "--json")
    assert [one["run"] for one in json.loads(out)] == ["one"]
    assert load_run("one", verify=keys / "ours.pub").signed_by != key
    code, _, err = cli("sign", "none", "--key", str(keys / "ours"))
    assert code == 2
    assert "`none` is not a folder" in _said(err)


def test_a_report_takes_only_what_is_signed(cli: Cli, keys: Path) -> None:
    given = ("--only", "linear", "--epochs", "1", "--device", "cpu", "--workers", "0")
    assert cli("reproduce", "intuition", *given)[0] == 0
    report = ("report", "intuition", "--epochs", "1", "--verify", str(keys / "ours.pub"))
    code, _, err = cli(*report)
    assert code == 2
    assert "is not signed" in _said(err)
    runs = [str(record.parent) for record in Path("reproduction").rglob("run.json")]
    assert cli("sign", *runs, "--key", str(keys / "ours"))[0] == 0
    code, _, err = cli(*report)
    assert code == 0, err
    change(Path(runs[0]), lambda record: record.update(label="Another"))
    code, _, err = cli(*report)
    assert code == 2
    assert "changed after" in _said(err)
