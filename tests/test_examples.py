"""The examples run, and print what theory says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def _run(name: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_own_model_learns_every_quantile(tmp_path: Path) -> None:
    shown = _run("own_model.py", tmp_path)
    pairs = re.findall(r"matters ([\d.]+): enough in (\d+)%", shown)
    assert len(pairs) == 3
    for weight, share in pairs:
        # minimising r·missing + (1 - r)·superfluous gives the r-quantile of demand
        assert int(share) / 100 == pytest.approx(float(weight), abs=0.06)


def test_own_network_starts_as_it_was_and_learns_every_quantile(tmp_path: Path) -> None:
    shown = _run("own_network.py", tmp_path)
    assert "starts as it was: True" in shown
    pairs = re.findall(r"matters ([\d.]+): enough in (\d+)%", shown)
    assert len(pairs) == 3
    for weight, share in pairs:
        assert int(share) / 100 == pytest.approx(float(weight), abs=0.06)


def test_own_table_trades_accuracy_for_a_smaller_gap(tmp_path: Path) -> None:
    shown = _run("own_table.py", tmp_path)
    gaps = [float(gap) for gap in re.findall(r"gap ([\d.]+)", shown)]
    assert len(gaps) == 3
    assert gaps[-1] < gaps[0]
    assert (tmp_path / "runs" / "table-cosmos-1" / "front.json").exists()
