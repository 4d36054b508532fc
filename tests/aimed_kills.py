"""Trains into a folder, killed at every write point in turn, and goes on: a script of test_saved.

A killed process runs nothing more, no `finally` either, so every training is a process of its own;
all are forked from one that has trained once and so need not import or warm up again.
"""

import itertools
import json
import os
import shutil
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from paretocosmos.errors import CheckpointWarning
from paretocosmos.saved import saved_in
from paretocosmos.training import fit

# in these every seed alone, even for one epoch, rounds otherwise than in a stack
SETTINGS: dict[str, Any] = {"hidden": (60, 25), "batch_size": 32, "evaluate_every": 2, "rays": 3}
RESULTS = ("front.json", "front_val.json", "model.safetensors")


def train(out: Path, seeds: list[int]) -> None:
    """Begin, or go on."""
    fit(
        "toy_convex",
        out=out,
        seeds=seeds,
        epochs=3,
        settings=SETTINGS | {"reference": (9.0, 9.0)},
        device="cpu",
        engine="eager",
        resume=True,
    )


def forked(act: Callable[[], None]) -> int:
    """Act in a process of its own; how it ended."""
    child = os.fork()
    if not child:
        try:
            act()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def arm(fatal: int, *, flushing: bool) -> None:
    """Die at the n-th write point: before a rename, a removal, and where asked a flush."""
    points = itertools.count(1)

    def guarded(name: str) -> None:
        original: Callable[..., Any] = getattr(os, name)

        def touch(*given: Any, **named: Any) -> Any:
            there = name != "unlink" or os.path.lexists(given[0])
            if there and next(points) == fatal:
                os._exit(9)
            return original(*given, **named)

        setattr(os, name, touch)

    for name in ("replace", "unlink", *(("fsync",) if flushing else ())):
        guarded(name)


def damage(out: Path, turn: int) -> bool:
    """Flip one bit of one of all checkpoints, unless it is the only one of its seed."""
    every = [
        (path, len(saved))
        for run in sorted(out.iterdir())
        if (saved := saved_in(run))
        for path in saved.values()
    ]
    if not every:
        return False
    path, count = every[turn % len(every)]
    if count < 2:
        return False
    content = bytearray(path.read_bytes())
    at = turn * 7919 % len(content)
    content[at] ^= 1 << turn % 8
    path.write_bytes(content)
    return True


def results(out: Path, seeds: list[int]) -> list[bytes]:
    """What has to be the same, bit for bit."""
    return [(out / f"seed-{seed}" / name).read_bytes() for seed in seeds for name in RESULTS]


def main(folder: Path, seeds: list[int], *, flushing: bool, damaged: bool) -> None:
    """Print how many kills there were, how many checkpoints were damaged, and what went wrong."""
    torch.set_num_threads(1)
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", CheckpointWarning)
    train(folder / "whole", seeds)
    expected, wrong, hurt = results(folder / "whole", seeds), [], 0
    for kills in itertools.count():
        cut = folder / f"cut-{kills}"

        def killed(fatal: int = kills + 1, cut: Path = cut) -> None:
            arm(fatal, flushing=flushing)
            train(cut, seeds)

        if not forked(killed):
            break
        if damaged:
            hurt += damage(cut, kills)
        if forked(lambda cut=cut: train(cut, seeds)):  # type: ignore[misc]
            wrong.append(f"kill {kills + 1}: not resumed")
        elif results(cut, seeds) != expected:
            wrong.append(f"kill {kills + 1}: other results")
        left = [path for path in cut.rglob(".*") if path.is_file()]
        wrong += [f"kill {kills + 1}: left {path.name}" for path in left]
        shutil.rmtree(cut)
    sys.stdout.write(json.dumps({"kills": kills, "damaged": hurt, "wrong": wrong}))


if __name__ == "__main__":
    main(
        Path(sys.argv[1]),
        json.loads(sys.argv[2]),
        flushing="flushing" in sys.argv,
        damaged="damaged" in sys.argv,
    )
