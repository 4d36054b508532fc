"""The benchmark of feeds, a little of it, on whatever machine this is."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.system
def test_a_little_of_it_runs_anywhere(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.loader", "--tiny", "--out", str(tmp_path / "out")]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found = json.loads((tmp_path / "out").read_text())
    assert found["images"] == [640, 3, 64, 64]
    assert {"machine", "versions", "git", "source"} <= found.keys()
    for name, data in (("resident", "on the device"), ("streamed", "streamed")):
        assert found["alone"]["32"][name]["images_per_second"] > 0
        own = found["training"]["32"][name]
        assert own["data"] == data
        assert own["images_per_second"] > 0
        assert f"{name}, batch 32" in shown.stdout
        assert (own["share_waiting"] == 0) or name == "streamed"
