"""`python -m benchmarks.gpu --data DIR`: Multi-MNIST on a GPU, every engine against the textbook.

Step and epoch time, samples a second, peak memory, evaluation, several seeds at once, ten
objectives against two, and the roofline: what the step must compute and move, and how fast this
card does either. Prints a table and, with `--out FILE`, writes the numbers as JSON.
"""

import argparse
import gc
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

from benchmarks import textbook_images as textbook
from benchmarks.random_images import random_images
from paretocosmos import evaluate, even_rays, fit, load_problem
from paretocosmos.problems import Problem
from paretocosmos.runs.provenance import get_provenance
from paretocosmos.training.progress import Progress

SEEDS = (1, 2, 3, 4, 42)  # the paper's
EPOCHS = 4  # the first warms up, the last is validated


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="where mnist/ lies; else the usual places")
    parser.add_argument("--out", type=Path, help="write the numbers here as JSON")
    parser.add_argument("--no-compile", action="store_true", help="leave the compiled engine out")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("no CUDA device here; `make bench` measures a CPU")
    problem = load_problem("multi_mnist", data=arguments.data)
    results: dict[str, Any] = {
        "problem": "multi_mnist",
        "roofline": roofline(),
        "textbook": theirs(problem),
        "plain": plain(problem),
        "engines": {},
    }
    trials: list[tuple[str, str, str, tuple[int, ...]]] = [
        ("eager", "eager", "tf32", (1,)),
        ("traced", "traced", "tf32", (1,)),
        ("captured", "captured", "tf32", (1,)),
        ("captured fp32", "captured", "fp32", (1,)),
        ("captured bf16", "captured", "bf16", (1,)),
        ("captured, 5 seeds", "captured", "tf32", SEEDS),
    ]
    if not arguments.no_compile:
        trials.append(("compiled", "compiled", "tf32", (1,)))
    for label, engine, precision, seeds in trials:
        results["engines"][label] = ours(problem, engine, precision, seeds)
        print(label, json.dumps(results["engines"][label]), flush=True)
    results["objectives"] = {
        str(count): ours(random_images(count, batches=200), "captured", "tf32", (1,))
        for count in (2, 10)
    }
    results |= get_provenance(torch.device("cuda"))
    show(results)
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(results, indent=1) + "\n")


def ours(problem: Problem, engine: str, precision: str, seeds: tuple[int, ...]) -> dict[str, Any]:
    """One engine: seconds of a step for all seeds together, and what it cost to get there.

    Memory is counted up to the last epoch's validation, whose chunks are as large as is fast, and
    above what was there before, such as the library's workspaces.
    """
    seen: list[tuple[float, int]] = []

    def look(at: Progress) -> None:
        seen.append((at.seconds, torch.cuda.max_memory_allocated() - before))

    forget()
    before = torch.cuda.memory_allocated()
    with tempfile.TemporaryDirectory() as folder:
        runs = fit(
            problem,
            preset="paper",
            epochs=EPOCHS,
            seeds=seeds,
            engine=engine,
            precision=precision,
            device="cuda",
            out=Path(folder) / "runs",
            settings={"evaluate_every": EPOCHS},
            progress=look,
        )
        model, record = runs[0].model, runs[0].record
    (first, _), *_, (_, peak), (last, _) = seen
    samples = len(problem.split("train"))
    steps = -(-samples // 256)
    epoch = (last - first) / (EPOCHS - 1)
    sweep = statistics.median(
        clock(lambda: evaluate(model, problem, split="val", rays=25)) for _ in range(3)
    )
    return {
        "engine": record["engine"],
        "seeds": len(seeds),
        "together": record["seeds_together"],
        "step": epoch / steps,
        "epoch": epoch,
        "hundred_epochs": epoch * 100,
        "samples_per_second": samples * len(seeds) / epoch,
        "preparing": record["seconds_preparing"],
        "evaluation": sweep,
        "peak_memory": peak,
    }


def theirs(problem: Problem) -> dict[str, Any]:
    """The textbook loop: batches from the CPU, maps for each sample, the loss read back."""
    train, val = (tensors(problem, split) for split in ("train", "val"))
    torch.manual_seed(1)
    network = textbook.Network(2).cuda()
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-3)
    batches = textbook.loader(*train, shuffle=True)

    def some(steps: int) -> None:
        for _, _ in zip(
            range(steps),
            textbook.train_epoch(network, optimiser, batches, device="cuda"),
            strict=False,
        ):
            pass

    some(20)
    torch.cuda.reset_peak_memory_stats()
    step = clock(lambda: some(211)) / 211  # half an epoch
    peak = torch.cuda.max_memory_allocated()
    batches = textbook.loader(*val, shuffle=False)
    rays = even_rays(25, 2)
    sweep = clock(lambda: textbook.evaluate(network, batches, rays[:2], device="cuda")) * 25 / 2
    samples = len(train[0])
    epoch = step * -(-samples // 256)
    return {
        "step": step,
        "epoch": epoch,
        "hundred_epochs": epoch * 100,
        "samples_per_second": samples / epoch,
        "evaluation": sweep,
        "peak_memory": peak,
    }


def plain(problem: Problem) -> dict[str, Any]:
    """The same LeNet without rays, the plain sum of two losses, the same bytes on the device."""
    images, labels = tensors(problem, "train")
    forget()
    before = torch.cuda.memory_allocated()
    images, labels = images.cuda(), [label.cuda() for label in labels]
    model = textbook.LeNet(1, 2).cuda()
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)

    def step() -> None:
        index = torch.randint(0, len(images), (256,), device="cuda")
        outputs = model(images[index].float() / 255)
        pairs = zip(outputs, labels, strict=True)
        loss = torch.stack([F.cross_entropy(o, label[index]) for o, label in pairs]).sum()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

    def some() -> None:
        for _ in range(100):
            step()

    some()
    seconds = clock(some) / 100
    peak = torch.cuda.max_memory_allocated() - before
    return {"step": seconds, "peak_memory": peak}


def roofline() -> dict[str, Any]:
    """What a step of the LeNet must do, counted, and how fast this card does it, measured."""
    forward = {
        "conv1": 32 * 32 * 10 * 25,
        "conv2": 12 * 12 * 20 * 250,
        "hidden": 720 * 50,
        "heads": 50 * 20,
    }
    # backward: a product for the weights and one for the inputs, which the first layer spares
    multiply_adds = 3 * sum(forward.values()) - forward["conv1"]
    operations = 2 * 256 * multiply_adds
    # images in as bytes; what must cross a kernel's border: two pooled maps with their choices,
    # written, read, and their gradients likewise; parameters, gradients and moments
    maps = 10 * 16 * 16 + 20 * 6 * 6
    moved = 256 * (36 * 36 + maps * (4 + 1) * 2 + maps * 4 * 2) + 43_058 * 4 * 7
    size = 8192
    rates = {}
    for name, dtype, tf32 in (
        ("fp32", torch.float32, False),
        ("tf32", torch.float32, True),
        ("bf16", torch.bfloat16, True),
    ):
        torch.backends.cuda.matmul.allow_tf32 = tf32
        a, b = (torch.randn(size, size, device="cuda", dtype=dtype) for _ in range(2))
        a @ b
        seconds = statistics.median(clock(partial(torch.mm, a, b)) for _ in range(5))
        rates[name] = 2 * size**3 / seconds
    torch.backends.cuda.matmul.allow_tf32 = False
    source = torch.randn(2**30, device="cuda")
    target = torch.empty_like(source)
    target.copy_(source)
    copy = 8 * 2**30 / statistics.median(clock(lambda: target.copy_(source)) for _ in range(5))
    return {
        "operations_per_step": operations,
        "bytes_per_step": moved,
        "operations_per_second": rates,
        "bytes_per_second": copy,
        "floor_fp32": max(operations / rates["fp32"], moved / copy),
        "floor_tf32": max(operations / rates["tf32"], moved / copy),
    }


def forget() -> None:
    """Give back what earlier trials left behind, and count memory from here."""
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()


def tensors(problem: Problem, split: Any) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """A split as the textbook loop takes it."""
    batch = problem.split(split)
    assert isinstance(batch.inputs, torch.Tensor)
    return batch.inputs, list(batch.targets.values())


def clock(action: Callable[[], object]) -> float:
    """Seconds an action takes, the device included."""
    torch.cuda.synchronize()
    started = time.perf_counter()
    action()
    torch.cuda.synchronize()
    return time.perf_counter() - started


def show(results: dict[str, Any]) -> None:
    """The tables."""
    print(f"Multi-MNIST, batch 256, {results['machine']['device']}")
    columns = ("step us", "epoch s", "100 ep s", "samples/s", "prepare s", "25 rays ms", "peak MB")
    print(f"{'':20}" + "".join(f"{name:>12}" for name in columns))
    rows = {"textbook": results["textbook"], **results["engines"]}
    for name, row in rows.items():
        print(
            f"{name:20}{row['step'] * 1e6:12.0f}{row['epoch']:12.3f}{row['hundred_epochs']:12.1f}"
            f"{row['samples_per_second']:12.3g}{row.get('preparing', 0):12.1f}"
            f"{row['evaluation'] * 1e3:12.0f}{row['peak_memory'] / 1e6:12.0f}"
        )
    plain, roof = results["plain"], results["roofline"]
    print(f"plain LeNet: {plain['step'] * 1e6:.0f} us a step, {plain['peak_memory'] / 1e6:.0f} MB")
    ten, two = (results["objectives"][count]["step"] for count in ("10", "2"))
    print(f"10 objectives against 2: {ten * 1e6:.0f} and {two * 1e6:.0f} us, {ten / two:.3f}x")
    print(
        f"roofline: {roof['operations_per_step'] / 1e9:.2f} GFLOP and "
        f"{roof['bytes_per_step'] / 1e6:.1f} MB a step; floor {roof['floor_fp32'] * 1e6:.0f} us in "
        f"fp32, {roof['floor_tf32'] * 1e6:.0f} us in tf32"
    )


if __name__ == "__main__":
    main()
