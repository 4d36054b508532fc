"""`python -m benchmarks.onnx --out results/onnx.json`: an exported file against PyTorch.

The same network on the same rows, preprocessing included, in onnxruntime and in PyTorch under
inference_mode, in turns in one process with equally many threads. Medians, their ratio (below 1:
onnxruntime is faster), and the largest difference. onnxruntime's threads do not spin between calls,
which would take the cores from PyTorch. One thread by default: on a machine that others use too,
several wait for each other, PyTorch's the most, and the ratio would flatter onnxruntime.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
from torch import Tensor

from paretocosmos import fit
from paretocosmos.errors import BenchmarkWarning
from paretocosmos.evaluation import MIDDLE
from paretocosmos.export import Exported, export
from paretocosmos.export.formats import compute_relative_difference, draw_rows
from paretocosmos.export.network import ExportedNetwork, plan_export
from paretocosmos.runs import Run
from paretocosmos.runs.provenance import get_provenance

SEED = 1
MANY = 10_000
LEAST = 15  # calls of a timing, however long they take
PACKAGES = ("onnx", "onnxscript", "onnxruntime")
PROBLEMS = {"adult": 5, "multi_digits": 2}  # and epochs: speed does not depend on the weights


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each timing, about")
    parser.add_argument(
        "--threads", type=int, nargs="+", default=[1], help="of both; several in turn"
    )
    parser.add_argument("--out", type=Path, help="where the JSON goes")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", BenchmarkWarning)
    results: dict[str, Any] = {
        "seed": SEED,
        "seconds": arguments.seconds,
        "load": os.getloadavg()[0],  # of the machine before it began
    }
    for problem, epochs in PROBLEMS.items():
        with tempfile.TemporaryDirectory() as folder:
            run = fit(
                problem,
                preset="paper",
                epochs=epochs,
                seed=SEED,
                device="cpu",
                out=Path(folder) / "run",
            )
            exported = export(run)
            results[problem] = {
                "epochs": epochs,
                "difference": exported.difference,
                "timings": [
                    measured(run, exported, threads=threads, seconds=arguments.seconds, **sizes)
                    for threads in arguments.threads
                    for sizes in (
                        {"rows": 1, "preferences": 1},
                        {"rows": MANY, "preferences": 1},
                        {"rows": MANY, "preferences": MANY},
                    )
                ],
            }
        for one in results[problem]["timings"]:
            print(
                f"{problem}: {one['rows']:>6} rows, {one['preferences']:>6} preferences, "
                f"{one['threads']} threads: onnxruntime {one['onnxruntime_ms']:.3f} ms, "
                f"PyTorch {one['torch_ms']:.3f} ms, ratio {one['ratio']:.2f}, "
                f"difference {one['difference']:.1e}"
            )
    results |= get_provenance(torch.device("cpu"))
    results["versions"] |= {package: version(package) for package in PACKAGES}
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(results, indent=1) + "\n")


def measured(
    run: Run, exported: Exported, *, rows: int, preferences: int, threads: int, seconds: float
) -> dict[str, Any]:
    """Both on the same rows, in turns."""
    plan = plan_export(run, MIDDLE)
    generator = torch.Generator().manual_seed(SEED)
    x = draw_rows(rows, plan.row, run.table, generator)
    rays = torch.rand(preferences, plan.objectives, generator=generator)
    rays /= rays.sum(dim=1, keepdim=True)
    calls = (in_onnxruntime(exported, x, rays, threads), in_torch(plan.network, x, rays))
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        outputs = [call() for call in calls for _ in range(3)][2::3]
        times: list[list[float]] = [[], []]
        ends = time.perf_counter() + seconds
        while time.perf_counter() < ends or len(times[0]) < LEAST:
            for call, spent in zip(calls, times, strict=True):
                started = time.perf_counter()
                call()
                spent.append(time.perf_counter() - started)
    finally:
        torch.set_num_threads(before)
    ours, theirs = (statistics.median(spent) for spent in times)
    # decisions differ where rounding makes a probability cross the threshold
    pairs = [pair for pair in zip(*outputs, strict=True) if pair[0].dtype.kind == "f"]
    return {
        "rows": rows,
        "preferences": preferences,
        "threads": threads,
        "calls": len(times[0]),
        "onnxruntime_ms": 1e3 * ours,
        "torch_ms": 1e3 * theirs,
        "ratio": ours / theirs,
        "difference": max(compute_relative_difference(one, other) for one, other in pairs),
    }


def in_onnxruntime(
    exported: Exported, x: Tensor, rays: Tensor, threads: int
) -> Callable[[], list[np.ndarray[Any, Any]]]:
    """The file, called on arrays."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(str(exported.path), options)
    given = {"x": x.numpy(), "preference": rays.numpy()}

    def call() -> list[np.ndarray[Any, Any]]:
        found: list[np.ndarray[Any, Any]] = session.run(None, given)
        return found

    return call


def in_torch(
    network: ExportedNetwork, x: Tensor, rays: Tensor
) -> Callable[[], list[np.ndarray[Any, Any]]]:
    """The network the file was made of, called on tensors."""

    def call() -> list[np.ndarray[Any, Any]]:
        with torch.inference_mode():
            return [output.numpy() for output in network(x, rays)]

    return call


if __name__ == "__main__":
    main()
