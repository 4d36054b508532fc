"""`python -m benchmarks.celeba_rays --data DIR --out FILE`: how many rays a batch of faces needs.

From random weights and with few pictures a network hears the ray late. The paper draws one ray a
batch and weighs the angle with 3; here both are varied for a LeNet, judged on the *validation*
fronts alone. The recipe `celeba_small` takes its settings from this.
"""

import argparse
import json
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch

from paretocosmos import fit, load_problem
from paretocosmos.errors import BenchmarkWarning
from paretocosmos.problems import Problem
from paretocosmos.runs.provenance import get_provenance

GROUPS = (1, 8, 32)
PENALTIES = (1.0, 3.0)
SEEDS = (1, 2)
BATCH = 256
NUMBERS = ("hypervolume", "span", "dominated_share")


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="where CelebA lies; else the usual places")
    parser.add_argument("--out", type=Path, required=True, help="where the JSON goes")
    parser.add_argument("--problem", default="celeba_easy")
    parser.add_argument("--epochs", type=int, default=15)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", BenchmarkWarning)
    problem = load_problem(arguments.problem, protocol="clean", data=arguments.data)
    results: dict[str, Any] = {
        "problem": problem.name,
        "images": problem.about.get("images"),
        "backbone": "lenet",
        "split": "val",
        "batch_size": BATCH,
        "epochs": arguments.epochs,
        "seeds": list(SEEDS),
        "cells": [],
        **get_provenance(torch.device("cuda" if torch.cuda.is_available() else "cpu")),
    }
    for rays_per_batch in GROUPS:
        for penalty in PENALTIES:
            cell = validation(problem, rays_per_batch, penalty, arguments.epochs)
            results["cells"].append({"rays_per_batch": rays_per_batch, "penalty": penalty, **cell})
            told = "  ".join(f"{name} {np.mean(cell[name]):.4f}" for name in NUMBERS)
            print(f"{rays_per_batch:3} rays, penalty {penalty:g}: {told}", flush=True)
            arguments.out.write_text(json.dumps(results, indent=1) + "\n")


def validation(
    problem: Problem, rays_per_batch: int, penalty: float, epochs: int
) -> dict[str, list[float]]:
    """Numbers of the validation fronts, one of each seed."""
    settings = {
        "rays_per_batch": rays_per_batch,
        "penalty": penalty,
        "batch_size": BATCH,
        "epochs": epochs,
    }
    with tempfile.TemporaryDirectory() as folder:
        runs = fit(
            problem,
            preset="paper",
            backbone="lenet",
            seeds=SEEDS,
            settings=settings,
            out=Path(folder) / "run",
        )
    return {name: [run.record["metrics"]["val"][name] for run in runs] for name in NUMBERS}


if __name__ == "__main__":
    main()
