"""`paretocosmos export` as a person meets it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnxruntime
import pytest

from paretocosmos import load_run

Call = Callable[..., Any]


def test_export_writes_a_file_and_says_how_to_call_it(cli: Call, folder: Path) -> None:
    ended = cli("export", str(folder))
    assert (ended.code, ended.err) == (0, "")
    path = folder / "export" / "model.onnx"
    assert str(path) in ended.out
    assert str(path) + ".md" in ended.out
    assert "on random rows" in ended.out
    assert ended.out.splitlines()[-1] == f"next  paretocosmos serve {folder}"


def test_export_as_json_to_a_place_of_ones_own(cli: Call, folder: Path, tmp_path: Path) -> None:
    ended = cli("export", str(folder), "--out", "mine.onnx", "--json")
    assert (ended.code, ended.err) == (0, "")
    said = json.loads(ended.out)
    assert said.keys() == {"file", "card", "difference", "preference"}
    assert said["file"] == "mine.onnx"
    assert said["difference"] <= 1e-5
    assert (tmp_path / "mine.onnx.md").exists()
    ended = cli("export", str(folder), "--out", "mine.onnx")
    assert (ended.code, ended.out) == (2, "")
    says = "`mine.onnx` exists; choose another `out`, or remove it (on the command line: --out ...)"
    assert ended.err == f"error: {says}\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nowhere",), "`nowhere` is not a folder"),
        (("RUN", "--out", "a.pt2"), ".onnx, found `a.pt2`"),
    ],
    ids=["nowhere", "ending"],
)
def test_export_refuses_in_one_sentence(
    cli: Call, folder: Path, arguments: tuple[str, ...], said: str
) -> None:
    ended = cli("export", *(str(folder) if a == "RUN" else a for a in arguments))
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err
    assert ended.err.count("\n") == 1


def test_export_frozen_at_a_choice(cli: Call, folder: Path, tmp_path: Path) -> None:
    choice = load_run(folder).choose(max={"second": 0.9})
    for asked in (("--max", "second=0.9"), ("--ray", ",".join(map(str, choice.ray)))):
        ended = cli("export", str(folder), *asked, "--out", f"{asked[0][2:]}.onnx", "--json")
        assert ended.code == 0
        assert json.loads(ended.out)["preference"] == "none: the file is frozen at one"
        session = onnxruntime.InferenceSession(str(tmp_path / f"{asked[0][2:]}.onnx"))
        assert [node.name for node in session.get_inputs()] == ["x"]
        about = json.loads(session.get_modelmeta().custom_metadata_map["paretocosmos"])
        assert about["predicts_at"] == pytest.approx(choice.ray)
        assert about["reached"]["test"]["second"] == pytest.approx(choice.test["second"])
    ended = cli("export", str(folder), "--ray", "0.5,0.5", "--max", "second=0.9")
    assert ended.code == 2
    assert "found both" in ended.err
