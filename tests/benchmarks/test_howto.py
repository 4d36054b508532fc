"""What how-to pages say of data and networks is what benchmarks wrote."""

import json
import re
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def _page(name: str) -> str:
    text = (ROOT / "docs" / "howto" / f"{name}.md").read_text(encoding="utf-8")
    return re.sub(r"\s+", " ", text)


def _found(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "results" / f"{name}.json").read_text())
    return found


def test_a_million_pictures_are_read_as_fast_in_training() -> None:
    (row,) = _found("pictures")["rows"]
    page = _page("data")
    assert row["pictures"] == 1_000_000
    alone, trained = (median(row[name]) for name in ("alone", "trained"))
    assert f"{alone:,.0f} pictures a second alone, {trained:,.0f} in training" in page
    assert f"together took {row['peak_bytes'] / 1e9:.2f} GB" in page
    assert row["ratio"] >= 0.9
    short = _found("pictures_short")["rows"]
    assert {f"{one['ratio']:.1f}" for one in short} == {"0.8"}
    assert "the ratio was 0.8" in page


def test_families_of_timm_are_counted() -> None:
    counts = _found("families")["counts"]
    tried = counts["right"] + counts["refused"] + counts["wrong"]
    page = _page("own_network")
    assert f"of {tried} families {counts['right']} are conditioned" in page
    assert f"; {counts['refused']} are refused" in page
    assert counts["wrong"] == 0
