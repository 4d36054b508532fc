"""The examples of other people's loops run, and print what theory says."""

import json
import re
from pathlib import Path

import pytest
from tests.processes import run_example

RESULTS = Path(__file__).parents[2] / "results"


def test_lightning_learns_every_quantile(tmp_path: Path) -> None:
    pytest.importorskip("lightning", reason="pip install --group extras")
    shown = run_example("lightning_loop.py", tmp_path)
    pairs = re.findall(r"matters ([\d.]+): enough in (\d+)%", shown)
    assert len(pairs) == 3
    for weight, share in pairs:
        # minimising r·missing + (1 - r)·superfluous gives the r-quantile of demand
        assert int(share) / 100 == pytest.approx(float(weight), abs=0.06)


def test_the_trainer_learns_both_opinions(tmp_path: Path) -> None:
    pytest.importorskip("accelerate", reason="pip install --group extras")
    shown = run_example("hf_trainer.py", tmp_path)
    rows = re.findall(r"matters ([\d.]+): strict's loss ([\d.]+), lenient's loss ([\d.]+)", shown)
    strict, lenient = ([float(row[at]) for row in rows] for at in (1, 2))
    assert strict == sorted(strict)
    assert lenient == sorted(lenient, reverse=True)
    assert len(strict) == 3
    # at 0.9 nearly strict's own verdict, at 0.1 nearly lenient's
    assert strict[0] < 0.2
    assert lenient[2] < 0.2
    assert strict[2] > 0.6
    assert lenient[0] > 0.6


def test_torchjd_finds_the_known_front_both_ways(tmp_path: Path) -> None:
    pytest.importorskip("torchjd", reason="pip install --group dev")
    shown = run_example("torchjd_loop.py", tmp_path)
    found = re.findall(r"matters ([\d.]+): losses ([\d.]+) and ([\d.]+)", shown)
    assert len(found) == 6
    for weight, high, low in (map(float, row) for row in found):
        assert high == pytest.approx(4 * (1 - weight) ** 2, abs=0.3)
        assert low == pytest.approx(4 * weight**2, abs=0.3)


def test_fronts_of_a_language_model_stay_below_a_gigabyte() -> None:
    ways = json.loads((RESULTS / "streaming.json").read_text())["ways"]
    for found in ways.values():
        few, many = (found[count]["gb_peak"] for count in ("1000", "10000"))
        assert max(few, many) < 1
        assert many < few + 0.1  # ten times the samples


def test_one_language_model_trades_code_for_prose(tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="pip install --group extras")
    shown = run_example("language_model.py", tmp_path)
    rows = re.findall(r"matters [\d.]+: perplexity ([\d.]+), prose ([\d.]+)", shown)
    code, prose = ([float(row[at]) for row in rows] for at in (0, 1))
    assert len(code) == 3
    assert code == sorted(code)
    assert prose == sorted(prose, reverse=True)
    assert max(code + prose) < 25  # 256 before it has read anything
    assert "says the same: True" in shown
    adapters, merged = (
        (tmp_path / "runs" / folder / "model.safetensors").stat().st_size
        for folder in ("language_model", "for_code")
    )
    assert adapters < merged / 4
