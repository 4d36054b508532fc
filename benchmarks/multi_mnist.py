"""`python -m benchmarks.multi_mnist`: the paper's LeNet on this CPU, ours and the textbook loop.

As many images as Multi-MNIST has, of their size, with random pixels: time does not depend on what
they show, so it runs without any data. Step and evaluation are timed in turns in one process, so that a noisy machine is
noisy for both. Prints a table and, with `--out FILE`, writes the numbers as JSON.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from benchmarks import textbook_images as textbook
from benchmarks.random_images import random_images
from paretocosmos import evaluate, even_rays, fit
from paretocosmos.problems import Problem
from paretocosmos.provenance import provenance

BATCHES = 422  # of an epoch of Multi-MNIST
STEPS = 60  # of the textbook loop in a turn


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="repetitions; medians are reported")
    parser.add_argument("--out", type=Path, help="write the numbers here as JSON")
    arguments = parser.parse_args()
    results = {
        "problem": "random images, 36 x 36",
        "batch": 256,
        "rounds": arguments.rounds,
        **measure(random_images(2, batches=BATCHES), arguments.rounds),
        "objectives": objectives(arguments.rounds),
        **provenance(torch.device("cpu")),
    }
    show(results)
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(results, indent=1) + "\n")


def measure(problem: Problem, rounds: int) -> dict[str, Any]:
    """Medians of `rounds` turns of a step and of a front, ours and theirs."""
    train, test = (problem.split(name) for name in ("train", "test"))
    assert isinstance(train.inputs, torch.Tensor)
    assert isinstance(test.inputs, torch.Tensor)
    torch.manual_seed(1)
    network = textbook.Network(2)
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-3)
    batches = textbook.loader(train.inputs, list(train.targets.values()), shuffle=True)
    few = textbook.loader(test.inputs, list(test.targets.values()), shuffle=False)
    rays = even_rays(25, 2)
    names = ("step_textbook", "step_ours", "sweep_textbook", "sweep_ours")
    times: dict[str, list[float]] = {name: [] for name in names}

    def epoch() -> None:
        for _ in islice(textbook.train_epoch(network, optimiser, batches), STEPS):
            pass

    epoch()
    for _ in range(rounds):
        times["step_textbook"].append(clock(epoch) / STEPS)
        seconds, model, engine = step(problem)
        times["step_ours"].append(seconds)
        times["sweep_textbook"].append(clock(partial(textbook.evaluate, network, few, rays)))
        times["sweep_ours"].append(clock(lambda m=model: evaluate(m, problem, rays=rays)))  # type: ignore[misc]
    median = {name: statistics.median(values) for name, values in times.items()}
    return {
        "engine": engine,
        "seconds": median,
        "ratio": {
            "step": median["step_textbook"] / median["step_ours"],
            "evaluation": median["sweep_textbook"] / median["sweep_ours"],
        },
    }


def objectives(rounds: int) -> dict[str, float]:
    """The step with ten objectives and with two, in turns."""
    problems = {count: random_images(count, batches=40) for count in (2, 10)}
    times: dict[int, list[float]] = {2: [], 10: []}
    for _ in range(rounds):
        for count, problem in problems.items():
            times[count].append(step(problem)[0])
    two, ten = (statistics.median(times[count]) for count in (2, 10))
    return {"two": two, "ten": ten, "ratio": ten / two}


def step(problem: Problem) -> tuple[float, torch.nn.Module, str]:
    """Seconds of our step, from the second of two epochs; the model, and the engine."""
    with tempfile.TemporaryDirectory() as folder:
        settings = {"evaluate_every": 1, "rays": 2}
        run = fit(problem, epochs=2, device="cpu", out=Path(folder) / "run", settings=settings)
    first, second = (e["seconds_training"] for e in run.record["evaluations"])
    steps = len(problem.split("train")) / 256
    return (second - first) / steps, run.model, run.record["engine"]


def clock(action: Callable[[], object]) -> float:
    """Seconds an action takes."""
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


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
