"""`python -m benchmarks.default_method`: the default method on pairs of images, beside others.

Trains each pair with nothing set (`default`) and with another method in place of the default one,
several seeds together where the device gains by it, and measures each front on validation and on
test: hypervolume, expected utility, range and best value of each objective, order, and what the
last tenth of the slider gains and costs at either end. `multi_digits`, made of scikit-learn's
digits, trains on a CPU in minutes; the full pairs need a GPU and `--data DIR` with `mnist/` and
`fashion_mnist/`. `--out FILE` writes the numbers as JSON, after each training.
"""

import argparse
import json
import tempfile
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from paretocosmos import evaluate, fit, load_problem
from paretocosmos.pareto.metrics import expected_utility, hypervolume, monotonicity, range_covered
from paretocosmos.problems import Problem
from paretocosmos.runs import Run
from paretocosmos.runs.provenance import get_provenance
from paretocosmos.runtime.device import resolve_device

FULL_PAIRS = ("multi_mnist", "multi_fashion", "fashion_and_mnist")
METHODS: dict[str, dict[str, Any]] = {
    "default": {},
    "linear": {"method": "linear"},
    "smooth_tchebycheff": {"method": "smooth_tchebycheff"},
    # what was compared with the default on validation
    "least from the start": {"settings": {"least_epochs": 0}},
    "penalty 1, least from the start": {"settings": {"penalty": 1.0, "least_epochs": 0}},
    "penalty .5, least from the start": {"settings": {"penalty": 0.5, "least_epochs": 0}},
}
POINTS = 25
# Both ends of the slider, and a tenth of it before each.
ENDS = ((1.0, 0.0), (0.9, 0.1), (0.1, 0.9), (0.0, 1.0))


def main() -> None:
    """Train, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="where mnist/ and fashion_mnist/ lie")
    parser.add_argument("--pairs", help="the three full pairs with --data, else multi_digits")
    parser.add_argument("--rule", default="published", help="where two images are put")
    parser.add_argument("--copies", type=int, default=10, help="multi_digits: pairs per digit")
    parser.add_argument("--epochs", type=int, help="the default preset's, if left out")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--methods", default="default;linear", help="separated by semicolons")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, help="write the numbers here as JSON")
    arguments = parser.parse_args()
    device = resolve_device(arguments.device)
    if device.type == "cpu":
        torch.set_num_threads(1)
    pairs = arguments.pairs or (",".join(FULL_PAIRS) if arguments.data else "multi_digits")
    seeds = [int(seed) for seed in arguments.seeds.split(",")]
    rows: list[dict[str, Any]] = []
    for name in pairs.split(","):
        problem = load_pair(name, arguments.data, arguments.rule, arguments.copies)
        for method in arguments.methods.split(";"):
            trained = train_seeds(problem, METHODS[method], seeds, arguments.epochs, str(device))
            rows += [{"problem": name, "method": method} | row for row in trained]
            print(summarise_rows(rows[-len(seeds) :]), flush=True)
            if arguments.out is not None:
                content = {"rule": arguments.rule, "fronts": rows} | get_provenance(device)
                arguments.out.write_text(json.dumps(content, indent=1) + "\n")


def load_pair(name: str, data: str | None, rule: str, copies: int) -> Problem:
    """Load a pair of images under the clean protocol."""
    if name == "multi_digits":
        return load_problem(name, settings={"copies": copies})
    return load_problem(name, data=data, settings={"rule": rule})


def train_seeds(
    problem: Problem, how: dict[str, Any], seeds: Sequence[int], epochs: int | None, device: str
) -> list[dict[str, Any]]:
    """Train a network for each seed and return what each reaches.

    Args:
        problem: a pair of images.
        how: what `fit` is given beside it.
        seeds: one network each.
        epochs: the preset's if `None`.
        device: where it trains.
    """
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is noted of a run stands in the row
        runs = fit(
            problem,
            seeds=seeds,
            epochs=epochs,
            device=device,
            out=Path(folder) / "runs",
            report=False,
            progress=False,
            **how,
        )
        seconds = time.perf_counter() - started
        return [measure_run(run, problem) | {"seconds_in_all": seconds} for run in runs]


def measure_run(run: Run, problem: Problem) -> dict[str, Any]:
    """Return the numbers of one run, on both splits."""
    record = run.record
    return {
        "seed": record["seed"],
        "epochs": record["training"]["epochs"],
        "epoch_selected": record["epoch_selected"],
        "findings": [finding["kind"] for finding in record["findings"]],
        "engine": record["engine"],
        "seeds_together": record["seeds_together"],
        "seconds_training": record["seconds_training"],
        "val": measure_split(run, problem, "val"),
        "test": measure_split(run, problem, "test"),
    }


def measure_split(run: Run, problem: Problem, split: str) -> dict[str, Any]:
    """Return the measures of a front on a split."""
    front = evaluate(run.model, problem, split=split, rays=POINTS)
    ends = evaluate(run.model, problem, split=split, rays=torch.tensor(ENDS)).values
    # beginning and end of the slider's last tenth, for one objective and for the other
    tenths = ((ends[1], ends[0], 0), (ends[2], ends[3], 1))
    return {
        "hypervolume": hypervolume(front),
        "expected_utility": expected_utility(front),
        "best": front.values.min(axis=0).tolist(),
        "range": range_covered(front).tolist(),
        "order": monotonicity(front).tolist(),
        "last_tenth_gain": [float(before[j] - after[j]) for before, after, j in tenths],
        "last_tenth_cost": [float(after[1 - j] - before[1 - j]) for before, after, j in tenths],
        "values": front.values.tolist(),
        "ends": ends.tolist(),
    }


def summarise_rows(rows: Sequence[dict[str, Any]]) -> str:
    """Return a line for each split with the means over seeds."""
    lines = []
    for split in ("val", "test"):

        def mean(measure: str, split: str = split) -> str:
            values = [row[split][measure] for row in rows]
            if isinstance(values[0], float):
                return f"{fmean(values):.4f}"
            return ", ".join(f"{fmean(column):.4f}" for column in zip(*values, strict=True))

        measures = ("hypervolume", "expected_utility", "best", "range", "order")
        told = [f"{measure} {mean(measure)}" for measure in measures]
        told.append(f"last tenth {mean('last_tenth_gain')} for {mean('last_tenth_cost')}")
        start = f"{rows[0]['problem']} {rows[0]['method']} {split}: "
        lines.append(start + "; ".join(told) + f"; {rows[0]['seconds_in_all']:.1f} s")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
