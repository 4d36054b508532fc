"""`paretocosmos compare` as a person meets it."""

import json
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from paretocosmos.runs import load_run
from paretocosmos.training.loop import Trainer

SMALL = ("--epochs", "2", "--device", "cpu", "--engine", "eager", "--set", "hidden=8")
THREE = ("compare", "toy_convex", "--methods", "cosmos,single_task,uniform", *SMALL)


Call = Callable[..., Any]  # of `cli`: gives the code, what went out, and the errors


@pytest.fixture
def columns() -> int:
    return 80


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without pictures, which take longer than the training."""
    monkeypatch.setattr("paretocosmos.cli.options.save_picture", lambda run: None)
    monkeypatch.setattr("paretocosmos.cli.compare.save_comparison", lambda *_, **__: None)


def test_json_is_one_object_and_nothing_else(cli: Call, undrawn: None) -> None:
    ended = cli(*THREE, "--seeds", "1,2", "--out", "here", "--json")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.count("\n") == 1
    found = json.loads(ended.out)
    assert {key: found[key] for key in ("folder", "problem", "protocol", "seeds", "failures")} == {
        "folder": "here",
        "problem": "toy_convex",
        "protocol": "clean",
        "seeds": [1, 2],
        "failures": {},
    }
    for row in found["rows"]:
        runs = [load_run(f"here/{row['method']}/seed-{seed}") for seed in (1, 2)]
        assert row["hypervolume"] == pytest.approx(np.mean([run.hypervolume for run in runs]))
        assert row["points"] == len(runs[0].front)


def test_a_picture_and_a_page_for_each_and_of_all(cli: Call, pages: None) -> None:
    ended = cli("compare", "toy_convex", "--methods", "single_task,mgda", *SMALL)
    assert ended.code == 0, ended.err
    folder = Path("runs/toy_convex-compare")
    assert {path.name for path in folder.iterdir()} == {
        *("compare.json", "compare.png", "report.html", "single_task", "mgda")
    }
    for method in ("single_task", "mgda"):
        assert (folder / method / "seed-1" / "front.png").read_bytes().startswith(b"\x89PNG")
        assert (folder / method / "seed-1" / "report.html").exists()
    assert (folder / "compare.png").read_bytes().startswith(b"\x89PNG")
    for name in ("compare.png", "compare.json", "report.html"):
        assert f"{folder}/{name}" in ended.out
    assert ended.out.endswith(f"next  paretocosmos explore {folder}\n")
    assert "2/2" not in ended.out + ended.err  # the bars are for a terminal


def test_a_table_of_ones_own(cli: Call, undrawn: None) -> None:
    draw = np.random.default_rng(0)
    frame = pd.DataFrame({"age": draw.integers(18, 80, 300)})
    frame["sex"] = draw.choice(["f", "m"], 300)
    frame["income"] = np.where(frame["age"] + draw.normal(0, 9, 300) > 45, "high", "low")
    frame.to_csv("my.csv", index=False)
    columns = ("--target", "income", "--sensitive", "sex", "--positive", "high")
    given = ("compare", "my.csv", *columns, "--methods", "cosmos,uniform", *SMALL, "--json")
    ended = cli(*given, "--set", "cosmos.penalty=2")
    assert ended.code == 0, ended.err
    found = json.loads(ended.out)
    assert (found["folder"], found["problem"]) == ("runs/my-compare", "my")
    record = load_run("runs/my-compare/cosmos/seed-1").record
    assert record["method"]["settings"]["penalty"] == 2
    assert record["problem"]["settings"]["positive"] == "high"


REFUSED: dict[str, tuple[tuple[str, ...], str]] = {
    "problem": (("adlt",), "unknown problem `adlt`; did you mean `adult`"),
    "method": (("toy_convex", "--methods", "cosmos,lineer"), "did you mean `linear`"),
    "resume": (("toy_convex", "--resume"), "`resume` needs `out`.*--out"),
    "not of all": (("toy_convex", "--set", "penalty=2"), "^error: linear: .*`cosmos.penalty`"),
    "seed and seeds": (("toy_convex", "--seed", "2", "--seeds", "1,3"), "exclude each other"),
    "parent": (("toy_convex", "--methods", "mgda", "--out", "/dev/null/x"), "another `out`.*--out"),
}


@pytest.mark.parametrize(("arguments", "says"), REFUSED.values(), ids=list(REFUSED))
def test_bad_input_is_one_sentence(
    cli: Call, tmp_path: Path, arguments: tuple[str, ...], says: str
) -> None:
    ended = cli("compare", *arguments)
    assert (ended.code, ended.out) == (2, "")
    (line,) = ended.err.strip().splitlines()
    assert line.startswith("error: ")
    assert re.search(says, line), line
    assert list(tmp_path.iterdir()) == []


def test_evaluate_says_which_folder_to_give(cli: Call, undrawn: None) -> None:
    ended = cli("compare", "toy_convex", "--methods", "cosmos,uniform", *SMALL, "--out", "both")
    assert ended.code == 0, ended.err
    ended = cli("evaluate", "both")
    assert (ended.code, ended.out) == (2, "")
    (line,) = ended.err.strip().splitlines()
    assert line.endswith("several methods; give one of them, such as `both/cosmos/seed-1`")
    assert cli("evaluate", "both/cosmos/seed-1").code == 0


def test_a_folder_that_exists_is_left_alone(cli: Call, tmp_path: Path) -> None:
    Path("here").mkdir()
    ended = cli(*THREE, "--out", "here")
    assert (ended.code, ended.out) == (2, "")
    assert (
        "exists; choose another `out`, or continue the comparison in it with resume=True "
        "(on the command line: --out ..., --resume)" in ended.err
    )
    assert list(Path("here").iterdir()) == []


@pytest.mark.parametrize("as_json", [False, True])
def test_a_method_that_diverges_is_told_at_the_end(cli: Call, undrawn: None, as_json: bool) -> None:
    given = ("compare", "toy_convex", "--methods", "linear,uniform", *SMALL, "--out", "here")
    ended = cli(*given, "--set", "linear.learning_rate=1e30", *["--json"][: int(as_json)])
    assert ended.code == 1
    assert re.search(r"error: linear: the loss of .* became", ended.err.splitlines()[-1])
    saved = json.loads(Path("here/compare.json").read_text())
    assert list(saved["failures"]) == ["linear"]
    if as_json:
        found = json.loads(ended.out)
        assert (found["rows"], found["failures"]) == (saved["rows"], saved["failures"])
    else:
        assert f"{saved['rows'][0]['hypervolume']:.4f}" in ended.out
        assert not re.search(r"^linear", ended.out, re.MULTILINE)


@pytest.mark.system
@pytest.mark.parametrize("epochs", [1, 3, 4])
def test_ctrl_c_says_how_to_go_on(
    cli: Call, undrawn: None, monkeypatch: pytest.MonkeyPatch, epochs: int
) -> None:
    def epoch(self: Trainer, *, prepare: bool) -> None:
        begun.append(1)
        if len(begun) == epochs:
            signal.raise_signal(signal.SIGINT)
        inside(self, prepare=prepare)

    whole = json.loads(cli(*THREE, "--out", "whole", "--json").out)
    inside, begun = Trainer.train_epoch, list[int]()
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "train_epoch", epoch)
        ended = cli(*THREE, "--out", "here", "--json")
    assert (ended.code, ended.out) == (130, "")
    (way_out,) = re.findall(r"continue with (--out here --resume)", ended.err)
    again = cli(*THREE, *way_out.split(), "--json")
    assert again.code == 0, again.err

    def numbers(found: dict[str, Any]) -> list[dict[str, Any]]:
        return [{**row, "seconds": None} for row in found["rows"]]

    assert numbers(json.loads(again.out)) == numbers(whole)
