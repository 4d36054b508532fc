"""`python -m benchmarks.fairness --out results/fairness.json`: COSMOS on the paper's fairness sets.

Five seeds, both protocols, through the same `fit` as everybody's; the numbers that README and docs
quote. The fronts of all runs are kept, so that figures can be drawn from the same file.
"""

import argparse
import json
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch

from paretocosmos import fit
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
        "span": {"mean": float(np.mean([run["span"] for run in runs]))},
        "runs": runs,
    }


if __name__ == "__main__":
    main()
