"""What the benchmark of language models found is what its how-to relies on."""

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FOUND: dict[str, Any] = json.loads((ROOT / "results" / "language.json").read_text())


def test_a_front_for_the_cost_of_two_adapters_is_as_good_as_five_and_ahead_of_mixing() -> None:
    mean = {way: FOUND["mean"][way]["of_separate"] for way in FOUND["mean"]}
    assert mean["lora, thrice"] > mean["lora, twice"] >= 0.98
    assert mean["lora"] > mean["soup"]


def test_adapters_are_small_and_fast() -> None:
    assert FOUND["parameters"]["gpt2, lora"]["share"] < 0.01
    small = FOUND["step_time"]["small"]
    assert max(small[f"ratio, ours, {rays}"] for rays in ("four rays", "one ray")) < 1.1


def test_both_corpora_are_described_and_not_committed() -> None:
    about = FOUND["corpora"]
    for split in ("train", "val", "test"):
        assert set(about["bytes"][split]) == {"code", "prose"}
        assert all(len(sha) == 64 for sha in about["sha256"][split].values())
