"""What tests on a real GPU share; they are skipped where there is none."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from paretocosmos import Run
from paretocosmos.runs import find_newest_checkpoint, load_tensors

__all__ = ["NEEDS_CUDA", "SETTINGS", "near"]

NEEDS_CUDA = [
    pytest.mark.system,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]
SETTINGS: dict[str, Any] = {
    "batch_size": 32,
    "rays_per_batch": 2,
    "rays": 5,
    "evaluate_every": 1,
    "reference": (4.0, 4.0),
}


def near(one: Run, two: Run, *, atol: float, rtol: float = 0.0) -> None:
    """Compare the last checkpoints: weights, moments, the method's state."""
    ours, theirs = (_read(find_newest_checkpoint(run.folder)) for run in (one, two))
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        torch.testing.assert_close(value, theirs[name], rtol=rtol, atol=atol, msg=name)


def _read(file: Path) -> dict[str, Tensor]:
    tensors, _ = load_tensors(file)
    return {name: value for name, value in tensors.items() if not name.startswith("rng.")}
