"""`python -m benchmarks.growth --out results/growth.json`: time and memory as a task grows.

Rows, columns, objectives and rays of made-up tables in Parquet files are varied, one at a time.
Every measurement is a process of its own with one thread. It reports the seconds that the
processor was busy, which other programs hardly change, and how far its own memory (without mapped
files, which the system takes back when it needs to) exceeded that after the imports. The exponent b
of size^b is fitted to the upper half of the sizes, where the start no longer counts.
"""

import argparse
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from pyarrow import parquet

from paretocosmos import Problem, evaluate, fit, load_problem, load_run
from paretocosmos.cli import main as run_command
from paretocosmos.runs.provenance import get_provenance
from paretocosmos.training.callbacks import Callback, Start
from paretocosmos.training.progress import Progress

ROWS, COLUMNS, BLOCK = 50_000, 10, 200_000
SIZES: dict[str, dict[str, tuple[int, ...]]] = {
    "predict": {"rows": (10_000, 100_000, 1_000_000, 10_000_000), "columns": (10, 20, 40, 80)},
    "load": {"rows": (10_000, 100_000, 1_000_000, 10_000_000), "columns": (10, 20, 40, 80)},
    "train": {"rows": (10_000, 30_000, 100_000, 300_000), "classes": (3, 5, 10, 20, 40)},
    "evaluate": {"rows": (10_000, 100_000, 1_000_000), "rays": (9, 33, 101, 333, 1001)},
}
ONCE: dict[str, Any] = {"epochs": 1, "report": False, "progress": False}


def main() -> None:
    """Measure each task at each size, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="write the numbers here as JSON")
    parser.add_argument("--largest", type=int, default=10_000_000, help="leave out more rows")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child is not None:
        print(json.dumps(measure(**json.loads(arguments.child))))
        return
    results: dict[str, Any] = {"rows": ROWS, "columns": COLUMNS, "tasks": {}}
    results |= get_provenance(torch.device("cpu"))
    with tempfile.TemporaryDirectory() as folder:
        for task, axes in SIZES.items():
            for axis, sizes in axes.items():
                measured = {
                    size: start_child({"task": task, "folder": folder, axis: size})
                    for size in sizes
                    if axis != "rows" or size <= arguments.largest
                }
                exponents = fit_exponents(measured)
                results["tasks"][f"{task} by {axis}"] = {"sizes": measured, "exponents": exponents}
                print(f"{task} by {axis}: {measured} {exponents}", flush=True)
                if arguments.out is not None:
                    arguments.out.write_text(json.dumps(results, indent=1) + "\n")


def start_child(settings: Mapping[str, Any]) -> dict[str, float]:
    """Measure one task at one size in a process of its own."""
    ended = subprocess.run(
        [sys.executable, "-m", "benchmarks.growth", "--child", json.dumps(settings)],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    found: dict[str, float] = json.loads(ended.stdout.splitlines()[-1])
    return found


def fit_exponents(measured: Mapping[int, Mapping[str, float]]) -> dict[str, float]:
    """Return the slope of log seconds and log memory over log size, for the upper half of sizes."""
    sizes = list(measured)[-(len(measured) // 2 + 1) :]
    return {
        key: float(np.polyfit(np.log(sizes), np.log([measured[n][key] for n in sizes]), 1)[0])
        for key in ("seconds", "mebibytes")
    }


def measure(
    task: str,
    folder: str,
    rows: int = ROWS,
    columns: int = COLUMNS,
    classes: int = 2,
    rays: int = 25,
) -> dict[str, float]:
    """Return the seconds of the processor and the memory that a task took."""
    path = Path(folder, f"{rows}-{columns}-{classes}.parquet")
    if not path.exists():
        write_table(path, rows, columns, classes)
    if task == "load":
        with watch() as used:
            load(path, classes)
    elif task == "train":
        epoch = Epoch()
        with watch() as used:
            fit(load(path, classes), **ONCE, settings={"rays": 5}, callbacks=[epoch])
        used["seconds"] = epoch.seconds
    elif task == "evaluate":
        problem, run = load(path, classes), train_once(Path(folder), columns)
        with watch() as used:
            evaluate(run.model, problem, rays=rays)
    else:
        train_once(Path(folder), columns)
        out, known = Path(folder, "out.parquet"), str(Path(folder, f"run-{columns}"))
        sys.argv = ["paretocosmos", "predict", known, str(path), "--ray", "0.5,0.5"]
        sys.argv += ["--out", str(out)]
        with watch() as used, contextlib.suppress(SystemExit):
            run_command()
        out.unlink()
    return used


class Epoch(Callback):
    """The processor's seconds from the first step to the end of an epoch and its front."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def started(self, start: Start) -> None:
        self.seconds = -time.process_time()

    def epoch(self, progress: Progress) -> None:
        self.seconds += time.process_time()


def write_table(path: Path, rows: int, columns: int, classes: int) -> None:
    """Write a table in blocks: two columns of text in ten, the others numbers, a group, a label."""
    draw, words = np.random.default_rng(0), np.array(["red", "green", "blue", "white", "black"])
    writer: Any = None
    for start in range(0, rows, BLOCK):
        count = min(BLOCK, rows - start)
        block: dict[str, Any] = {}
        for index in range(columns):
            is_text = index % 5 == 4
            block[f"x{index}"] = (
                words[draw.integers(0, 5, count)] if is_text else draw.standard_normal(count)
            )
        block["group"] = np.array(["f", "m"])[draw.integers(0, 2, count)]
        signal = block["x0"] + block["x1"] * (block["group"] == "f") + draw.standard_normal(count)
        ranks = np.clip((signal + 3) / 6 * classes, 0, classes - 1).astype(int)
        block["label"] = np.array([f"c{index:02}" for index in range(classes)])[ranks]
        table = pa.table(block)
        writer = writer or parquet.ParquetWriter(path, table.schema)
        writer.write_table(table)
    writer.close()


def load(path: Path, classes: int) -> Problem:
    """Return the problem of a table: the gap between two groups, or the loss of each class."""
    settings: dict[str, object] = {"target": "label", "drop": ("group",), "task": "classes"}
    if classes == 2:
        settings = {"target": "label", "sensitive": "group", "positive": "c01"}
    return load_problem(str(path), settings=settings)


def train_once(folder: Path, columns: int) -> Any:
    """Return a network for tables of so many columns, trained once for all sizes."""
    out = folder / f"run-{columns}"
    if not out.exists():
        path = folder / f"train-{columns}.parquet"
        write_table(path, 10_000, columns, 2)
        fit(load(path, 2), **ONCE, out=out)
    return load_run(out)


@contextlib.contextmanager
def watch() -> Iterator[dict[str, float]]:
    """Yield what will hold the seconds of the processor and the memory of the block."""
    used: dict[str, float] = {}
    peak, done = [read_memory()], threading.Event()
    before, begin = peak[0], time.process_time()

    def sample() -> None:
        while not done.wait(0.02):
            peak.append(max(peak.pop(), read_memory()))

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield used
    finally:
        done.set()
        thread.join()
    used |= {"seconds": time.process_time() - begin, "mebibytes": (peak[0] - before) / 1024}


def read_memory() -> int:
    """Return this process's own memory in kibibytes, without files that are mapped."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("RssAnon")))


if __name__ == "__main__":
    main()
