"""`python -m benchmarks.multi_mnist`: the paper's LeNet on this CPU, ours and the textbook loop.

As many images as Multi-MNIST has, of their size, with random pixels: time does not depend on what
they show, so it runs without any data. Ours and theirs are timed in turns, each in a process of its
own, as they are used: a training of ours also teaches the process's allocator to keep its memory,
by which a neighbour would profit. Prints a table; `--out FILE` writes the numbers as JSON.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from benchmarks import textbook_images as textbook
from benchmarks.random_images import random_images
from benchmarks.tabular import clock
from paretocosmos import evaluate, even_rays, fit
from paretocosmos.problems import Problem
from paretocosmos.runs.provenance import get_provenance

BATCHES = 422  # of an epoch of Multi-MNIST
STEPS = 60  # of the textbook loop in a turn


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="repetitions; medians are reported")
    parser.add_argument("--out", type=Path, help="write the numbers here as JSON")
    parser.add_argument("--part", choices=PARTS, help="time one part alone and print it")
    arguments = parser.parse_args()
    if arguments.part is not None:
        print(json.dumps(PARTS[arguments.part]()))
        return
    turns = [{part: alone(part) for part in PARTS} for _ in range(arguments.rounds)]
    seconds = {
        name: statistics.median(turn[part][key] for turn in turns)
        for name, part, key in (
            ("step_textbook", "theirs", "step"),
            ("step_ours", "ours", "step"),
            ("sweep_textbook", "theirs", "sweep"),
            ("sweep_ours", "ours", "sweep"),
        )
    }
    two, ten = (statistics.median(t["objectives"][count] for t in turns) for count in ("2", "10"))
    results = {
        "problem": "random images, 36 x 36",
        "batch": 256,
        "rounds": arguments.rounds,
        "engine": turns[0]["ours"]["engine"],
        "seconds": seconds,
        "ratio": {
            "step": seconds["step_textbook"] / seconds["step_ours"],
            "evaluation": seconds["sweep_textbook"] / seconds["sweep_ours"],
        },
        "objectives": {"two": two, "ten": ten, "ratio": ten / two},
        **get_provenance(torch.device("cpu")),
    }
    show(results)
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(results, indent=1) + "\n")


def alone(part: str) -> dict[str, Any]:
    """One part in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.multi_mnist", "--part", part]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def theirs() -> dict[str, Any]:
    """The textbook loop: a step, and a front."""
    problem = random_images(2, batches=BATCHES)
    train, test = (problem.split(name) for name in ("train", "test"))
    assert isinstance(train.inputs, torch.Tensor)
    assert isinstance(test.inputs, torch.Tensor)
    torch.manual_seed(1)
    network = textbook.Network(2)
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-3)
    batches = textbook.loader(train.inputs, list(train.targets.values()), shuffle=True)
    few = textbook.loader(test.inputs, list(test.targets.values()), shuffle=False)

    def some(steps: int) -> None:
        for _ in islice(textbook.train_epoch(network, optimiser, batches), steps):
            pass

    some(5)
    step = clock(lambda: some(STEPS)) / STEPS
    return {"step": step, "sweep": clock(lambda: textbook.evaluate(network, few, even_rays(25, 2)))}


def ours() -> dict[str, Any]:
    """The same through `fit` and `evaluate`."""
    problem = random_images(2, batches=BATCHES)
    step, model, engine = trained(problem)
    evaluate(model, problem, rays=25)
    sweep = clock(lambda: evaluate(model, problem, rays=25))
    return {"step": step, "sweep": sweep, "engine": engine}


def objectives() -> dict[str, float]:
    """The step with two objectives and with ten."""
    return {str(count): trained(random_images(count, batches=60))[0] for count in (2, 10)}


PARTS: dict[str, Callable[[], dict[str, Any]]] = {
    "theirs": theirs,
    "ours": ours,
    "objectives": objectives,
}


def trained(problem: Problem) -> tuple[float, torch.nn.Module, str]:
    """Seconds of our step, from the second of two epochs; the model, and the engine."""
    with tempfile.TemporaryDirectory() as folder:
        settings = {"evaluate_every": 1, "rays": 2}
        run = fit(
            problem,
            preset="paper",
            epochs=2,
            device="cpu",
            out=Path(folder) / "run",
            settings=settings,
        )
    first, second = (e["seconds_training"] for e in run.record["evaluations"])
    steps = len(problem.split("train")) / 256
    return (second - first) / steps, run.model, run.record["engine"]


def show(results: dict[str, Any]) -> None:
    """The table."""
    seconds, ratio = results["seconds"], results["ratio"]
    print(
        f"LeNet, batch 256, {results['machine']['threads']} threads, "
        f"torch {results['versions']['torch']}, engine {results['engine']}"
    )
    print(f"{'':24}{'textbook':>12}{'ours':>12}{'ratio':>9}")
    for label, key, name in (
        ("training step", "step", "step"),
        ("25 rays on 512 images", "sweep", "evaluation"),
    ):
        theirs, ours = seconds[f"{key}_textbook"] * 1e3, seconds[f"{key}_ours"] * 1e3
        print(f"{label:24}{theirs:9.1f} ms{ours:9.1f} ms{ratio[name]:8.1f}x")
    print(f"ten objectives take {results['objectives']['ratio']:.3f} times the step of two")


if __name__ == "__main__":
    main()
