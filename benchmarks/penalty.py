"""`python -m benchmarks.penalty --out results/penalty.json`: which penalty to start from.

The true-positive-rate gap against cross-entropy on the three tables, several penalties, judged on
the *validation* fronts alone.
"""

import argparse
import json
import tempfile
import warnings
from pathlib import Path

import numpy as np
import torch

from paretocosmos import fit
from paretocosmos.errors import BenchmarkWarning
from paretocosmos.runs.provenance import get_provenance

PROBLEMS = ("adult", "compas", "default_credit")
PENALTIES = (0.0, 0.01, 0.1, 0.3, 1.0, 3.0)
SEEDS = (1, 2, 3)


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="where the JSON goes")
    parser.add_argument("--epochs", type=int, default=20)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", BenchmarkWarning)
    cells = []
    for problem in PROBLEMS:
        for penalty in PENALTIES:
            numbers = [validation(problem, penalty, seed, arguments.epochs) for seed in SEEDS]
            mean = {name: float(np.mean([n[name] for n in numbers])) for name in numbers[0]}
            cells.append({"problem": problem, "penalty": penalty, **mean})
            print(f"{problem:15} {penalty:5} " + "  ".join(f"{k} {v:.4f}" for k, v in mean.items()))
    results = {
        "objectives": ["binary_cross_entropy", "tpr_gap"],
        "split": "val",
        "alpha": 0.5,
        "epochs": arguments.epochs,
        "seeds": list(SEEDS),
        "cells": cells,
        **get_provenance(torch.device("cpu")),
    }
    arguments.out.write_text(json.dumps(results, indent=1) + "\n")


def validation(problem: str, penalty: float, seed: int, epochs: int) -> dict[str, float]:
    """Numbers of the validation front of one training."""
    settings = {"fairness": "tpr_gap", "penalty": penalty, "alpha": 0.5}
    with tempfile.TemporaryDirectory() as folder:
        run = fit(
            problem,
            preset="paper",
            seed=seed,
            epochs=epochs,
            settings=settings,
            out=Path(folder) / "run",
        )
    kept: dict[str, float] = run.record["metrics"]["val"]
    return {name: kept[name] for name in ("hypervolume", "span", "dominated_share", "monotonicity")}


if __name__ == "__main__":
    main()
