"""`python -m benchmarks.loader`: images a second, picked on the device and streamed from the host.

The images are random bytes in a memory-mapped file, 60,000 of 3 x 64 x 64, which has just been
written and so is read from memory, not from the disk. First the feeds alone, without any network;
then a LeNet trained on either, and the share of its time that it waits for data. Prints a table
and, with `--out FILE`, writes the numbers as JSON. `--tiny` does a little of it, on a CPU too.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

from paretocosmos import fit
from paretocosmos.evaluation import move_batch
from paretocosmos.objectives import CrossEntropy
from paretocosmos.problems.images.problem import HEADS, ImageProblem
from paretocosmos.runs.provenance import get_provenance
from paretocosmos.training.engine import BatchSource, InMemory, Streamed
from paretocosmos.types import Batch

SHAPE, CLASSES = (3, 64, 64), 10
SIZES = (32, 256)
EPOCHS = 2
WARM = 20  # batches that are not counted
FEEDS = ("resident", "streamed")


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="write the numbers here as JSON")
    parser.add_argument("--tiny", action="store_true", help="a little of it, on a CPU too")
    arguments = parser.parse_args()
    if not torch.cuda.is_available() and not arguments.tiny:
        raise SystemExit("no CUDA device here; `--tiny` does a little of it on a CPU")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    count, sizes = (640, SIZES[:1]) if arguments.tiny else (60_000, SIZES)
    with tempfile.TemporaryDirectory() as folder:
        problem = mapped_images(Path(folder) / "images.npy", count)
        results: dict[str, Any] = {
            "images": [count, *SHAPE],
            "bytes": count * int(np.prod(SHAPE)),
            "alone": {str(size): alone(problem, size, device) for size in sizes},
            "training": {str(size): training(problem, size, device) for size in sizes},
        }
    results |= get_provenance(device)
    show(results)
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(results, indent=1) + "\n")


def mapped_images(path: Path, count: int) -> ImageProblem:
    """Random images in a memory-mapped file, with two random labels each."""
    draw = np.random.default_rng(1)
    file = np.lib.format.open_memmap(path, mode="w+", dtype=np.uint8, shape=(count, *SHAPE))
    for start in range(0, count, 1000):
        file[start : start + 1000] = draw.integers(
            0, 256, (min(1000, count - start), *SHAPE), dtype=np.uint8
        )
    images = torch.from_numpy(file)
    labels = torch.from_numpy(draw.integers(0, CLASSES, (len(HEADS), count)))
    few = Batch(images[:256].clone(), dict(zip(HEADS, labels[:, :256].clone(), strict=True)))
    return ImageProblem(
        name="mapped",
        objectives=tuple(CrossEntropy(name=head, output=head, target=head) for head in HEADS),
        reference=(4.0, 4.0),
        input_shape=SHAPE,
        outputs=dict.fromkeys(HEADS, CLASSES),
        splits={
            "train": Batch(images, dict(zip(HEADS, labels, strict=True))),
            "val": few,
            "test": few,
        },
        images="random bytes",
        sha256="",
    )


def alone(problem: ImageProblem, size: int, device: torch.device) -> dict[str, Any]:
    """Batches as they come, and nothing done with them."""
    data, found = problem.split("train"), {}
    feeds: dict[str, BatchSource] = {
        "resident": InMemory(move_batch(data, device)),
        "streamed": Streamed(data, device, torch.float32),
    }
    for name, feed in feeds.items():
        pieces = torch.randperm(len(data)).to(feed.device).split(size)
        drain(feed, pieces[:WARM], device)
        seconds = drain(feed, pieces, device)
        found[name] = {"images_per_second": len(data) / seconds}
    return found


def drain(feed: BatchSource, pieces: Sequence[torch.Tensor], device: torch.device) -> float:
    """Seconds that all these batches take to be there."""
    started = time.perf_counter()
    with closing(feed.run(pieces)) as every:
        for given in every:
            feed.batch_at(given)
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - started


def training(problem: ImageProblem, size: int, device: torch.device) -> dict[str, Any]:
    """A LeNet on either feed, by the engine of this device."""
    found = {}
    for name in FEEDS:
        with (
            tempfile.TemporaryDirectory() as folder,
            patch(
                "paretocosmos.training.engine.fits_on_device",
                lambda *_, name=name, **__: name == "resident",
            ),
        ):
            run = fit(
                problem,
                preset="paper",
                epochs=EPOCHS,
                settings={"batch_size": size, "rays": 2, "evaluate_every": EPOCHS},
                device=str(device),
                out=Path(folder) / "run",
            )
        record = run.record
        found[name] = {
            "images_per_second": record["samples_per_second"],
            "share_waiting": record["share_waiting"],
            "peak_memory": record["peak_memory"],
            "engine": record["engine"],
            "data": record["data"],
        }
    return found


def show(results: dict[str, Any]) -> None:
    """The table."""
    print(f"{results['images'][0]:,} images of {SHAPE}, {results['machine']['device']}")
    columns = ("alone img/s", "train img/s", "waiting", "peak MB", "engine")
    print(f"{'':20}" + "".join(f"{name:>14}" for name in columns))
    for size, row in results["training"].items():
        for name, own in row.items():
            speed = results["alone"][size][name]["images_per_second"]
            print(
                f"{f'{name}, batch {size}':20}{speed:14,.0f}{own['images_per_second']:14,.0f}"
                f"{own['share_waiting']:14.1%}{own['peak_memory'] / 1e6:14.0f}{own['engine']:>14}"
            )


if __name__ == "__main__":
    main()
