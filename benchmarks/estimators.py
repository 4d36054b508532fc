"""`python -m benchmarks.estimators --out results/estimators.json`: what fitting an estimator costs.

Seconds and memory of `fit` on 50,000 rows and 100 features in float64, in a fresh process each:
what the process holds at its peak, above what it held with the data in memory. The first fit of a
process loads parts of torch, whatever the data: a small fit before shows what they take.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from paretocosmos.runs.provenance import get_provenance

ROWS, FEATURES, SEED = 50_000, 100, 0
CASES = ("classes", "groups", "numbers")
CHILD = """
import json, resource, sys, time
import numpy as np
from sklearn.base import clone
from paretocosmos.estimators import ParetoClassifier, ParetoRegressor

folder, case, seed = sys.argv[1], sys.argv[2], int(sys.argv[3])
X, y, sex, number = (np.load(f"{folder}/{name}.npy") for name in ("x", "y", "sex", "number"))
if case == "numbers":
    estimator, truth, more = ParetoRegressor(random_state=seed), number, {}
else:
    estimator, truth = ParetoClassifier(random_state=seed), y
    more = {"sensitive": sex} if case == "groups" else {}
def held():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()

before = held()
few = slice(0, 300)
clone(estimator).fit(X[few], truth[few], **{name: part[few] for name, part in more.items()})
loaded = held()
started = time.perf_counter()
estimator.fit(X, truth, **more)
seconds = time.perf_counter() - started
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps({
    "seconds": seconds,
    "memory": peak - loaded,
    "memory_times_data": (peak - loaded) / X.nbytes,
    "memory_of_the_first_fit": loaded - before,
    "score": estimator.score(X, truth),
    "rays": len(estimator.front_),
}))
"""


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="where the JSON goes")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write_rows(Path(folder))
        measured = {case: measure(folder, case) for case in CASES}
    results = {
        "rows": ROWS,
        "features": FEATURES,
        "seed": SEED,
        "fits": measured,
        **get_provenance(torch.device("cpu")),
    }
    for case, found in measured.items():
        print(
            f"{case}: {found['seconds']:.1f} s, {found['memory'] / 1e6:.0f} MB more, "
            f"{found['memory_times_data']:.2f} times the data, score {found['score']:.3f}"
        )
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(results, indent=1) + "\n")


def measure(folder: str, case: str) -> dict[str, Any]:
    """One fit in a fresh process."""
    command = [sys.executable, "-c", CHILD, folder, case, str(SEED)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def write_rows(folder: Path) -> None:
    """Features, two classes, two groups and a number, as files to be read."""
    draw = np.random.default_rng(SEED)
    rows = draw.normal(size=(ROWS, FEATURES))
    sex = draw.integers(0, 2, ROWS)
    signal = rows[:, :5].sum(axis=1) + rows[:, 5] * rows[:, 6] + 0.5 * sex
    label = (draw.random(ROWS) < 1 / (1 + np.exp(-signal))).astype(np.int64)
    number = signal + draw.normal(size=ROWS)
    for name, values in {"x": rows, "y": label, "sex": sex, "number": number}.items():
        np.save(folder / f"{name}.npy", values)


if __name__ == "__main__":
    main()
