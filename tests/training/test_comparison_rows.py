"""The numbers of a comparison, against the definitions."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch import nn

from paretocosmos.pareto import Front, even_rays
from paretocosmos.runs import Run
from paretocosmos.training.compare import Comparison


def _run(values: Any, *, seed: int = 1, seconds: float = 1.0, together: int = 1) -> Run:
    """A run without a training, of which a comparison sees the front and the record."""
    points = np.asarray(values, dtype=np.float64)
    rays = even_rays(len(points), points.shape[1]).numpy()
    front = Front(rays, points, ("a", "b", "c")[: points.shape[1]], np.full(points.shape[1], 2.0))
    test = {"hypervolume": float(seed), "hypervolume_ideal": 2.0 * seed}
    record: dict[str, Any] = {
        "metrics": {"test": {**test, "span": 0.5, "dominated_share": 0.0}},
        "networks": [{}],
        "fixed_rays": None,
        "parameters": 10,
        "seconds_training": seconds,
        "seeds_together": together,
        "protocol": "clean",
        "seed": seed,
    }
    return Run(Path("nowhere"), record, front, front, nn.Identity())


def _dominates(one: Sequence[float], two: Sequence[float]) -> bool:
    """By the letter of the definition."""
    no_worse = all(a <= b for a, b in zip(one, two, strict=True))
    return no_worse and any(a < b for a, b in zip(one, two, strict=True))


@pytest.mark.parametrize("objectives", [2, 3])
def test_dominated_by_is_what_counting_finds(objectives: int) -> None:
    draw = np.random.default_rng(objectives)
    seeds, sizes = 3, {"many": 12, "few": 3, "one": 1, "best": 4}
    values = {
        # of few different numbers, so that points tie
        name: draw.integers(1 if name == "best" else 2, 6, (seeds, size, objectives)) / 8
        for name, size in sizes.items()
    }
    runs = {
        name: [_run(one, seed=at) for at, one in enumerate(own)] for name, own in values.items()
    }
    rows = {row["method"]: row for row in Comparison(Path("nowhere"), "toy", runs).rows}
    for name, own in values.items():
        expected = {}
        for other, theirs in values.items():
            beaten = [
                any(_dominates(rival, point) for rival in theirs[seed].tolist())
                for seed in range(seeds)
                for point in own[seed].tolist()
            ]
            expected[other] = sum(beaten) / len(beaten)
        found = rows[name]["dominated_by"]
        assert found == pytest.approx(
            {other: share for other, share in expected.items() if share and other != name}
        )
        assert list(found.values()) == sorted(found.values(), reverse=True)


def test_numbers_are_means_over_seeds() -> None:
    runs = [_run([[1, 1]], seed=2, seconds=8.0, together=2), _run([[1, 1]], seed=5, seconds=3.0)]
    (row,) = Comparison(Path("nowhere"), "toy", {"cosmos": runs}).rows
    assert (row["hypervolume"], row["hypervolume_ideal"]) == (3.5, 7.0)
    assert row["hypervolume_std"] == pytest.approx(np.std([2, 5], ddof=1))
    assert row["seconds"] == pytest.approx((8 / 2 + 3) / 2)
    (row,) = Comparison(Path("nowhere"), "toy", {"cosmos": runs[:1]}).rows
    assert row["hypervolume_std"] is None


def test_measures_are_those_of_the_fronts_beside_separate_networks() -> None:
    wide = np.stack([np.linspace(0, 1, 5), np.linspace(1, 0, 5)], axis=1)
    runs = {"narrow": [_run(wide / 2 + 0.25)], "separate": [_run(wide)]}
    narrow, separate = Comparison(Path("nowhere"), "toy", runs).rows
    assert (narrow["monotonicity"], narrow["range_covered"]) == (1, 0.5)
    assert narrow["igd_plus"] > 0 == separate["igd_plus"]
    assert separate["hypervolume_in_separate_box"] == 6 / 16  # stairs of a quarter each
    (alone,) = Comparison(Path("nowhere"), "toy", {"narrow": runs["narrow"]}).rows
    assert "range_covered" not in alone
