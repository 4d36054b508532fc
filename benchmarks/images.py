"""`python -m benchmarks.images --data DIR --out FILE`: COSMOS on the paper's pairs of images.

Five seeds trained together, 100 epochs, through the same `fit` as everybody's; the numbers that
README and docs quote. The fronts of all runs are kept, so that figures can be drawn from the same
file. `results/precision.json` is `--only multi_mnist --precision tf32 bf16`.
"""

import argparse
import json
import tempfile
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch

from paretocosmos import fit, load_problem
from paretocosmos.provenance import provenance

PROBLEMS = ("multi_mnist", "multi_fashion", "fashion_and_mnist")
SEEDS = (1, 2, 3, 4, 42)  # the paper's


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="where mnist/ and fashion_mnist/ lie; else the usual places")
    parser.add_argument("--out", type=Path, required=True, help="where the JSON goes")
    parser.add_argument("--engine", default="auto", help="as `fit` takes it")
    parser.add_argument("--only", nargs="*", choices=PROBLEMS, help="not all of them")
    parser.add_argument("--precision", nargs="+", default=["tf32"], help="as `fit` takes it")
    parser.add_argument("--epochs", type=int, help="fewer, for a rehearsal")
    arguments = parser.parse_args()
    results: dict[str, Any] = {"method": "cosmos", "protocol": "paper", "cells": []}
    for problem, precision in product(arguments.only or PROBLEMS, arguments.precision):
        # kept after each cell, so that what was measured is not lost with what was not
        results["cells"].append(cell(problem, precision, arguments))
        results |= provenance(torch.device("cuda" if torch.cuda.is_available() else "cpu"))
        arguments.out.write_text(json.dumps(results, indent=1) + "\n")


def cell(name: str, precision: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """One problem in one precision, every seed."""
    problem = load_problem(name, protocol="paper", data=arguments.data)
    with tempfile.TemporaryDirectory() as folder:
        runs = fit(
            problem,
            seeds=SEEDS,
            epochs=arguments.epochs,
            precision=precision,
            engine=arguments.engine,
            out=Path(folder) / "runs",
        )
    lead = runs[0].record
    reached = np.array([run.hypervolume for run in runs])
    together = lead["seeds_together"]
    seconds = sum(run.record["seconds_training"] for run in runs) / together
    print(
        f"{name:18} {precision:5} {reached.mean():.4f} ± {reached.std(ddof=1):.4f}, "
        f"{seconds:.1f} s, {lead['engine']}",
        flush=True,
    )
    return {
        "problem": name,
        "sha256": problem.about["sha256"],
        "precision": precision,
        "engine": lead["engine"],
        "epochs": lead["training"]["epochs"],
        "parameters": lead["parameters"],
        "seeds": list(SEEDS),
        "seeds_together": together,
        "seconds_training": seconds,
        "seconds_preparing": lead["seconds_preparing"],
        "seconds_evaluating": sum(run.record["seconds_evaluating"] for run in runs),
        "hypervolume": {"mean": float(reached.mean()), "std": float(reached.std(ddof=1))},
        "runs": [
            {
                "seed": run.record["seed"],
                **run.record["metrics"]["test"],
                "hypervolume_val": run.record["metrics"]["val"]["hypervolume"],
                "epoch_selected": run.record["epoch_selected"],
                "front": run.front.to_dict(),
            }
            for run in runs
        ],
    }


if __name__ == "__main__":
    main()
