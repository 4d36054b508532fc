"""`python -m benchmarks.fronts`: fronts by default beside separate networks and the paper's recipe.

Trains every problem with nothing set (`default`), as one network for each of nine rays under the
same ingredients (`separate`), and by the paper's recipe (`paper`), and measures each front on test:
its order, its range, what is dominated, its distance to separate networks, its hypervolume. Epochs
and useful ends are chosen on validation; test is looked at once.

`--kind tables` trains on a CPU, several problems at once; `--kind images` needs a GPU, and `--data`
or `$PARETOCOSMOS_DATA` for the images. `--out FILE` writes the numbers as JSON, after each problem.
"""

import argparse
import json
import multiprocessing
import tempfile
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch

from paretocosmos import evaluate, fit, load_problem
from paretocosmos.pareto.metrics import front_report
from paretocosmos.problems import Problem
from paretocosmos.runs import Run
from paretocosmos.runs.provenance import get_provenance

SEEDS = (1, 2, 3, 4, 5)
ARMS: dict[str, dict[str, Any]] = {
    "separate": {"preset": "default", "method": "separate"},
    "default": {"preset": "default"},
    "paper": {"preset": "paper"},
}
TABLES = ("adult", "compas", "default_credit")
IMAGES = ("multi_mnist", "multi_fashion", "fashion_and_mnist")


def main() -> None:
    """Train, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", choices=("tables", "images"), default="tables")
    parser.add_argument("--data", help="where the images lie")
    parser.add_argument("--rule", default="published", help="where two images are put")
    parser.add_argument("--arms", default=",".join(ARMS))
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path, help="write the numbers here as JSON")
    arguments = parser.parse_args()
    device = "cuda" if arguments.kind == "images" else "cpu"
    every = list(_jobs(arguments.kind, arguments.rule))
    train = partial(studied, data=arguments.data, arms=arguments.arms.split(","), device=device)
    rows: list[dict[str, Any]] = []
    with multiprocessing.get_context("spawn").Pool(arguments.workers) as pool:
        for found in pool.imap(train, every):
            rows += found
            if arguments.out is not None:
                content = {"seeds": SEEDS, "fronts": rows} | get_provenance(torch.device(device))
                arguments.out.write_text(json.dumps(content, indent=1) + "\n")


def _jobs(kind: str, rule: str) -> Iterator[tuple[str, str]]:
    """Problems, and how each is set up."""
    if kind == "images":
        yield from ((name, rule) for name in IMAGES)
    else:
        yield from ((name, gap) for name in TABLES for gap in ("deo", "demographic_parity"))


def studied(
    job: tuple[str, str], *, data: str | None, arms: list[str], device: str
) -> list[dict[str, Any]]:
    """What each arm's seeds reach on a problem."""
    name, how = job
    if device == "cpu":
        torch.set_num_threads(1)
    problem = _problem(name, how, data)
    rows, fronts = [], {}
    for arm in arms:
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is noted of a run stands in the row
            out = Path(folder) / "runs"
            runs = fit(problem, seeds=SEEDS, device=device, out=out, **ARMS[arm])
            fronts[arm] = [run.front for run in runs]
            separate = fronts.get("separate", [None] * len(runs))
            found = [
                {"problem": name, "set_up": how, "arm": arm}
                | _measured(run, problem, beside if arm != "separate" else None)
                for run, beside in zip(runs, separate, strict=True)
            ]
        for row in found:  # now: what comes after may be cut off
            print(_line(row), flush=True)
        rows += found
    return rows


def _problem(name: str, how: str, data: str | None) -> Problem:
    if name in IMAGES:
        return load_problem(name, data=data, settings={"rule": how})
    return load_problem(name, settings={"fairness": how})


def _measured(run: Run, problem: Problem, separate: Any) -> dict[str, Any]:
    """The numbers of one run."""
    record = run.record
    report = front_report(run.front, separate).to_dict()
    train = None
    if record["fixed_rays"] is None:
        whole = evaluate(run.model, problem, split="train", rays=len(run.front))
        train = front_report(whole).to_dict()["by_objective"]["monotonicity"]
    ends = getattr(run.model, "ends", None)
    picked = np.linspace(0, len(run.front) - 1, 5).round().astype(int)
    return {
        "seed": record["seed"],
        **report["numbers"],
        "by_objective": report["by_objective"],
        "monotonicity_train": train,
        "sensitivity": record.get("sensitivity"),
        "findings": [one["kind"] for one in record.get("findings", [])],
        "ends": None if ends is None else ends.tolist(),
        "points": run.front.values[picked].tolist(),
        "rays": run.front.rays[picked].tolist(),
        "epoch_selected": record["epoch_selected"],
        "parameters": record["parameters"],
        "seconds_training": record["seconds_training"],
        "seeds_together": record["seeds_together"],
    }


def _line(row: dict[str, Any]) -> str:
    covered = row.get("range_covered")
    return (
        f"{row['problem']:18} {row['set_up']:18} {row['arm']:9} {row['seed']} "
        f"order {row['monotonicity']:5.2f} dominated {row['dominated_share']:4.0%} "
        f"range {'-' if covered is None else format(covered, '4.0%')} "
        f"utility {row['expected_utility']:.4f} hypervolume {row['hypervolume']:.3f} "
        f"{row['seconds_training']:6.1f} s {fmean(row['points'][0]):.3f} {row['findings']}"
    )


if __name__ == "__main__":
    main()
