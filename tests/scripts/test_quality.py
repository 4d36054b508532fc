"""The figures of coverage, against lines counted by hand."""

import json
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "scripts"))
from quality import coverage


def _file(lines: int, run: int) -> dict[str, dict[str, int]]:
    return {"summary": {"num_statements": lines, "covered_lines": run}}


def test_shares_are_of_all_lines_and_poor_files_are_named(tmp_path: Path) -> None:
    files = {
        "src/paretocosmos/errors.py": _file(10, 10),
        "src/paretocosmos/runs/load.py": _file(60, 51),
        "src/paretocosmos/runs/run.py": _file(30, 9),
        "src/paretocosmos/runs/__init__.py": _file(0, 0),
    }
    (tmp_path / "coverage.json").write_text(json.dumps({"files": files}))
    found = coverage(tmp_path / "coverage.json")
    assert found["lines"] == 100
    assert found["share"] == pytest.approx(0.7)  # not the mean of shares
    assert found["packages"] == pytest.approx({"errors": 1.0, "runs": 60 / 90})
    assert found["least_covered"] == pytest.approx({"runs/run.py": 0.3})  # 51 of 60 are enough
