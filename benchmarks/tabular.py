"""`python -m benchmarks.tabular`: Adult on this machine, ours against the textbook loop.

Step, whole training and evaluation, timed in turns in one process, so that a noisy machine is
noisy for both. Prints a table and, with `--out FILE`, writes the numbers as JSON.
"""

import argparse
import json
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks import textbook
from paretocosmos import evaluate, even_rays, fit, hypervolume, load_problem
from paretocosmos.errors import BenchmarkWarning
from paretocosmos.problems import Problem
from paretocosmos.runs.provenance import get_provenance

Tensors = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="repetitions; medians are reported")
    parser.add_argument("--epochs", type=int, default=50, help="epochs of the whole training")
    parser.add_argument("--out", type=Path, help="write the numbers here as JSON")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", BenchmarkWarning)
    problem = load_problem("adult", protocol="paper")
    results = {
        "problem": "adult",
        "rounds": arguments.rounds,
        "epochs": arguments.epochs,
        **measure(problem, arguments.rounds, arguments.epochs),
        **get_provenance(torch.device("cpu")),
    }
    show(results)
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(results, indent=1) + "\n")


def measure(problem: Problem, rounds: int, epochs: int) -> dict[str, Any]:
    """Medians of `rounds` turns of everything."""
    train, test = tensors(problem, "train"), tensors(problem, "test")
    steps = -(-len(train[0]) // 256)
    torch.manual_seed(1)
    network = textbook.Network(train[0].shape[1], 2)
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-3)
    batches = textbook.loader(train, shuffle=True)
    rays = even_rays(25, 2)
    with tempfile.TemporaryDirectory() as folder:
        runs = (Path(folder) / str(number) for number in range(10_000))
        model = fit(problem, preset="paper", epochs=1, out=next(runs)).model
        times: dict[str, list[float]] = {
            name: []
            for name in (
                "step_textbook",
                "step_textbook_one_thread",
                "step_ours",
                "sweep_textbook",
                "sweep_ours",
            )
        }
        for _ in range(rounds):
            epoch = partial(one_epoch, network, optimiser, batches)
            times["step_textbook"].append(clock(epoch) / steps)
            threads = torch.get_num_threads()
            torch.set_num_threads(1)
            times["step_textbook_one_thread"].append(clock(epoch) / steps)
            torch.set_num_threads(threads)
            # five epochs of ours are about as long as one of theirs; the first pays for tracing
            run = fit(
                problem, preset="paper", epochs=6, out=next(runs), settings={"evaluate_every": 1}
            )
            first, *_, last = (e["seconds_training"] for e in run.record["evaluations"])
            times["step_ours"].append((last - first) / 5 / steps)
            test_batches = textbook.loader(test, shuffle=False)
            action = partial(textbook.evaluate, network, test_batches, rays)
            times["sweep_textbook"].append(clock(action))
            times["sweep_ours"].append(clock(lambda: evaluate(model, problem, rays=rays)))
        whole_textbook, front = textbook_training(problem, epochs)
        started = time.perf_counter()
        run = fit(problem, preset="paper", epochs=epochs, out=next(runs))
        whole_ours = time.perf_counter() - started
    median = {name: statistics.median(values) for name, values in times.items()}
    return {
        "seconds": median | {"training_textbook": whole_textbook, "training_ours": whole_ours},
        "ratio": {
            "step": median["step_textbook"] / median["step_ours"],
            "training": whole_textbook / whole_ours,
            "evaluation": median["sweep_textbook"] / median["sweep_ours"],
        },
        "hypervolume": {"textbook": hypervolume(front, (2, 2)), "ours": run.hypervolume},
    }


def textbook_training(problem: Problem, epochs: int) -> tuple[float, list[tuple[float, float]]]:
    """A whole training, validated every five epochs; its time and its best epoch's test front."""
    train, val, test = (tensors(problem, split) for split in ("train", "val", "test"))
    rays = even_rays(25, 2)
    started = time.perf_counter()
    torch.manual_seed(1)
    network = textbook.Network(train[0].shape[1], 2)
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-3)
    batches = textbook.loader(train, shuffle=True)
    val_batches, test_batches = (textbook.loader(part, shuffle=False) for part in (val, test))
    best, front = -1.0, [(0.0, 0.0)]
    for epoch in range(1, epochs + 1):
        one_epoch(network, optimiser, batches)
        if epoch % 5 == 0 or epoch == epochs:
            reached = hypervolume(textbook.evaluate(network, val_batches, rays), (2, 2))
            if reached > best:
                best, front = reached, textbook.evaluate(network, test_batches, rays)
    return time.perf_counter() - started, front


def one_epoch(network: textbook.Network, optimiser: Any, batches: Any) -> None:
    """One epoch of the textbook loop."""
    for _ in textbook.train_epoch(network, optimiser, batches):
        pass


def tensors(problem: Problem, split: Any) -> Tensors:
    """A split as the textbook loop takes it."""
    batch = problem.split(split)
    assert isinstance(batch.inputs, torch.Tensor)
    return batch.inputs, batch.targets["label"], batch.targets["sensitive"]


def clock(action: Callable[[], object]) -> float:
    """Seconds an action takes."""
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def show(results: dict[str, Any]) -> None:
    """The table."""
    seconds, ratio = results["seconds"], results["ratio"]
    print(f"Adult, {results['machine']['threads']} threads, torch {results['versions']['torch']}")
    print(f"{'':24}{'textbook':>12}{'ours':>12}{'ratio':>9}")
    for label, key, unit, scale in (
        ("training step", "step", "ms", 1e3),
        (f"training, {results['epochs']} epochs", "training", "s", 1.0),
        ("25 rays on test", "sweep", "ms", 1e3),
    ):
        theirs, ours = seconds[f"{key}_textbook"] * scale, seconds[f"{key}_ours"] * scale
        name = "evaluation" if key == "sweep" else key
        print(f"{label:24}{theirs:9.2f} {unit:2}{ours:9.2f} {unit:2}{ratio[name]:8.1f}x")
    reached = results["hypervolume"]
    print(f"{'test hypervolume':24}{reached['textbook']:9.4f}   {reached['ours']:9.4f}")


if __name__ == "__main__":
    main()
