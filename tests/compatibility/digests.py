"""SHA-256 of the weights and fronts of eight trainings, to change code but no number of a result.

Before a change `python -m tests.compatibility.digests --write FILE`, after each of its steps
`--check FILE`, which lists what differs. Bits differ between kinds of processors and versions of
torch, so such a file belongs to one machine and is not committed. Names of tensors and their order
do not count; their shapes and numbers do.
"""

import argparse
import hashlib
import json
import subprocess
import sys
import warnings
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from tests.compatibility.cases import RUNS, train
from tests.resumed import stop_at

from paretocosmos import Front, Run, load_run

TABLE = {**RUNS["table"], "settings": {"hidden": (8, 8), "batch_size": 64}, "epochs": 3}
IMAGES: dict[str, Any] = {"preset": "paper", "settings": {"rays": 5}, "epochs": 1}
DEFAULT = {**RUNS["tilt"], "settings": {"hidden": (8, 8), "batch_size": 64}, "epochs": 5}

CASES: dict[str, dict[str, Any]] = {
    "eager": DEFAULT,
    "traced": {**TABLE, "engine": "traced"},
    "seeds": {**TABLE, "engine": "traced", "seeds": (1, 2, 3)},
    "resumed": {**TABLE, "epochs": 4},
    "streamed": {**RUNS["token"], "epochs": 3},
    "paper-table": {"problem": "compas", "preset": "paper", "epochs": 2, "engine": "traced"},
    "paper-images": {"problem": "multi_digits", **IMAGES},
    "processes": TABLE,
}
TOGETHER = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]

SAID = ("engine", "data", "seeds_together", "processes")
"""What is said of each training: whether it was what its name says."""

Digests = dict[str, dict[str, str]]


def compute_digests() -> Digests:
    """Train every case, and return the digests of its weights and fronts."""
    digests: Digests = {}
    with TemporaryDirectory() as place:
        for name, case in CASES.items():
            runs = _trained(name, case, Path(place) / name)
            digests[name] = _digests_of(runs)
            _say(f"{name}: {', '.join(f'{key} {runs[0].record[key]}' for key in SAID)}")
    return digests


def _trained(name: str, case: Mapping[str, Any], out: Path) -> list[Run]:
    if name == "processes":
        command = [sys.executable, *TOGETHER, "-m", "tests.compatibility.digests"]
        subprocess.run([*command, "--together", str(out)], check=True)
        return [load_run(out)]
    if name == "resumed":
        with suppress(InterruptedError):
            train(case, out, progress=stop_at(2))
        return train(case, out, resume=True)
    return train(case, out)


def _digests_of(runs: list[Run]) -> dict[str, str]:
    tensors = [tensor for run in runs for tensor in run.model.state_dict().values()]
    return {
        "weights": _digest(sorted(_digest([t.shape, t.cpu().numpy()]) for t in tensors)),
        "front": _digest([part for run in runs for part in _numbers(run.front)]),
        "front_val": _digest([part for run in runs for part in _numbers(run.front_val)]),
    }


def _numbers(front: Front) -> list[object]:
    return [front.rays, front.values, *(front.metrics[name] for name in sorted(front.metrics))]


def _digest(parts: Iterable[object]) -> str:
    found = hashlib.sha256()
    for part in parts:
        found.update(part.tobytes() if isinstance(part, np.ndarray) else str(part).encode())
    return found.hexdigest()


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> int:
    """Write the digests, or compare with those that were written."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", type=Path, metavar="FILE")
    action.add_argument("--check", type=Path, metavar="FILE")
    action.add_argument("--together", type=Path, help=argparse.SUPPRESS)  # one of two processes
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # what short trainings do not learn
    if arguments.together is not None:
        train(CASES["processes"], arguments.together)
        return 0
    before = None if arguments.check is None else json.loads(arguments.check.read_text())
    digests = compute_digests()
    if before is None:
        arguments.write.write_text(json.dumps(digests, indent=1) + "\n")
        return 0
    names = [(name, part) for name in digests for part in digests[name]]
    changed = [f"{n}: {part}" for n, part in names if digests[n][part] != before[n][part]]
    _say("\n".join(["These differ:", *changed]) if changed else "All bits are the same.")
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
