"""`python -m benchmarks.fairness --out results/fairness.json`: COSMOS on the paper's fairness sets.

Five seeds, both protocols, through the same `fit` as everybody's; the numbers that README and docs
quote. The fronts of all runs are kept, so that figures can be drawn from the same file.
"""

import argparse
import dataclasses
import json
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch

from paretocosmos import Run, evaluate, fit, hypervolume
from paretocosmos.errors import BenchmarkWarning
from paretocosmos.provenance import provenance

PROBLEMS = ("adult", "compas", "default_credit")
SEEDS = (1, 2, 3, 4, 42)  # the paper's


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="where the JSON goes")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", BenchmarkWarning)
    cells = [cell(problem, protocol) for problem in PROBLEMS for protocol in ("paper", "clean")]
    results = {"method": "cosmos", "cells": cells, **provenance(torch.device("cpu"))}
    arguments.out.write_text(json.dumps(results, indent=1) + "\n")


def cell(problem: str, protocol: str) -> dict[str, Any]:
    """One problem under one protocol, every seed."""
    runs = []
    with tempfile.TemporaryDirectory() as folder:
        for seed in SEEDS:
            run = fit(problem, protocol=protocol, seed=seed, out=Path(folder) / str(seed))
            runs.append(
                {
                    "seed": seed,
                    **run.record["metrics"]["test"],
                    "hypervolume_val": run.record["metrics"]["val"]["hypervolume"],
                    "epoch_selected": run.record["epoch_selected"],
                    "parameters": run.record["parameters"],
                    "hypervolume_whole_split": whole_split(run),
                    "front": run.front.to_dict(),
                }
            )
    reached = np.array([run["hypervolume"] for run in runs])
    print(f"{problem:15} {protocol:6} {reached.mean():.4f} ± {reached.std(ddof=1):.4f}")
    return {
        "problem": problem,
        "protocol": protocol,
        "seeds": list(SEEDS),
        "hypervolume": {"mean": float(reached.mean()), "std": float(reached.std(ddof=1))},
        "hypervolume_whole_split": float(np.mean([r["hypervolume_whole_split"] for r in runs])),
        "span": {"mean": float(np.mean([run["span"] for run in runs]))},
        "runs": runs,
    }


def whole_split(run: Run) -> float:
    """The same model's hypervolume with every score computed once over the whole test split."""
    problem = dataclasses.replace(run.problem(), protocol="clean")
    return hypervolume(evaluate(run.model, problem, rays=len(run.front)))


if __name__ == "__main__":
    main()
