"""The benchmark of the explorer, a little of it, where there is a browser."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.system
@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed")
def test_a_little_of_it_runs(tmp_path: Path) -> None:
    pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    command = [sys.executable, "-m", "benchmarks.explorer", "--tiny", "--out", str(tmp_path / "o")]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found = json.loads((tmp_path / "o").read_text())
    assert {"machine", "versions", "git", "source"} <= found.keys()
    for objectives in ("2", "3", "5"):
        own = found["objectives"][objectives]
        assert own["first_paint_seconds"] > 0
        assert own["bytes"] < 6_000_000
        for what in ("preference", "bound", "picture"):
            assert own[f"{what}_frames_per_second"] > 0
        assert f"{objectives} objectives:" in shown.stdout
