"""Provenance of a result: versions, machine and the state of the source."""

import hashlib
import platform
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from paretocosmos._version import __version__


def get_provenance(device: torch.device) -> dict[str, Any]:
    """Return the versions, the machine, the commit and the command, for a record."""
    return {
        "version": __version__,
        # the version alone does not tell two development states apart
        "source": _hash_source(),
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
        "git": _describe_commit(),
        # without the machine's own paths: a result may be published
        "command": shlex.join(Path(a).name if Path(a).is_absolute() else a for a in sys.argv),
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
    }


@cache
def _hash_source() -> str:
    """Return a hash of this package's files: uncommitted changes count."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


@cache
def _describe_commit() -> dict[str, Any] | None:
    """Return the commit of a source checkout, and whether it was changed; `None` for a wheel."""
    # above src/paretocosmos/runs
    root = Path(__file__).resolve().parents[3]
    if not (root / ".git").exists():
        return None
    try:
        commit, status = (
            subprocess.run(
                # tracked files only: notes and results beside the source change no number
                ["git", "-C", str(root), *arguments],
                capture_output=True,
                text=True,
                check=True,
                timeout=10,
            ).stdout.strip()
            for arguments in (("rev-parse", "HEAD"), ("status", "--porcelain", "-uno"))
        )
    # without git, or in a folder that git does not trust, the hash of the source has to do
    except (OSError, subprocess.SubprocessError):
        return None
    return {"commit": commit, "changed": bool(status)}
