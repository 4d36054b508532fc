import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.strangers import PAYLOAD, RECIPE, ROLES, change, mark_of, names

from paretocosmos import evaluate, fit, load_problem, load_run
from paretocosmos.errors import ConfigurationError, RunError, UntrustedError
from paretocosmos.export import export
from paretocosmos.nn.backbones import Mlp
from paretocosmos.paper.recipe import load_recipe
from paretocosmos.paper.reproduction import reproduce
from paretocosmos.registry import check_names
from paretocosmos.runs import Run, load_record, read_record
from paretocosmos.serving import Settings
from paretocosmos.serving.service import Service

Open = Callable[[Path], Any]

OPENERS: dict[str, Open] = {
    "load_run": load_run,
    "evaluate": lambda folder: evaluate(load_run(folder).model, load_problem("toy_convex")),
    "choose": lambda folder: load_run(folder).choose(knee=True),
    "export": lambda folder: export(load_run(folder)),
    "serve": lambda folder: Service(Settings(folder=folder)),
    "read_record": read_record,
}
CALLABLES = {
    "logging:basicConfig": {"filename": "victim"},  # would empty a file
    "os:abort": {},  # would end the process
    "builtins:input": {},  # would wait for ever
    "paretocosmos.cli:main": {},  # of this package, but not made to be named
}


@pytest.fixture
def payload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A module beside the run folder, in the current folder, which Python would find."""
    path = tmp_path / "payload.py"
    path.write_text(PAYLOAD)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield path
    sys.modules.pop("payload", None)


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("opener", OPENERS.values(), ids=list(OPENERS))
def test_code_that_a_folder_names_is_not_imported(
    folder: Path, payload: Path, role: str, opener: Open
) -> None:
    change(folder, names(**{role: f"payload:{role}"}))
    with pytest.raises(UntrustedError) as caught:
        opener(folder)
    assert str(caught.value) == (
        f"`{folder / 'run.json'}` names `payload:{role}`, code outside paretocosmos that would "
        'be imported and run: if you trust it, allow it with trust=["payload"]'
    )
    assert not mark_of(payload).exists()
    assert "payload" not in sys.modules


def test_code_that_the_caller_trusts_is_used(folder: Path, payload: Path) -> None:
    change(folder, names(**{role: f"payload:{role}" for role in ROLES}))
    before = evaluate(load_run(folder, trust=["payload"]).model, load_problem("toy_convex"))
    assert mark_of(payload).exists()
    run = load_run(folder, trust=["other", "payload"])
    assert evaluate(run.model, run.problem()) == before
    Service(Settings(folder=folder, trust=("payload",)))


@pytest.mark.parametrize("trust", [["pay"], ["payload.inner"], ["Payload"], ["payloads"]])
def test_a_package_is_trusted_by_its_whole_name(
    folder: Path, payload: Path, trust: list[str]
) -> None:
    change(folder, names(backbone="payload:backbone"))
    with pytest.raises(UntrustedError):
        load_run(folder, trust=trust)
    assert not mark_of(payload).exists()


def test_all_that_has_to_be_trusted_is_said_at_once() -> None:
    named = [("methods", "a.b:C"), ("problems", "d:e"), ("backbones", "a.f:G")]
    with pytest.raises(UntrustedError, match=r'`a.b:C` and `d:e` and `a.f:G`.*\["a", "d"\]') as one:
        check_names(named, file="file", trust=[])
    assert one.value.packages == ("a", "d")


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(("name", "settings"), CALLABLES.items(), ids=list(CALLABLES))
def test_functions_of_python_itself_are_not_called(
    folder: Path,
    payload: Path,
    monkeypatch: pytest.MonkeyPatch,
    role: str,
    name: str,
    settings: dict[str, str],
) -> None:
    Path("victim").write_text("precious")
    monkeypatch.setattr(os, "abort", pytest.fail)
    monkeypatch.setattr("builtins.input", pytest.fail)

    def edit(record: dict[str, Any]) -> None:
        record[role] = {"name": name, "settings": settings}

    change(folder, edit)
    with pytest.raises(UntrustedError, match=f"names `{name}`"):
        load_run(folder)
    assert Path("victim").read_text() == "precious"


def test_what_the_caller_hands_over_is_not_imported(folder: Path, payload: Path) -> None:
    change(folder, names(backbone="payload:backbone", problem="payload:problem"))
    own, problem = Mlp((4,), 2), load_problem("toy_convex")
    with pytest.raises(UntrustedError, match="names `payload:problem`,"):
        load_run(folder, backbone=own)
    with pytest.raises(UntrustedError, match="names `payload:backbone`,"):
        load_run(folder, problem=problem)
    run = load_run(folder, backbone=own, problem=problem)
    assert run.problem() is problem
    assert evaluate(run.model, problem) == evaluate(
        load_run(folder, trust=["payload"]).model, problem
    )


def test_a_resumed_run_needs_no_trust_for_what_the_caller_names(
    folder: Path, payload: Path
) -> None:
    def go() -> Run:
        own = "payload:problem"
        return fit(
            own,
            preset="paper",
            method="payload:method",
            epochs=1,
            out=folder.parent / "own",
            resume=True,
        )

    first, again = go(), go()
    assert again.front == first.front


def test_a_resumed_run_is_compared_without_importing(folder: Path, payload: Path) -> None:
    change(folder, names(method="payload:method"))
    with pytest.raises(RunError, match=r"method\.name: 'payload:method' there"):
        fit("toy_convex", preset="paper", epochs=1, out=folder, resume=True)
    assert load_record(folder)["method"]["name"] == "payload:method"
    assert not mark_of(payload).exists()


def test_a_recipe_names_code_only_if_it_is_trusted(payload: Path) -> None:
    Path("mine.toml").write_text(RECIPE)
    with pytest.raises(UntrustedError, match=r"`payload:problem`.*`payload:m"):
        load_recipe("mine.toml")
    with pytest.raises(UntrustedError, match="payload"):
        reproduce("mine.toml", device="cpu")
    assert not mark_of(payload).exists()
    done = reproduce("mine.toml", device="cpu", trust=["payload"])
    assert not done.failures
    assert not reproduce("mine.toml", device="cpu", trust=["payload"]).select("waiting")


def test_a_cell_of_a_stranger_is_not_imported(payload: Path) -> None:
    done = reproduce("intuition", device="cpu", only=["linear"], epochs=1, out="out")
    cell = done.select("done")[0].experiment
    change(cell.runs(Path("out"))[1], names(backbone="payload:backbone"))
    again = reproduce("intuition", device="cpu", only=["linear"], epochs=1, out="out")
    assert "names `payload:backbone`" in again.failures[cell.name]
    assert not mark_of(payload).exists()


@pytest.mark.parametrize("trust", ["payload", [1], ["a:b"], [""], ["a b"], ["../a"]])
def test_trust_is_a_list_of_packages(folder: Path, trust: Any) -> None:
    with pytest.raises(ConfigurationError, match="`trust`"):
        load_run(folder, trust=trust)


def test_own_things_may_be_named_in_full() -> None:
    check_names([("methods", "paretocosmos.methods.cosmos:Cosmos")], file="file", trust=[])
    for name in (
        "paretocosmos.methods.cosmos:torch",
        "paretocosmos.methods.base:Method",
        "paretocosmos.nn.backbones.mlp:Mlp",
        "paretocosmos:fit",
    ):
        with pytest.raises(UntrustedError):
            check_names([("methods", name)], file="file", trust=[])


@pytest.mark.parametrize(
    "name",
    [
        "a b",
        "",
        ":",
        "os;rm -rf ~:x",
        "a\n:b",
        "a:\x1b[2J",
        "../up:x",
        ".up:x",
        "x" * 300,
        "a:" * 300,
    ],
)
def test_what_is_no_name_is_not_repeated(folder: Path, name: str) -> None:
    change(folder, names(method=name))
    with pytest.raises(RunError, match=r"is not a valid name$") as caught:
        load_run(folder, trust=["a", "os"])
    assert str(caught.value).isprintable()


def test_unknown_names_are_one_sentence(folder: Path) -> None:
    change(folder, names(method="cosmoss"))
    with pytest.raises(RunError, match=r"`cosmoss`.*`cosmos`"):
        load_run(folder)
