"""`python -m benchmarks.shapes`: fronts of every shape, by every method, beside the exact fronts.

Trains every problem whose front is known in closed form with nothing set (`default`), and with each
other method in place of the default one, and measures what was reached: hypervolume as a share of
the exact front's, order (the smallest rank correlation of a weight with minus its objective, along
each objective's own path from no weight to all of it), range as a share of the exact one, and the
largest gap in the front. Then come three problems beside LibMOON's published numbers, or with
`--problems none` these alone. `--out FILE` writes the numbers as JSON; `--methods`
and `--problems` choose some.
"""

import argparse
import json
import tempfile
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from paretocosmos import evaluate, fit, load_problem
from paretocosmos.pareto.front import Array, Front
from paretocosmos.pareto.metrics import hypervolume, monotonicity
from paretocosmos.problems.functions import FunctionProblem, ToyProblem
from paretocosmos.runs.provenance import get_provenance

PROBLEMS = ("toy_convex", "toy_concave", "zdt1", "zdt2", "zdt3", "dtlz2", "dtlz7", "vlmop2")
# COSMOS without what the default preset adds to it.
PLAIN: dict[str, Any] = {"penalty": 2.0, "normalise": False, "floor": 0.0, "least": None}
METHODS: dict[str, dict[str, Any]] = {
    "default": {},
    "linear": {"method": "linear"},
    "cosmos, printed": {"method": "cosmos", "settings": PLAIN | {"alignment": "ray"}},
    "cosmos, inverse": {"method": "cosmos", "settings": PLAIN},
    "tchebycheff": {"method": "tchebycheff"},
    "smooth_tchebycheff": {"method": "smooth_tchebycheff"},
    "smooth_tchebycheff, unscaled": {
        "method": "smooth_tchebycheff",
        "settings": {"smoothing": 0.02, "scale_losses": False},
    },
}
# What was tried on fronts in pieces; only if `--methods` names them.
VARIANTS: dict[str, dict[str, Any]] = {
    "default, weights free": {"settings": {"least": None}},
    "default, half the cosine": {"settings": {"penalty": 2.5}},
    "default, no floor": {"settings": {"floor": 0.0}},
    "default, losses as they are": {"settings": {"normalise": False}},
    "default, weights free, losses as they are": {"settings": {"normalise": False, "least": None}},
}
# Hypervolumes at (1, ..., 1) of sets learned by LibMOON (Zhang et al. 2024, arXiv 2409.02969), as
# published; the number of points may differ from ours.
PUBLISHED: dict[str, dict[str, float]] = {
    "vlmop2": {"COSMOS": 0.318, "Tchebycheff": 0.319, "EPO": 0.319, "weighted sum": 0.045},
    "re21": {"COSMOS": 0.792, "Tchebycheff": 0.820, "smooth Tchebycheff": 0.822},
    "re37": {"COSMOS": 0.536, "Tchebycheff": 0.548, "smooth Tchebycheff": 0.466},
}
# Points of a front, by its objectives, learned and exact.
POINTS = {2: 100, 3: 300}
# Rays of a path between no weight on an objective and all of it.
PATH = 15
# A gap that is this much wider than the exact front's own.
MISSING = 0.2


def main() -> None:
    """Train, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", default=",".join(PROBLEMS))
    parser.add_argument("--methods", default=";".join(METHODS), help="separated by semicolons")
    parser.add_argument("--seeds", default="1")
    parser.add_argument("--out", type=Path, help="write the numbers here as JSON")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rows: list[dict[str, Any]] = []
    for name in arguments.problems.split(",") if arguments.problems != "none" else ():
        problem = load_problem(name)
        assert isinstance(problem, ToyProblem | FunctionProblem)
        for method in arguments.methods.split(";"):
            for seed in map(int, arguments.seeds.split(",")):
                rows.append({"problem": name, "method": method, "seed": seed})
                rows[-1] |= measure_method(problem, (METHODS | VARIANTS)[method], seed)
                print(_line(rows[-1]), flush=True)
    published = [compare_with_published(name) for name in PUBLISHED]
    if arguments.out is not None:
        content = {"points": POINTS, "fronts": rows, "published": published}
        content |= get_provenance(torch.device("cpu"))
        arguments.out.write_text(json.dumps(content, indent=1) + "\n")


def compare_with_published(name: str) -> dict[str, Any]:
    """Train the default on a problem and compute its hypervolume at (1, ..., 1), like LibMOON's."""
    problem = load_problem(name)
    assert isinstance(problem, FunctionProblem)
    count = len(problem.names)
    with tempfile.TemporaryDirectory() as folder:
        run = fit(
            problem,
            seed=1,
            out=Path(folder) / "run",
            report=False,
            progress=False,
            settings={"rays": POINTS[count]},
        )
    fronts = {"default": run.front}
    if problem.exact is not None:
        fronts["exact"] = problem.exact_front(POINTS[count])
    ours = {
        kind: hypervolume(replace(front, reference=np.ones(count)))
        for kind, front in fronts.items()
    }
    row = {"problem": name, "ours": ours, "published": PUBLISHED[name]}
    print(row, flush=True)
    return row


def measure_method(
    problem: ToyProblem | FunctionProblem, how: dict[str, Any], seed: int
) -> dict[str, Any]:
    """Train one network by one method and measure its front.

    Args:
        problem: whose front is known.
        how: what `fit` is given beside it.
        seed: of the training.
    """
    exact = problem.exact_front(POINTS[len(problem.names)])
    settings = {"rays": POINTS[len(problem.names)]} | how.get("settings", {})
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is noted of a run stands in the row
        try:
            run = fit(
                problem,
                seed=seed,
                out=Path(folder) / "run",
                report=False,
                progress=False,
                **(how | {"settings": settings}),
            )
        except ValueError as error:  # a method that refuses losses below 0
            return {"refused": str(error)}
        paths = [
            evaluate(run.model, problem, split="val", rays=rays)
            for rays in make_paths(len(problem.names))
        ]
        orders = [float(monotonicity(path)[j]) for j, path in enumerate(paths)]
        return {
            "hypervolume": hypervolume(run.front) / hypervolume(exact),
            "order": min(orders),
            "range": float(_compute_range(run.front, exact).min()),
            "gap": compute_largest_gap(run.front.values, exact.values),
            "findings": [finding["kind"] for finding in run.record["findings"]],
            "seconds": time.perf_counter() - started,
        }


def make_paths(objectives: int) -> list[Tensor]:
    """Make the rays ``[PATH, J]`` from no weight on an objective to all of it, of each objective.

    Over random rays even the exact front is out of order where J is above 2.
    """
    weights = torch.linspace(0, 1, PATH)[:, None]
    corners = torch.eye(objectives)
    others = (1 - corners) / (objectives - 1)
    return [others[j] + weights * (corners[j] - others[j]) for j in range(objectives)]


def _compute_range(front: Front, exact: Front) -> Array:
    """Return how far the rays move each objective, as a share of what is possible."""
    shares: Array = np.ptp(front.values, axis=0) / np.ptp(exact.values, axis=0)
    return shares


def compute_largest_gap(values: Array, exact: Array) -> float:
    """Return how far the worst served point of the exact front is from the learned one.

    The distance counts only what is worse (that of IGD+), in shares of the exact front's range.

    >>> exact = np.array([[0.0, 1.0], [0.7, 0.7], [1.0, 0.0]])
    >>> round(compute_largest_gap(exact[[0, 2]], exact), 2)
    0.3
    """
    scale = np.ptp(exact, axis=0)
    worse = np.clip(values[None] - exact[:, None], 0, None) / scale
    return float(np.linalg.norm(worse, axis=-1).min(axis=1).max())


def _line(row: dict[str, Any]) -> str:
    start = f"{row['problem']:12} {row['method']:29} seed {row['seed']}: "
    if "refused" in row:
        return start + "refused"
    middle = "" if row["gap"] < MISSING else "  middle missing"
    return start + (
        f"hypervolume {row['hypervolume']:.3f}  order {row['order']:5.2f}  range "
        f"{row['range']:.2f}  gap {row['gap']:.2f}{middle}  {row['seconds']:.0f} s"
    )


if __name__ == "__main__":
    main()
