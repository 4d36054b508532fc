"""What the tests of all kernels share: where they run, and the comparison in float64."""

import importlib.util
import os
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

__all__ = ["DEVICE", "INTERPRETED", "close", "compare", "doubled", "leaves", "needs_triton"]

TRITON = importlib.util.find_spec("triton") is not None
INTERPRETED = TRITON and os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = "cuda" if torch.cuda.is_available() and not INTERPRETED else "cpu"
needs_triton = pytest.mark.skipif(
    not (INTERPRETED or (TRITON and DEVICE == "cuda")),
    reason="needs Triton, and a CUDA device or TRITON_INTERPRET=1",
)


def doubled(tensors: Sequence[Tensor | None]) -> list[Any]:
    return [
        None if t is None else t.detach().double().requires_grad_(t.requires_grad) for t in tensors
    ]


def leaves(tensors: Sequence[Tensor | None]) -> list[Tensor]:
    return [t for t in tensors if t is not None and t.requires_grad]


def close(mine: Tensor, reference: Tensor) -> None:
    assert mine.shape == reference.shape
    assert mine.dtype == torch.float32
    error = (mine.double() - reference).norm() / reference.norm().clamp_min(1e-12)
    assert error < 1e-5  # NaN fails too


def compare(
    function: Callable[..., Tensor],
    reference: Callable[..., Tensor],
    inputs: Sequence[Tensor | None],
) -> None:
    """Values and all gradients, for a random gradient of the output."""
    exact = doubled(inputs)
    mine, wanted = function(*inputs), reference(*exact)
    close(mine, wanted)
    grad = torch.randn_like(mine)
    got = torch.autograd.grad(mine, leaves(inputs), grad)
    for one, other in zip(
        got, torch.autograd.grad(wanted, leaves(exact), grad.double()), strict=True
    ):
        close(one, other)
