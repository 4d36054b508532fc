"""Where a result comes from: versions, machine and the state of the source."""

import hashlib
import platform
import shlex
import subprocess
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from paretocosmos._version import __version__
from paretocosmos.problems import SPLITS, Problem, samples_in
from paretocosmos.types import map_tensors

__all__ = ["answers_of", "fingerprint", "provenance"]


def provenance(device: torch.device) -> dict[str, Any]:
    """What a run's record says of its origin."""
    return {
        "version": __version__,
        "source": _source(),
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "numpy": np.__version__,
        },
        "machine": {
            "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
            "system": f"{platform.system()} {platform.machine()}",
            "threads": torch.get_num_threads(),
        },
        "git": _git(),
        # without the machine's own paths: a result may be published
        "command": shlex.join(Path(a).name if Path(a).is_absolute() else a for a in sys.argv),
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def fingerprint(problem: Problem) -> str:
    """A hash of a problem's data: its own checksum where it has one, else that of every split."""
    known = problem.about.get("sha256")
    if known is not None:
        return str(known)
    digest = hashlib.blake2b(digest_size=16)
    for name in SPLITS:
        if problem.source(name) is None:
            digest.update(_hashed(vars(problem.split(name)).values()).encode())
        else:  # what is read on the way, and at random, is known by its size alone
            digest.update(f"{samples_in(problem, name)} {problem.input_shape}".encode())
    return digest.hexdigest()


def answers_of(problem: Problem) -> str:
    """A hash of what a problem's samples are compared with, in order.

    Not of its inputs, which another machine may standardise to other last digits.
    """
    return _hashed(problem.split(name).targets for name in SPLITS)


def _hashed(parts: Iterable[Tensor | Mapping[str, Tensor]]) -> str:
    digest = hashlib.blake2b(digest_size=16)

    def add(part: Tensor) -> Tensor:
        digest.update(f"{tuple(part.shape)} {part.dtype} ".encode())
        digest.update(part.contiguous().reshape(-1).view(torch.uint8).numpy().data)
        return part

    for part in parts:
        map_tensors(add, part)
    return digest.hexdigest()


@cache
def _source() -> str:
    """A hash of this package's own files: what was run, whatever a checkout says of itself."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


@cache
def _git() -> dict[str, Any] | None:
    """The commit of a source checkout, and whether it was changed; `None` for a wheel."""
    root = Path(__file__).resolve().parents[3]
    if not (root / ".git").exists():
        return None
    try:
        commit, status = (
            subprocess.run(
                ["git", "-C", str(root), *arguments],
                capture_output=True,
                text=True,
                check=True,
                timeout=10,
            ).stdout.strip()
            for arguments in (("rev-parse", "HEAD"), ("status", "--porcelain", "-uno"))
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return {"commit": commit, "changed": bool(status)}
