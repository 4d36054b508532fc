"""`python -m benchmarks.quantiles --out results/quantiles.json`: all quantiles in one network.

The drives of `examples/all_quantiles.py`, whose true quantiles are known. One network for every
level, as the example trains it, beside nine networks without a ray, one for each level, trained by
the same estimator for as many steps each. Both have the learning rate that was best for them on the
drives of two other seeds, by the pinball loss. They are judged on new drives:

- coverage: how far the share of drives within a quantile is from its level, in the mean.
- pinball: the mean pinball loss, divided by that of the true quantiles; 1 is best.
- minutes: how far a quantile is from the true one, in the mean.
- crossings: the share of neighbouring levels, at even hours, of which the higher one has the
  smaller quantile. Of the one network also among 99 levels.
- seconds: of processor time, for the whole `fit` on one thread; nine networks train together.
"""

import argparse
import json
import time
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch
from examples.all_quantiles import LEVELS, Array, drives, estimator, fan, true_quantile
from torch import Tensor

from paretocosmos.estimators import ParetoRegressor
from paretocosmos.methods import Separate
from paretocosmos.runs.provenance import get_provenance

SEEDS = (1, 2, 3)
TRIED, RATES = (11, 12), (2e-3, 5e-3, 1e-2, 2e-2)
ROWS, NEW = 20_000, 100_000
HOURS = np.linspace(5, 22, 1000)
FINE = tuple(np.linspace(0.01, 0.99, 99).round(2).tolist())
# What the picture shows: the hours of its curves, and how many drives.
CURVE, SHOWN = np.linspace(5, 22, 103), 700


@dataclass(frozen=True, kw_only=True)
class PerLevel(Separate):
    """A network for each of the nine levels, trained on its pinball loss."""

    traceable = True

    floor: float = 0.0

    def fixed_rays(self, objectives: int) -> Tensor:
        return torch.tensor([[1 - level, level] for level in LEVELS])


# What the estimator has instead: a network for one level draws no rays.
METHODS: dict[str, dict[str, Any]] = {"one": {}, "separate": {"method": PerLevel(), "alpha": None}}


def main() -> None:
    """Train, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="where the JSON goes")
    parser.add_argument("--rows", type=int, default=ROWS, help="drives to train on")
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--rates", type=float, nargs="+", default=RATES)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rows, trials, cells = arguments.rows, [], []
    shown: dict[str, Any] = {}
    for name, rate, seed in product(METHODS, arguments.rates, TRIED):
        trials.append(trial(name, rate, seed, rows)[1])
    rates = {name: best_rate(trials, name) for name in METHODS}
    for seed, name in product(arguments.seeds, METHODS):
        model, cell = trial(name, rates[name], seed, rows)
        if name == "one":
            cell["crossings_99"] = crossings(fan(model, HOURS, FINE))
            shown = shown or {"seed": seed, "curves": fan(model, CURVE).round(3).tolist()}
        cells.append(cell)
    results = {
        "rows": rows,
        "new": NEW,
        "seeds": list(arguments.seeds),
        "levels": LEVELS,
        "mean": {name: means(cells, name) for name in METHODS},
        "cells": cells,
        "trials": trials,
        "picture": shown | truth(shown["seed"]),
        **get_provenance(torch.device("cpu")),
    }
    arguments.out.write_text(json.dumps(results, indent=1) + "\n")


def trial(name: str, rate: float, seed: int, rows: int) -> tuple[ParetoRegressor, dict[str, Any]]:
    """A trained estimator, and what it is worth.

    Args:
        name: of `METHODS`.
        rate: its learning rate.
        seed: of the drives and of the training.
        rows: drives to train on.
    """
    hour, minutes = drives(rows, seed)
    model = estimator(seed).set_params(learning_rate=rate, progress=False, **METHODS[name])
    started = time.process_time()
    model.fit(hour[:, None], minutes)
    cell = {"networks": name, "seed": seed, "learning_rate": rate}
    cell |= {"seconds": time.process_time() - started} | judged(model, seed)
    cell["parameters"] = sum(p.numel() for p in model.model_.parameters())
    numbers = "  ".join(f"{k} {v:.5g}" for k, v in cell.items() if isinstance(v, float))
    print(f"{name:9} {seed:2}  {numbers}", flush=True)
    return model, cell


def best_rate(trials: list[dict[str, Any]], name: str) -> float:
    """The learning rate with the smallest pinball loss, in the mean over trials."""
    by_rate: dict[float, list[float]] = {}
    for one in trials:
        if one["networks"] == name:
            by_rate.setdefault(one["learning_rate"], []).append(one["pinball"])
    return min(by_rate, key=lambda rate: fmean(by_rate[rate]))


def judged(model: ParetoRegressor, seed: int) -> dict[str, Any]:
    """What its quantiles are worth on drives that it has not seen."""
    hour, minutes = drives(NEW, 1000 + seed)
    allowed = fan(model, hour)
    true = np.stack([true_quantile(hour, level) for level in LEVELS])
    covered = (minutes <= allowed).mean(axis=1)
    return {
        "coverage": float(np.abs(covered - LEVELS).mean()),
        "pinball": float(pinball(minutes, allowed).mean() / pinball(minutes, true).mean()),
        "minutes": float(np.abs(allowed - true).mean()),
        "crossings": crossings(fan(model, HOURS)),
        "covered": covered.tolist(),
    }


def pinball(truth: Array, quantiles: Array) -> Array:
    """The pinball loss of each level ``[levels]``: t max(y - f, 0) + (1 - t) max(f - y, 0).

    Args:
        truth: ``[n]``.
        quantiles: ``[levels, n]``.
    """
    level, missing = np.array(LEVELS)[:, None], truth - quantiles
    loss: Array = np.where(missing > 0, level * missing, (level - 1) * missing).mean(axis=1)
    return loss


def crossings(quantiles: Array) -> float:
    """The share of neighbouring levels ``[levels, n]`` of which the higher has the smaller one.

    >>> crossings(np.array([[1.0, 1.0], [2.0, 0.5], [3.0, 3.0]]))
    0.25
    """
    return float((np.diff(quantiles, axis=0) < 0).mean())


def means(cells: list[dict[str, Any]], name: str) -> dict[str, float]:
    """The numbers of some networks, in the mean over seeds."""
    own = [cell for cell in cells if cell["networks"] == name]
    return {k: fmean(c[k] for c in own) for k, v in own[0].items() if isinstance(v, float)}


def truth(seed: int) -> dict[str, Any]:
    """What the picture shows beside the network's curves: hours, true curves, some drives."""
    hour, minutes = drives(ROWS, seed)
    return {
        "hours": CURVE.round(3).tolist(),
        "true": [true_quantile(CURVE, level).round(3).tolist() for level in LEVELS],
        "drives": [hour[:SHOWN].round(2).tolist(), minutes[:SHOWN].round(2).tolist()],
    }


if __name__ == "__main__":
    main()
