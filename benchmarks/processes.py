"""`python -m benchmarks.processes`: one process of one thread against two of them, on this CPU.

Multi-digits through LeNet, batches of two sizes, the same run either way. In turns, so that a
noisy machine is noisy for both. Prints a table and, with `--out FILE`, writes the numbers as JSON.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

from paretocosmos.runs.provenance import get_provenance

SETTINGS = ("--set", "copies=8", "--set", "evaluate_every=100")
SIZES = (256, 2048)
COUNTS = (1, 2)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="repetitions; medians are reported")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--out", type=Path, help="write the numbers here as JSON")
    arguments = parser.parse_args()
    results: dict[str, Any] = {"problem": "multi_digits", "rounds": arguments.rounds, "sizes": {}}
    for size in SIZES:
        results["sizes"][str(size)] = measured = measure(size, arguments.rounds, arguments.epochs)
        times = measured["throughput_of_two"]
        print(f"batch {size}: two have {times:.2f} times the throughput of one")
    results |= get_provenance(torch.device("cpu"))
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(results, indent=1) + "\n")


def measure(size: int, rounds: int, epochs: int) -> dict[str, Any]:
    """Training times with one process and with two, in turns."""
    seconds: dict[int, list[float]] = {count: [] for count in COUNTS}
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(rounds):
            for count in COUNTS:
                record = train(count, size, epochs, Path(folder) / f"{turn}-{count}")
                seconds[count].append(record["seconds_training"])
    one, two = (statistics.median(seconds[count]) for count in COUNTS)
    return {
        "epochs": epochs,
        "seconds": {str(count): times for count, times in seconds.items()},
        "throughput_of_two": one / two,
    }


def train(count: int, size: int, epochs: int, out: Path) -> dict[str, Any]:
    """The record of a run by that many processes of one thread each."""
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(count)]
    command = ["-m", "paretocosmos", "train", "multi_digits", "--device", "cpu", *SETTINGS]
    given = ["--epochs", str(epochs), "--set", f"batch_size={size}", "--out", str(out), "--json"]
    subprocess.run(
        [sys.executable, *(launch if count > 1 else []), *command, *given],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    record: dict[str, Any] = json.loads((out / "run.json").read_text())
    return record


if __name__ == "__main__":
    main()
