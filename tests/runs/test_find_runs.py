"""Runs in a folder of several."""

import json
from pathlib import Path

import pytest
from tests.strangers import copy

from paretocosmos.errors import RunError
from paretocosmos.runs import split_runs


def test_finished_and_begun_runs_are_told_apart(toy: Path, tmp_path: Path) -> None:
    for name in ("b/seed-1", "a/seed-2", "c"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        copy(toy, tmp_path / name)
    record = json.loads((tmp_path / "c" / "run.json").read_text())
    (tmp_path / "c" / "run.json").write_text(json.dumps(record | {"status": "training"}))
    finished, begun = split_runs(tmp_path)
    assert [str(path.relative_to(tmp_path)) for path in finished] == ["a/seed-2", "b/seed-1"]
    assert begun == [tmp_path / "c"]
    assert split_runs(tmp_path / "b" / "seed-1") == ([tmp_path / "b" / "seed-1"], [])
    (tmp_path / "d").mkdir()
    copy(tmp_path / "c", tmp_path / "d" / "run")
    with pytest.raises(RunError, match=r"no run in .* is finished"):
        split_runs(tmp_path / "d")


def test_an_empty_folder_is_told(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="there is no run in"):
        split_runs(tmp_path)
