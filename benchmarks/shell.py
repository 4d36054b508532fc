"""`python -m benchmarks.shell --out results/shell.json`: what a person waits for at the shell.

How much `import paretocosmos` adds to `import torch`, and how long a CSV of 10,000 rows and 30
columns takes from the command to the report.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from paretocosmos.runs.provenance import provenance

IMPORT = """
import time, torch
started = time.perf_counter()
import paretocosmos
print(time.perf_counter() - started)
"""


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="where the JSON goes")
    arguments = parser.parse_args()
    results = {
        "import_seconds": statistics.median(import_seconds() for _ in range(5)),
        "csv_seconds": csv_seconds(),
        "csv_shape": [10_000, 30],
        **provenance(torch.device("cpu")),
    }
    print(f"import {results['import_seconds']:.3f} s, CSV to report {results['csv_seconds']:.1f} s")
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(results, indent=1) + "\n")


def import_seconds() -> float:
    """What importing adds to torch, in a fresh process."""
    command = [sys.executable, "-c", IMPORT]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def csv_seconds() -> float:
    """From the shell to the report, start of Python included."""
    with tempfile.TemporaryDirectory() as folder:
        people().to_csv(Path(folder) / "people.csv", index=False)
        command = [sys.executable, "-m", "paretocosmos", "train", "people.csv"]
        command += ["--target", "income", "--positive", "high", "--sensitive", "sex"]
        command += ["--out", "run"]
        started = time.perf_counter()
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        seconds = time.perf_counter() - started
        assert (Path(folder) / "run" / "report.html").exists()
    return seconds


def people() -> pd.DataFrame:
    """Twenty numbers, eight categories, missing values, a sensitive column and a target."""
    generator, rows = np.random.default_rng(0), 10_000
    frame = pd.DataFrame(
        {f"number_{k}": generator.normal(size=rows).round(4) for k in range(20)}
        | {f"category_{k}": generator.choice(list("abcdef"), rows) for k in range(8)}
    )
    frame["sex"] = generator.choice(["female", "male"], rows)
    logit = frame["number_0"] + (frame["sex"] == "male") - 0.5 + (frame["category_0"] == "a")
    frame["income"] = np.where(generator.random(rows) < 1 / (1 + np.exp(-logit)), "high", "low")
    frame.loc[generator.random(rows) < 0.05, ["number_3", "category_1"]] = None
    return frame


if __name__ == "__main__":
    main()
