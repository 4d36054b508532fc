"""`python -m benchmarks.reproducible --device cuda --out FILE`: are the bits the same?

A table and pairs of images, each trained twice with one seed, by the default and the eager engine,
and interrupted and resumed: the fronts and weights are compared byte by byte.
"""

import argparse
import json
import tempfile
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import torch

from paretocosmos import evaluate, fit, load_run
from paretocosmos.errors import BenchmarkWarning
from paretocosmos.runs.provenance import get_provenance
from paretocosmos.training.progress import Progress

EPOCHS = {"adult": 20, "multi_digits": 8}
FILES = ("front.json", "front_val.json", "model.safetensors")


class StopError(Exception):
    """Raised in the middle of a training."""


def main() -> None:
    """Train, compare, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, help="where the JSON goes")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", BenchmarkWarning)
    results: dict[str, Any] = {"protocol": "paper", "seed": 1, "problems": {}}
    for problem, epochs in EPOCHS.items():
        with tempfile.TemporaryDirectory() as folder:
            found = compare(problem, epochs, Path(folder), arguments.device)
        results["problems"][problem] = found
    results |= get_provenance(torch.device(arguments.device))
    print(json.dumps(results, indent=1))
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(results, indent=1) + "\n")


def compare(problem: str, epochs: int, folder: Path, device: str) -> dict[str, Any]:
    """What is equal to what."""
    train = partial(
        fit, problem, protocol="paper", epochs=epochs, device=device, deterministic=True
    )
    first = train(out=folder / "first")
    train(out=folder / "second")
    train(out=folder / "eager", engine="eager")
    try:
        train(out=folder / "resumed", progress=interrupt)
    except StopError:
        train(out=folder / "resumed", resume=True)
    run = load_run(folder / "first", device=device)
    again = evaluate(run.model, run.problem(), rays=len(run.front))
    return {
        "hypervolume": first.hypervolume,
        "engine": first.record["engine"],
        "seconds_training": first.record["seconds_training"],
        "identical": {
            "again": same(folder, "second"),
            "eager": same(folder, "eager"),
            "resumed": same(folder, "resumed"),
            "evaluated": bool((again.values == first.front.values).all()),
        },
    }


def interrupt(at: Progress) -> None:
    """Stop after seven epochs."""
    if at.epoch == 7:
        raise StopError


def same(folder: Path, other: str) -> bool:
    """Whether two runs left the same bytes."""
    return all(
        (folder / "first" / name).read_bytes() == (folder / other / name).read_bytes()
        for name in FILES
    )


if __name__ == "__main__":
    main()
