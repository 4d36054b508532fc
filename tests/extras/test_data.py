"""What is said of data: the how-to's blocks, the examples and the benchmark run."""

import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from paretocosmos.errors import FindingWarning

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.filterwarnings(f"ignore::{FindingWarning.__module__}.FindingWarning")


def test_the_blocks_of_the_how_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "howto" / "data.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    # every run in a folder of its own
    code = "\n".join(blocks).replace("fit(problem,", 'fit(problem, out=f"run-{next(COUNT)}",')
    script = tmp_path / "howto.py"
    script.write_text(f"import itertools\nCOUNT = itertools.count()\n{code}")
    runpy.run_path(str(script), run_name="__main__")
    assert "on the device" in capsys.readouterr().out


def test_pictures_on_disk_trade_one_task_for_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(ROOT / "examples" / "pictures_on_disk.py"), run_name="__main__")
    shown = capsys.readouterr().out
    assert "data streamed" in shown
    found = re.findall(r"bright ([\d.]+), dim ([\d.]+)", shown)
    bright, dim = zip(*((float(a), float(b)) for a, b in found), strict=True)
    assert bright[0] > bright[-1]
    assert dim[-1] > dim[0]


def test_a_loader_for_each_task_trades_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(ROOT / "examples" / "loader_per_task.py"), run_name="__main__")
    found = re.findall(r"depth ([\d.]+), outline ([\d.]+)", capsys.readouterr().out)
    depth, outline = zip(*((float(a), float(b)) for a, b in found), strict=True)
    assert depth[0] < depth[-1]
    assert outline[-1] < outline[0]


def test_segmentation_trades_recall_for_precision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(ROOT / "examples" / "segmentation.py"), run_name="__main__")
    found = re.findall(r"recall ([\d.]+), precision ([\d.]+)", capsys.readouterr().out)
    recall, precision = zip(*((float(a), float(b)) for a, b in found), strict=True)
    assert list(recall) == sorted(recall, reverse=True)
    assert list(precision) == sorted(precision)
    assert (tmp_path / "segmentation.png").stat().st_size > 10_000


def test_one_codec_takes_more_bits_for_a_more_faithful_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(ROOT / "examples" / "rate_distortion.py"), run_name="__main__")
    found = re.findall(r"([\d.]+) bits per pixel, PSNR ([\d.]+) dB", capsys.readouterr().out)
    bits, psnr = zip(*((float(a), float(b)) for a, b in found), strict=True)
    assert list(bits) == sorted(bits)
    assert list(psnr) == sorted(psnr)
    assert bits[0] < 0.2 < 1 < bits[-1]
    assert psnr[-1] - psnr[0] > 6


def test_the_benchmark_of_pictures_runs(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.pictures", "--counts", "600"]
    command += ["--repeats", "1", "--out", str(out)]
    subprocess.run(command, check=True, cwd=ROOT, timeout=120)
    rows = json.loads(out.read_text())["rows"]
    assert rows
    for row in rows:
        assert row["pictures"] == 600
        assert row["ratio"] > 0
        assert torch.tensor(row["trained"]).isfinite().all()
