"""`python -m benchmarks.processes`: one process of one thread against two of them, on this CPU.

Multi-digits through LeNet, batches of 256 in all, the same run either way. In turns, so that a
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

from paretocosmos.provenance import provenance

SETTINGS = ("--set", "batch_size=256", "--set", "copies=8", "--set", "evaluate_every=100")
COUNTS = (1, 2)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="repetitions; medians are reported")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--out", type=Path, help="write the numbers here as JSON")
    arguments = parser.parse_args()
    seconds: dict[int, list[float]] = {count: [] for count in COUNTS}
    values = {}
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(arguments.rounds):
            for count in COUNTS:
                out = Path(folder) / f"{turn}-{count}"
                record = train(count, arguments.epochs, out)
                seconds[count].append(record["seconds_training"])
                values[count] = record["metrics"]["test"]["hypervolume"]
    medians = {count: statistics.median(times) for count, times in seconds.items()}
    results = {
        "problem": "multi_digits",
        "epochs": arguments.epochs,
        "rounds": arguments.rounds,
        "seconds": {str(count): times for count, times in seconds.items()},
        "throughput_of_two": medians[1] / medians[2],
        "hypervolumes": {str(count): value for count, value in values.items()},
        **provenance(torch.device("cpu")),
    }
    for count in COUNTS:
        print(f"{count} process(es): {medians[count]:.2f} s, hypervolume {values[count]:.6f}")
    print(f"two have {results['throughput_of_two']:.2f} times the throughput of one")
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(results, indent=1) + "\n")


def train(count: int, epochs: int, out: Path) -> dict[str, Any]:
    """The record of a run by that many processes of one thread each."""
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(count)]
    command = ["-m", "paretocosmos", "train", "multi_digits", "--device", "cpu", *SETTINGS]
    given = ["--epochs", str(epochs), "--out", str(out), "--json"]
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
