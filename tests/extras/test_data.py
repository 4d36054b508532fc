"""What is said of data: the how-to's blocks, the examples and the benchmark run."""

import json
import re
import runpy
import subprocess
import sys
from collections.abc import Callable
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


Shown = Callable[[str], str]


def _columns(shown: str, pattern: str) -> list[tuple[float, ...]]:
    """The numbers in the groups of a pattern, group by group."""
    rows = re.findall(pattern, shown)
    return list(zip(*([float(one) for one in row] for row in rows), strict=True))


def test_pictures_on_disk_trade_one_task_for_the_other(shown_by: Shown) -> None:
    shown = shown_by("pictures_on_disk.py")
    assert "data streamed" in shown
    bright, dim = _columns(shown, r"bright ([\d.]+), dim ([\d.]+)")
    assert bright[0] > bright[-1]
    assert dim[-1] > dim[0]


def test_a_loader_for_each_task_trades_them(shown_by: Shown) -> None:
    depth, outline = _columns(shown_by("loader_per_task.py"), r"depth ([\d.]+), outline ([\d.]+)")
    assert depth[0] < depth[-1]
    assert outline[-1] < outline[0]


def test_segmentation_trades_recall_for_precision(shown_by: Shown, tmp_path: Path) -> None:
    recall, precision = _columns(
        shown_by("segmentation.py"), r"recall ([\d.]+), precision ([\d.]+)"
    )
    assert list(recall) == sorted(recall, reverse=True)
    assert list(precision) == sorted(precision)
    assert (tmp_path / "segmentation.png").stat().st_size > 10_000


def test_one_codec_takes_more_bits_for_a_more_faithful_picture(shown_by: Shown) -> None:
    bits, psnr = _columns(
        shown_by("rate_distortion.py"), r"([\d.]+) bits per pixel, PSNR ([\d.]+) dB"
    )
    assert list(bits) == sorted(bits)
    assert list(psnr) == sorted(psnr)
    assert bits[0] < 0.2 < 1 < bits[-1]
    assert psnr[-1] - psnr[0] > 6


def test_the_benchmark_of_pictures_runs(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.pictures", "--counts", "600"]
    command += ["--repeats", "1", "--out", str(out)]
    subprocess.run(command, check=True, cwd=ROOT, timeout=600)
    rows = json.loads(out.read_text())["rows"]
    assert rows
    for row in rows:
        assert row["pictures"] == 600
        assert row["ratio"] > 0
        assert torch.tensor(row["trained"]).isfinite().all()
