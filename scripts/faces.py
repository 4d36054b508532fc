"""What the pages say of faces: results/efficientnet.json, loader.json, processes.json and celeba.json."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parents[1] / "results"


def load(name: str) -> Any:
    """A committed result."""
    return json.loads((RESULTS / name).read_text(encoding="utf-8"))


def ratio(kind: str, task: str) -> float:
    """A task's step relative to the single task's."""
    (found,) = [r for r in load("efficientnet.json")["ratios"] if r["kind"] == kind]
    return float(found[f"{task} / single task"])


def step(task: str, engine: str, size: int) -> Any:
    """A cell of the step's table."""
    cells = load("efficientnet.json")["cells"]
    (found,) = [
        c
        for c in cells
        if (c["task"], c["engine"], c["batch_size"], c["precision"], c["layout"])
        == (task, engine, size, "tf32", "nchw")
    ]
    return found


def faces_short() -> Iterator[str]:
    """For the README: what conditioning costs a deep network."""
    two, ten = (ratio("captured, 32, tf32, nchw, group", f"cosmos, {n}") for n in (2, 10))
    eager, captured = (step("cosmos, 2", engine, 32)["step"] for engine in ("eager", "captured"))
    added = step("cosmos, 2", "captured", 32)["share_added"]
    device = load("efficientnet.json")["machine"]["device"]
    yield (
        f"EfficientNet-B4, batch 32, on one {device}: a training step for the front of two tasks takes "
        f"{two:.3f} times that of a single task, of ten tasks {ten:.3f} times (the paper: 1.07); captured steps are "
        f"{eager / captured:.1f} times as fast as eager ones; conditioning adds {added:.3%} of weights "
        "([more](docs/results.md#faces-and-a-deep-network))."
    )


def steps_table() -> Iterator[str]:
    """Step times of EfficientNet-B4."""
    found = load("efficientnet.json")
    yield (
        f"`python -m benchmarks.efficientnet`: {found['network']}, random pictures, {found['machine']['device']}, tf32, "
        "group normalisation; trials of one kind in turns, medians."
    )
    yield ""
    yield "| engine, batch | single task | COSMOS, 2 tasks | COSMOS, 10 tasks | images/s, 2 tasks |"
    yield "|---|---|---|---|---|"
    for engine, size in (("captured", 32), ("captured", 256), ("eager", 32)):
        single = step("single task", engine, size)
        row = [f"{single['step'] * 1e3:.1f} ms"]
        for count in (2, 10):
            cell = step(f"cosmos, {count}", engine, size)
            times = ratio(f"{engine}, {size}, tf32, nchw, group", f"cosmos, {count}")
            row.append(f"{cell['step'] * 1e3:.1f} ms ({times:.3f} times)")
        row.append(f"{step('cosmos, 2', engine, size)['images_per_second']:,.0f}")
        yield f"| {engine}, {size} | {' | '.join(row)} |"
