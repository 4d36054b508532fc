"""`python -m benchmarks.efficientnet --out FILE`: what a step of EfficientNet-B4 costs on a GPU.

Random faces of 64 x 64 pixels that lie on the device. A single task without rays against COSMOS
with two and with ten objectives, in every engine: trials of one kind are timed in turns, so that
what the machine does beside them falls on all. Precisions, layouts and normalisations are compared
in the fastest engine. Prints a table and writes the numbers as JSON. `--tiny` shows on a CPU that
it runs.
"""

import argparse
import itertools
import json
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import transformers

from benchmarks._trial import EAGER_STEPS, SEED, STEPS, Kind, Trial
from paretocosmos.runs.provenance import get_provenance
from paretocosmos.runtime.device import on_capture_stream, seed_torch, set_precision

TASKS = {"single task": 1, "cosmos, 2": 2, "cosmos, 10": 10}  # and their objectives


def main() -> None:
    """Measure, print, write."""
    arguments = parsed()
    device = arguments.device
    results: dict[str, Any] = {
        "network": f"EfficientNet-{arguments.variant.upper()}, {arguments.side} x {arguments.side}",
        "weights": "random",
        "seed": SEED,
        "rounds": arguments.rounds,
        "cells": [],
        "ratios": [],
        "left_out": [],
        **get_provenance(device),
    }
    results["versions"]["transformers"] = transformers.__version__
    started = time.perf_counter()
    for kind, tasks in kinds(arguments):
        if time.perf_counter() - started > arguments.deadline:
            results["left_out"].append(str(kind))
            continue
        cells, ratios = measure(kind, tasks, arguments)
        results["cells"] += cells
        results["ratios"].append({"kind": str(kind), **ratios})
        results["seconds"] = time.perf_counter() - started
        # kept after each kind, so that what was measured is not lost with what was not
        write(results, arguments.out)
    results["against_the_first_engine"] = against_the_first(results["cells"], arguments.engines)
    write(results, arguments.out)
    if arguments.kernels and device.type == "cuda":
        results["kernels"] = kernels(arguments)
        write(results, arguments.out)
    show(results)


def parsed() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="write the numbers here as JSON")
    parser.add_argument("--variant", default="b4")
    parser.add_argument("--side", type=int, default=64, help="of an image")
    parser.add_argument("--tasks", type=listed, default=["1", "2", "10"], help="their objectives")
    parser.add_argument("--batch-sizes", type=listed, default=["32", "256"])
    parser.add_argument("--engines", type=listed, default=["captured", "eager"])
    parser.add_argument(
        "--precisions", type=listed, default=["tf32"], help="the first in every engine"
    )
    parser.add_argument("--layouts", type=listed, default=["nchw"], help="likewise; nchw, nhwc")
    parser.add_argument("--norms", type=listed, default=["group"], help="likewise; group, frozen")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--deadline", type=float, default=120.0, help="seconds to begin a kind in")
    parser.add_argument("--kernels", action="store_true", help="which kernels take the time")
    parser.add_argument("--tiny", action="store_true", help="B0 on a few pixels, to see it run")
    arguments = parser.parse_args()
    cuda = torch.cuda.is_available()
    if arguments.tiny:
        arguments.variant, arguments.side, arguments.rounds = "b0", 32, 2
        arguments.batch_sizes, arguments.tasks = ["4"], ["1", "2"]
        arguments.engines = ["captured", "eager"] if cuda else ["traced", "eager"]
    elif not cuda:
        raise SystemExit("no CUDA device here; `--tiny` runs on a CPU")
    arguments.device = torch.device("cuda" if cuda else "cpu")
    return arguments


def listed(text: str) -> list[str]:
    """What commas part."""
    return text.split(",")


def trial(kind: Kind, objectives: int, arguments: argparse.Namespace) -> Trial:
    """A trial as the command line wants it."""
    return Trial(
        kind,
        objectives,
        variant=arguments.variant,
        side=arguments.side,
        device=arguments.device,
        steps=2 if arguments.tiny else EAGER_STEPS if kind.engine == "eager" else STEPS,
    )


def kinds(arguments: argparse.Namespace) -> Iterator[tuple[Kind, list[str]]]:
    """What to measure, the most telling first: engines with every task, then their variations."""
    tasks = [name for name, count in TASKS.items() if str(count) in arguments.tasks]
    sizes = [int(size) for size in arguments.batch_sizes]
    plain = {
        "precision": arguments.precisions[0],
        "layout": arguments.layouts[0],
        "norm": arguments.norms[0],
    }
    for size, engine in itertools.product(sizes, arguments.engines):
        if engine != "compiled":
            yield Kind(engine, size, **plain), tasks
    others = [
        *({"precision": other} for other in arguments.precisions[1:]),
        *({"layout": other} for other in arguments.layouts[1:]),
        *({"norm": other} for other in arguments.norms[1:]),
    ]
    if len(arguments.layouts) > 1 and "bf16" in arguments.precisions:
        others.append({"precision": "bf16", "layout": arguments.layouts[1]})
    for size, other in itertools.product(sizes, others):
        yield Kind(arguments.engines[0], size, **plain | other), tasks[:2]
    if "compiled" in arguments.engines:  # minutes of compiling, for the size that gains by it
        yield Kind("compiled", sizes[0], **plain), tasks[:2]


def measure(
    kind: Kind, tasks: list[str], arguments: argparse.Namespace
) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """Every task of one kind, in turns."""
    if kind.engine == "compiled":
        from torch._inductor import config

        config.fallback_random = True  # torch's own draws, as in the eager step it is compared with
    device = arguments.device
    with (
        seed_torch(SEED, device, deterministic=False),
        set_precision(kind.precision),
        on_capture_stream(device),
    ):
        trials = {task: trial(kind, TASKS[task], arguments) for task in tasks}
        for _, one in itertools.product(range(arguments.rounds), trials.values()):
            one.time()
    lead = trials[tasks[0]]
    cells = [{"task": task, **one.numbers()} for task, one in trials.items()]
    ratios = {
        f"{task} / {tasks[0]}": statistics.median(
            ours / theirs for ours, theirs in zip(one.seconds, lead.seconds, strict=True)
        )
        for task, one in list(trials.items())[1:]
    }
    print(kind, json.dumps([f"{c['step'] * 1e3:.2f} ms {c['really']}" for c in cells]), flush=True)
    return cells, ratios


def against_the_first(cells: list[dict[str, Any]], engines: list[str]) -> list[dict[str, Any]]:
    """How many times as long a step takes in the other engines."""

    def same(one: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(one[name] for name in ("task", "batch_size", "precision", "layout", "norm"))

    first = {same(cell): cell["step"] for cell in cells if cell["engine"] == engines[0]}
    return [
        {"task": c["task"], "batch_size": c["batch_size"], "ratio": c["step"] / first[same(c)]}
        | {"engines": f"{c['engine']} / {engines[0]}"}
        for c in cells
        if c["engine"] != engines[0] and same(c) in first
    ]


def kernels(arguments: argparse.Namespace) -> dict[str, Any]:
    """The kernels of an eager step of COSMOS, by the time they take on the device."""
    kind = Kind("eager", int(arguments.batch_sizes[0]), arguments.precisions[0])
    with seed_torch(SEED, arguments.device, deterministic=False), set_precision(kind.precision):
        one = trial(kind, 2, arguments)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            one.time()
    # without what the CPU did to launch them
    events = [event for event in profile.key_averages() if event.self_device_time_total > 0]
    found = sorted(events, key=lambda event: -event.self_device_time_total)
    return {
        "kind": str(kind),
        "launches_per_step": sum(event.count for event in found) / one.steps,
        "device_seconds_per_step": sum(e.self_device_time_total for e in found) / one.steps / 1e6,
        "largest": [
            {
                "name": event.key[:120],
                "launches_per_step": event.count / one.steps,
                "microseconds_per_step": event.self_device_time_total / one.steps,
            }
            for event in found[:20]
        ],
    }


def write(results: dict[str, Any], out: Path | None) -> None:
    """The numbers so far."""
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(results, indent=1) + "\n")


def show(results: dict[str, Any]) -> None:
    """The table."""
    print(f"{results['network']}, {results['machine']['device']}")
    columns = ("step ms", "± ms", "images/s", "prepare s", "peak MB", "parameters", "added")
    print(f"{'':52}" + "".join(f"{name:>12}" for name in columns))
    for cell in results["cells"]:
        kind = Kind(*(cell[name] for name in Kind.__dataclass_fields__))
        print(
            f"{cell['task']:12}{kind!s:40}{cell['step'] * 1e3:12.2f}"
            f"{(cell['slowest'] - cell['fastest']) / 2 * 1e3:12.2f}"
            f"{cell['images_per_second']:12.0f}"
            f"{cell['preparing']:12.1f}{cell['peak_memory'] / 1e6:12.0f}{cell['parameters']:12,}"
            f"{cell['share_added']:12.4%}"
        )
    for ratio in results["ratios"]:
        told = ", ".join(f"{name} {value:.3f}x" for name, value in ratio.items() if name != "kind")
        print(f"{ratio['kind']}: {told}")
    for row in results["against_the_first_engine"]:
        told = f"{row['task']}, batch {row['batch_size']}, {row['engines']}"
        print(f"{told}: {row['ratio']:.2f}x")
    if results["left_out"]:
        print(f"left out, past the deadline: {'; '.join(results['left_out'])}")


if __name__ == "__main__":
    main()
