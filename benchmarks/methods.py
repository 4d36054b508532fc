"""`python -m benchmarks.methods --data DIR --out FILE`: what a step of every method costs on a GPU.

Multi-MNIST, the paper's networks, one engine: the time of a step relative to COSMOS's. Then every
method for a few epochs on all three pairs of images, to see that it trains.
"""

import argparse
import json
import math
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from paretocosmos import Run, fit, load_problem
from paretocosmos.methods import Method, ParetoMtl
from paretocosmos.problems import Problem
from paretocosmos.runs.provenance import get_provenance
from paretocosmos.training.compare import BASELINES
from paretocosmos.training.progress import Progress

PROBLEMS = ("multi_mnist", "multi_fashion", "fashion_and_mnist")
EPOCHS = 4  # the first warms up


@dataclass(frozen=True, kw_only=True)
class OneOfFive(ParetoMtl):
    """The third of ParetoMTL's five networks, alone."""

    def fixed_rays(self, objectives: int) -> Tensor:
        return super().fixed_rays(objectives)[2:3]


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="where mnist/ and fashion_mnist/ lie; else the usual places")
    parser.add_argument("--out", type=Path, required=True, help="where the JSON goes")
    parser.add_argument("--engine", default="captured", help="as `fit` takes it")
    parser.add_argument("--epochs", type=int, default=10, help="of the trainings")
    parser.add_argument("--only", nargs="*", default=list(PROBLEMS), help="not all sets")
    arguments = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    problem = load_problem("multi_mnist", data=arguments.data)
    methods: dict[str, str | Method] = {name: name for name in BASELINES}
    methods["pareto_mtl, one network"] = OneOfFive()
    results: dict[str, Any] = {"problem": "multi_mnist", "steps": {}, "trainings": []}
    results |= get_provenance(device)
    for label, method in methods.items():
        results["steps"][label] = step(problem, method, arguments.engine)
        ratio = results["steps"][label]["step"] / results["steps"]["cosmos"]["step"]
        results["steps"][label]["ratio"] = ratio
        print(label, json.dumps(results["steps"][label]), flush=True)
        arguments.out.write_text(json.dumps(results, indent=1) + "\n")
    for name in arguments.only:
        images = problem if name == "multi_mnist" else load_problem(name, data=arguments.data)
        for label in BASELINES:
            results["trainings"].append(training(images, label, arguments))
            arguments.out.write_text(json.dumps(results, indent=1) + "\n")


def step(problem: Problem, method: str | Method, engine: str) -> dict[str, Any]:
    """Seconds of a step, the networks of a method together."""
    seen: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        run = fit(
            problem,
            preset="paper",
            method=method,
            epochs=EPOCHS,
            engine=engine,
            out=Path(folder) / "run",
            settings={"evaluate_every": EPOCHS},
            progress=lambda at: seen.append(at.seconds),
        )
    steps = -(-len(problem.split("train")) // run.record["training"]["batch_size"])
    return {
        "step": (seen[-1] - seen[0]) / (EPOCHS - 1) / steps,
        "networks": len(run.record["networks"]),
        "parameters": run.record["parameters"],
        "preparing": run.record["seconds_preparing"],
        "engine": run.record["engine"],
    }


def training(problem: Problem, method: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """One seed, a few epochs."""
    last: list[Progress] = []
    with tempfile.TemporaryDirectory() as folder:
        run: Run = fit(
            problem,
            preset="paper",
            method=method,
            epochs=arguments.epochs,
            engine=arguments.engine,
            out=Path(folder) / "run",
            progress=last.append,
        )
    found = {
        "problem": problem.name,
        "rule": run.record["problem"]["settings"]["rule"],
        "method": method,
        "epochs": arguments.epochs,
        "seed": run.record["seed"],
        **run.record["metrics"]["test"],
        "finite": all(math.isfinite(value) for value in run.front.values.flatten()),
        "seconds_training": run.record["seconds_training"],
        "engine": run.record["engine"],
        "networks": run.record["networks"],
        "front": run.front.to_dict(),
    }
    print(
        f"{problem.name:18} {method:12} {found['hypervolume']:.4f} (ideal "
        f"{found['hypervolume_ideal']:.4f}), {found['seconds_training']:.1f} s, {found['engine']}",
        flush=True,
    )
    return found


if __name__ == "__main__":
    main()
