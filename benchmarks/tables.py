"""`python -m benchmarks.tables --out results/tabular.json`: the network for tables.

- `adult`: the cross-entropy end of the front of Adult, `tabular` beside `mlp`, logistic regression
  and gradient boosting on the same rows and features: test accuracy, cross-entropy, calibration.
- `few`: the same with 700 rows of Adult, COMPAS and Default to train on and 100 to validate on,
  4,000 to judge by, against logistic regression on the 800.
- `wide`: `ParetoClassifier` on 50,000 rows of 100 columns.
- `one_row`: one row of Adult through ONNX on one thread.

Times are seconds of one core (processor time, one thread), which a busy machine does not change;
that of `one_row` is the fastest twentieth's. With `--out`, parts that are in the file and are not
asked for stay.
"""

import argparse
import itertools
import json
import shlex
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from threadpoolctl import threadpool_limits

from paretocosmos import TabularProblem, fit, load_problem
from paretocosmos.estimators import ParetoClassifier
from paretocosmos.export import export
from paretocosmos.objectives import calibration_error
from paretocosmos.runs import Run
from paretocosmos.runs.provenance import get_provenance
from paretocosmos.types import Batch

FEW = ("adult", "compas", "default_credit")
ROWS, KEPT, JUDGED = 700, 100, 4000
CALLS = 2000


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="where the JSON goes")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--parts", default="adult,few,wide,one_row")
    arguments = parser.parse_args()
    seeds = [int(seed) for seed in arguments.seeds.split(",")]
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", UserWarning)
    parts: dict[str, Callable[[], Any]] = {
        "adult": lambda: adult(seeds),
        "few": lambda: [few(name, seeds) for name in FEW],
        "wide": wide,
        "one_row": one_row,
    }
    results: dict[str, Any] = {}
    with threadpool_limits(1):
        for name in arguments.parts.split(","):
            results[name] = parts[name]()
            print(json.dumps({name: results[name]}, indent=1), flush=True)
    results |= {
        "seeds": seeds,
        "command": f"python -m benchmarks.tables {shlex.join(sys.argv[1:])}",
        "scikit_learn": sklearn.__version__,
        **get_provenance(torch.device("cpu")),
    }
    if arguments.out is not None:
        there = json.loads(arguments.out.read_text()) if arguments.out.is_file() else {}
        arguments.out.write_text(json.dumps(there | results, indent=1) + "\n")


def adult(seeds: list[int]) -> list[dict[str, Any]]:
    """Adult, the end of the front that asks for cross-entropy alone."""
    problem = _table("adult")
    rows = []
    for backbone in ("tabular", "mlp"):
        for seed in seeds:
            with tempfile.TemporaryDirectory() as folder:
                start = time.process_time()
                out = Path(folder) / "run"
                run = fit(problem, seed=seed, out=out, backbone=backbone, device="cpu")
                seconds = time.process_time() - start
            rows.append({"what": backbone, "seed": seed, **_end(run), "seconds": seconds})
    for name, kind in {
        "logistic regression": LogisticRegression(max_iter=1000),
        "gradient boosting": HistGradientBoostingClassifier(random_state=1),
    }.items():
        train = problem.split("train")
        rows.append({"what": name, **_fitted(kind, train, problem.split("test"))})
    return rows


def few(name: str, seeds: list[int]) -> dict[str, Any]:
    """A table of few rows, and the rest of them to judge by."""
    whole = _table(name)
    every, rows = whole.split("train"), []
    for seed in seeds:
        order = torch.randperm(len(every), generator=torch.Generator().manual_seed(seed))
        cuts = np.cumsum([0, ROWS, KEPT, JUDGED])
        train, val, test = (_cut(every, order[a:b]) for a, b in itertools.pairwise(cuts))
        problem = replace(whole, spec=None, splits={"train": train, "val": val, "test": test})
        with tempfile.TemporaryDirectory() as folder:
            run = fit(problem, seed=seed, out=Path(folder) / "run", device="cpu")
        both = _cut(every, order[: ROWS + KEPT])
        line = _fitted(LogisticRegression(max_iter=1000), both, test)
        rows.append({"seed": seed, "tabular": _end(run), "logistic regression": line})
    return {"problem": name, "rows": rows}


def wide() -> dict[str, Any]:
    """Many rows of many numbers, through the estimator."""
    draw = np.random.default_rng(0)
    inputs = draw.normal(size=(50_000, 100)).astype(np.float32)
    signal = inputs[:, :10].sum(axis=1) + inputs[:, 10] * inputs[:, 11]
    label = signal + draw.normal(size=50_000) > 0
    group = np.where(inputs[:, 0] + draw.normal(size=50_000) > 0, "a", "b")
    start = time.process_time()
    ParetoClassifier(random_state=0, device="cpu").fit(inputs, label, sensitive=group)
    return {"rows": 50_000, "columns": 100, "seconds": time.process_time() - start}


def one_row() -> dict[str, Any]:
    """The time of one row and one preference on one thread, in milliseconds."""
    import onnxruntime

    with tempfile.TemporaryDirectory() as folder:
        run = fit(_table("adult"), seed=1, out=Path(folder) / "run", epochs=1, device="cpu")
        made = export(run)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        session = onnxruntime.InferenceSession(str(made.path), options)
        assert run.table is not None
        columns = len(run.table.columns)
        given = {
            "x": np.zeros((1, columns), np.float32),
            "preference": np.array([[0.7, 0.3]], np.float32),
        }
        times = []
        for _ in range(CALLS):
            start = time.perf_counter()
            session.run(None, given)
            times.append(1000 * (time.perf_counter() - start))
        size = made.path.stat().st_size
    fast, median = (float(np.quantile(times, share)) for share in (0.05, 0.5))
    return {"milliseconds": fast, "median_milliseconds": median, "calls": CALLS, "bytes": size}


def _table(name: str) -> TabularProblem:
    problem = load_problem(name)
    assert isinstance(problem, TabularProblem)
    return problem


def _cut(batch: Batch, rows: torch.Tensor) -> Batch:
    assert isinstance(batch.inputs, torch.Tensor)
    return Batch(batch.inputs[rows], {name: t[rows] for name, t in batch.targets.items()})


def _end(run: Run) -> Mapping[str, Any]:
    """What the front says where cross-entropy is all that is asked for, test and validation."""
    found: dict[str, Any] = {}
    for end, front in {"": run.front, "_val": run.front_val}.items():
        at = int(np.argmax(front.rays[:, 0]))
        found[f"accuracy{end}"] = float(front.metrics["accuracy"][at])
        found[f"cross_entropy{end}"] = float(front.values[at, 0])
        found[f"calibration_error{end}"] = float(front.metrics["calibration_error"][at])
    return found


def _fitted(kind: Any, train: Batch, test: Batch) -> dict[str, float]:
    """The same of a model of scikit-learn's."""
    x, y, new, truth = (
        np.asarray(part)
        for batch in (train, test)
        for part in (batch.inputs, batch.targets["label"])
    )
    chance = kind.fit(x, y).predict_proba(new)[:, 1]
    logits = torch.logit(torch.from_numpy(chance).double(), eps=1e-12)
    return {
        "accuracy": float(((chance > 0.5) == truth).mean()),
        "cross_entropy": float(log_loss(truth, chance)),
        "calibration_error": float(calibration_error(logits, test.targets)),
    }


if __name__ == "__main__":
    main()
