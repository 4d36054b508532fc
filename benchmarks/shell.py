"""`python -m benchmarks.shell --out results/shell.json`: what a person waits for at the shell.

How much `import paretocosmos` adds to `import torch`, how long a CSV of 10,000 rows and 30 columns
takes from the command to the report, and, in a pseudo-terminal of 80 columns, when `train adult`
shows its first sign of life and how long it ever stands still. A few epochs are enough for that:
what comes before and after them is what stood still.
"""

import argparse
import contextlib
import fcntl
import itertools
import json
import os
import pty
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from paretocosmos.runs.provenance import get_provenance

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
    parser.add_argument("--terminal", action="store_true", help="measure that part alone")
    arguments = parser.parse_args()
    origin = get_provenance(torch.device("cpu"))
    if arguments.terminal:
        results = json.loads(arguments.out.read_text())
    else:
        results = {
            "import_seconds": statistics.median(import_seconds() for _ in range(5)),
            "csv_seconds": csv_seconds(),
            "csv_shape": [10_000, 30],
            **origin,
        }
    results["terminal"] = terminal("train", "adult", "--epochs", "5") | origin
    print(f"import {results['import_seconds']:.3f} s, CSV to report {results['csv_seconds']:.1f} s")
    first, longest = (results["terminal"][k] for k in ("seconds_to_first_sign", "longest_pause"))
    print(f"train adult: first sign after {first:.2f} s, longest pause {longest:.2f} s")
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


def terminal(*words: str) -> dict[str, float]:
    """When a command first shows something in a terminal, and the longest time without change."""
    command = [sys.executable, "-m", "paretocosmos", *words]
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        process, seen = pty.fork()
        if process == 0:
            os.chdir(folder)
            os.execve(command[0], command, {**os.environ, "TERM": "xterm"})
        fcntl.ioctl(seen, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 80, 0, 0))
        moments = [started]
        with contextlib.suppress(OSError):  # the way a terminal ends on Linux
            while os.read(seen, 65536):
                moments.append(time.perf_counter())
        os.close(seen)
        code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        moments.append(time.perf_counter())
        assert code == 0, f"{' '.join(words)} ended with {code}"
    pauses = [later - before for before, later in itertools.pairwise(moments)]
    return {
        "seconds_to_first_sign": moments[1] - started,
        "longest_pause": max(pauses),
        "pause_at_the_end": pauses[-1],
    }


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
