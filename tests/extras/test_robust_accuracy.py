"""The example of robust accuracy runs: it takes longer than the tests beside it may."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_weight_on_attacks_withstands_them(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples" / "robust_accuracy.py"), run_name="__main__")
    shown = capsys.readouterr().out
    committed = (ROOT / "results" / "robust_accuracy.txt").read_text(encoding="utf-8")
    for text in (shown, committed):
        found = re.findall(r"matter ([\d.]+): ([\d.]+)% of plain digits, ([\d.]+)%", text)
        weights, clean, robust = zip(*((float(part) for part in row) for row in found), strict=True)
        assert weights == (0, 0.25, 0.5, 0.75, 1)
        assert min(clean) > 85
        assert all(c > r for c, r in zip(clean, robust, strict=True))
        assert clean[0] > clean[-1]
        assert robust[-1] > robust[0] + 8
