"""`python -m benchmarks.gaps`: whether what is trained follows what is counted, gap by gap.

Trains the public tables with each fairness objective, nothing else set, and tells for every split
the rank correlation of loss and score along the front, that of weight and minus the score (the
order), the gap at both ends and the smallest, and the accuracy at both ends. `--sharpness` tries
another one, `--out FILE` writes the numbers as JSON and keeps those of other seeds that it holds.
"""

import argparse
import dataclasses
import json
import tempfile
import warnings
from pathlib import Path
from typing import Any

import torch
from scipy.stats import spearmanr

from paretocosmos import evaluate, fit, load_problem
from paretocosmos.pareto import Front
from paretocosmos.problems import SPLITS
from paretocosmos.registry import find
from paretocosmos.runs.provenance import get_provenance

TABLES = ("adult", "compas", "default_credit")
GAPS = ("demographic_parity", "tpr_gap", "fpr_gap", "equalized_odds", "accuracy_gap", "worst_group")


def main() -> None:
    """Train, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--gaps", default=",".join(GAPS))
    parser.add_argument("--sharpness", type=float, help="of the relaxed decisions")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="write the numbers here as JSON")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rows: list[dict[str, Any]] = []
    if arguments.out is not None and arguments.out.exists():
        held = json.loads(arguments.out.read_text())["gaps"]
        rows = [row for row in held if row["seed"] != arguments.seed]
    for table in arguments.tables.split(","):
        for gap in arguments.gaps.split(","):
            row = studied(table, gap, arguments.sharpness, arguments.seed)
            print(json.dumps(row), flush=True)
            rows.append(row)
            if arguments.out is not None:
                content = {"gaps": rows} | get_provenance(torch.device("cpu"))
                arguments.out.write_text(json.dumps(content, indent=1) + "\n")


def studied(table: str, gap: str, sharpness: float | None, seed: int) -> dict[str, Any]:
    """What one training reaches."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is noted of a run stands in the row
        problem = load_problem(table, settings={"fairness": gap})
        if sharpness is not None:
            other = find("objectives", gap)(groups=2, sharpness=sharpness)
            problem = dataclasses.replace(problem, objectives=(problem.objectives[0], other))
        run = fit(problem, seed=seed, device="cpu", out=Path(folder) / "run")
        told = dataclasses.replace(
            problem, metrics={**problem.metrics, "trained": problem.objectives[1].loss}
        )
        return {
            "problem": table,
            "gap": gap,
            "seed": seed,
            **{split: _measured(evaluate(run.model, told, split=split)) for split in SPLITS},
            "findings": [one["kind"] for one in run.record.get("findings", [])],
            "seconds_training": run.record["seconds_training"],
        }


def _measured(front: Front) -> dict[str, Any]:
    """A front in numbers; the first ray has all weight on cross-entropy."""
    score, accuracy = front.values[:, 1], front.metrics["accuracy"]
    return {
        "fidelity": float(spearmanr(front.metrics["trained"], score)[0]),
        "order": float(spearmanr(front.rays[:, 1], -score)[0]),
        "gap": [float(score[0]), float(score[-1])],
        "smallest": float(score.min()),
        "accuracy": [float(accuracy[0]), float(accuracy[-1])],
    }


if __name__ == "__main__":
    main()
