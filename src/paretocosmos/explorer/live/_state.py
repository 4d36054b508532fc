"""Where the runs in a folder stand, from their files alone."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from paretocosmos.errors import RunError
from paretocosmos.io.files import is_locked
from paretocosmos.objectives import measure_of
from paretocosmos.runs.checkpoint import list_checkpoints, read_numbers
from paretocosmos.runs.folders import find_runs
from paretocosmos.runs.record import load_record
from paretocosmos.runs.run import PAGE

__all__ = ["state_of"]


def state_of(folder: Path) -> dict[str, Any]:
    """What a page shows of a folder: one run, or all runs below it.

    `over` says that nothing in it is trained any more.
    """
    runs = []
    for place in find_runs(folder):
        with suppress(RunError):  # a file that is being replaced: the next look has it
            runs.append(_run(place, folder))
    return {
        "runs": runs,
        "over": bool(runs) and not any(run["status"] == "training" for run in runs),
        "page": (folder / PAGE).exists(),
    }


def _run(place: Path, root: Path) -> dict[str, Any]:
    record = load_record(place)
    finished = record["status"] == "finished"
    numbers = record if finished else _numbers(place)
    evaluations = numbers.get("evaluations", [])
    epochs = record["training"]["epochs"]
    epoch = epochs if finished else numbers.get("epoch", 0)
    seconds = numbers.get("seconds_training" if finished else "seconds", 0.0)
    return {
        "name": place.name if place == root else str(place.relative_to(root)),
        "problem": record["name"],
        "method": record["label"],
        "seed": record["seed"],
        "status": "finished" if finished else "training" if is_locked(place) else "stopped",
        "epoch": epoch,
        "epochs": epochs,
        "seconds": seconds,
        "seconds_left": 0.0 if finished else _left(numbers, epochs),
        "names": record["names"],
        "labels": [measure_of(name).label for name in record["names"]],
        "evaluations": [
            {key: one.get(key) for key in ("epoch", "hypervolume_val", "values", "losses")}
            for one in evaluations
        ],
    }


def _numbers(place: Path) -> Mapping[str, Any]:
    """What the newest checkpoint that can be read says."""
    found = (read_numbers(path) for path in list_checkpoints(place).values())
    return next((numbers for numbers in found if numbers is not None), {})


def _left(numbers: Mapping[str, Any], epochs: int) -> float | None:
    """Seconds left by the mean epoch so far, its validation included; `None` before the first."""
    done = numbers.get("epoch", 0)
    if not done:
        return None
    spent = numbers["seconds"] + numbers["seconds_evaluating"]
    return float((epochs - done) * spent / done)
