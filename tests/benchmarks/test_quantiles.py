"""The benchmark of quantiles: its truths against scipy, and its measures against hand-made ones."""

import json
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from benchmarks.quantiles import crossings, pinball
from examples.all_quantiles import LEVELS, drives, rush, true_quantile
from scipy.stats import lognorm
from sklearn.metrics import mean_pinball_loss

from benchmarks import quantiles
from paretocosmos.estimators import ParetoRegressor

HOURS = np.array([5.0, 8.0, 12.5, 17.5, 22.0])


@pytest.mark.parametrize("level", [0.01, *LEVELS, 0.99])
def test_true_quantiles_are_those_of_a_lognormal(level: float) -> None:
    oracle = lognorm.ppf(level, 0.08 + 0.3 * rush(HOURS), scale=14 + 12 * rush(HOURS))
    np.testing.assert_allclose(true_quantile(HOURS, level), oracle)


def test_drives_are_within_the_true_quantiles_as_often_as_they_should_be() -> None:
    hour, minutes = drives(200_000, seed=5)
    for start in (5, 8, 16):  # at every time of the day, not only in the mean
        there = (hour >= start) & (hour < start + 2)
        for level in LEVELS:
            share = (minutes <= true_quantile(hour, level))[there].mean()
            error = (level * (1 - level) / there.sum()) ** 0.5
            assert abs(share - level) < 4.5 * error


def test_pinball_losses_are_scikit_learns() -> None:
    draw = np.random.default_rng(0)
    truth, found = draw.normal(size=50), draw.normal(size=(len(LEVELS), 50))
    oracle = [mean_pinball_loss(truth, f, alpha=t) for f, t in zip(found, LEVELS, strict=True)]
    np.testing.assert_allclose(pinball(truth, found), oracle)


def test_crossings_are_counted_between_neighbours() -> None:
    even = np.arange(9.0)[:, None].repeat(4, axis=1)
    assert crossings(even) == 0
    assert crossings(even[::-1]) == 1
    even[3, 1] = 5.5  # above its upper neighbour, and above no other pair that is counted
    assert crossings(even) == 1 / 32


def test_a_little_of_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    short = partial(ParetoRegressor, loss="absolute", epochs=3)
    monkeypatch.setattr(quantiles, "estimator", lambda seed: short(random_state=seed))
    monkeypatch.setattr(quantiles, "NEW", 2000)
    argv = ["-", "--rows", "400", "--seeds", "1", "--rates", "0.005", "--out", "it.json"]
    monkeypatch.setattr(sys, "argv", argv)
    monkeypatch.setattr(quantiles, "TRIED", (2,))
    monkeypatch.chdir(tmp_path)
    quantiles.main()
    found = json.loads(Path("it.json").read_text())
    assert [cell["networks"] for cell in found["cells"]] == ["one", "separate"]
    for cell in found["cells"]:
        assert cell["pinball"] > 0.98  # nothing is better than the truth, but for chance
        assert cell["coverage"] == pytest.approx(np.abs(np.array(cell["covered"]) - LEVELS).mean())
    assert {"machine", "versions", "git", "source"} <= found.keys()
    assert np.shape(found["picture"]["curves"]) == np.shape(found["picture"]["true"])
